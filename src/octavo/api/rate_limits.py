"""What a key may use, before anything of a request is read."""

from collections.abc import Sequence
from contextlib import ExitStack
from math import ceil

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from octavo.api.errors import error_response
from octavo.api.identity import caller_of
from octavo.api.path import path_of
from octavo.core.caller import ANYONE, Caller
from octavo.errors import RateLimited
from octavo.service import LimitState, RateLimiter

_NO_LIMITS = ANYONE.limits


class RateLimits:
    """ASGI middleware, inside the one that finds out who asks.

    A POST below /v1 makes work, so it counts until the last byte of its answer; reading costs nothing. Every answer
    below /v1 tells a limited key what it may still use, in the headers that clients of OpenAI's API know.
    """

    def __init__(self, app: ASGIApp, *, limiter: RateLimiter) -> None:
        self._app = app
        self._limiter = limiter

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not path_of(scope).startswith("/v1/"):
            await self._app(scope, receive, send)
            return
        caller = caller_of(Request(scope))
        if caller.limits == _NO_LIMITS:
            await self._app(scope, receive, send)
            return
        with ExitStack() as answering:
            try:
                if scope["method"] == "POST":
                    answering.enter_context(self._limiter.request(caller))
            except RateLimited as error:
                await error_response(error)(scope, receive, self._telling(caller, send))
                return
            await self._app(scope, receive, self._telling(caller, send))

    def _telling(self, caller: Caller, send: Send) -> Send:
        async def send_telling(message: Message) -> None:
            if message["type"] == "http.response.start":
                states = self._limiter.states(caller)
                message["headers"] = [*message.get("headers", ()), *_headers(states)]
            await send(message)

        return send_telling


def _headers(states: Sequence[LimitState]) -> list[tuple[bytes, bytes]]:
    told = (
        (part, state.name, value)
        for state in states
        for part, value in (("limit", state.limit), ("remaining", state.remaining), ("reset", duration(state.reset)))
    )
    return [(f"x-ratelimit-{part}-{name}".encode(), str(value).encode()) for part, name, value in told]


def duration(seconds: float) -> str:
    """As OpenAI's headers tell it, rounded up: 0s, 20ms, 1s, 1m30s, 2h0m0s."""
    if 0 < (milliseconds := ceil(round(seconds * 1000, 3))) < 1000:
        return f"{milliseconds}ms"
    minutes, rest = divmod(ceil(round(seconds, 3)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes}m{rest}s" if hours else f"{minutes}m{rest}s" if minutes else f"{rest}s"
