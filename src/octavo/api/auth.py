"""Who asks, and whether the key is good for what is asked."""

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Send
from starlette.types import Scope as Connection

from octavo.api.errors import error_response
from octavo.api.identity import set_caller
from octavo.api.path import LIVENESS, path_of, route_of
from octavo.api.record import record_of
from octavo.core.caller import Caller, Scope
from octavo.core.keyring import Keyring
from octavo.errors import Forbidden, OctavoError

_FOR_GENERATING = frozenset(
    {
        *("/v1/completions", "/v1/chat/completions", "/v1/tokenize", "/v1/detokenize", "/v1/models"),
        *("/ready", "/", "/docs", "/openapi.json"),
    }
)
"""What a key with the scope generate is good for. All else needs admin, so that nothing is open by being forgotten."""

_MODELS = "/v1/models/"
"""All below it, too: ids of models may have slashes."""

_ADAPTERS = "/v1/adapters"
_READING = frozenset({"GET", "HEAD", "OPTIONS"})
"""The methods with which it is good for the adapters, too."""


class Authenticate:
    """ASGI middleware, before anything is told or read: without a key nobody learns which paths and methods there are.

    The scope admin includes generate.
    """

    def __init__(self, app: ASGIApp, *, keyring: Keyring) -> None:
        self._app = app
        self._keyring = keyring

    async def __call__(self, scope: Connection, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or path_of(scope) == LIVENESS:
            await self._app(scope, receive, send)
            return
        try:
            await self._admit(scope)
        except OctavoError as error:
            await error_response(error)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    async def _admit(self, scope: Connection) -> None:
        """Raises Unauthenticated and Forbidden."""
        caller = await self._keyring.caller(_bearer_key(Headers(scope=scope)))
        record_of(Request(scope)).key_id = caller.key_id
        set_caller(scope, caller)
        # Where nothing is, that is what the router answers.
        if not _is_good_for(caller, scope) and route_of(scope) is not None:
            raise Forbidden("This key is not good for that; one with the scope admin is.")


def _bearer_key(headers: Headers) -> str:
    """Empty where there is none: no header or several, or another scheme."""
    values = headers.getlist("authorization")
    scheme, _, key = values[0].partition(" ") if len(values) == 1 else ("", "", "")
    return key.strip(" ") if scheme.lower() == "bearer" else ""


def _is_good_for(caller: Caller, scope: Connection) -> bool:
    return Scope.ADMIN in caller.scopes or (Scope.GENERATE in caller.scopes and _is_for_generating(scope))


def _is_for_generating(scope: Connection) -> bool:
    path = path_of(scope)
    is_for_reading = path == _ADAPTERS and scope["method"] in _READING
    return is_for_reading or path in _FOR_GENERATING or path.startswith(_MODELS)
