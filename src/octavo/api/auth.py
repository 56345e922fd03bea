"""Who asks, and whether the key is good for what is asked."""

from collections.abc import Mapping

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.routing import Match
from starlette.types import ASGIApp, Receive, Send
from starlette.types import Scope as Connection

from octavo.api.errors import error_response
from octavo.api.identity import set_caller
from octavo.api.record import record_of
from octavo.core.caller import Caller, Scope
from octavo.errors import Forbidden, OctavoError
from octavo.service import Keyring

LIVENESS = "/health"
"""Asked by what starts and ends servers, which has no key; it tells nothing else."""

_ANY_METHOD = frozenset({"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"})
_READING = frozenset({"GET", "HEAD", "OPTIONS"})

_FOR_GENERATING: Mapping[str, frozenset[str]] = {
    "/v1/completions": _ANY_METHOD,
    "/v1/chat/completions": _ANY_METHOD,
    "/v1/tokenize": _ANY_METHOD,
    "/v1/detokenize": _ANY_METHOD,
    "/v1/models": _ANY_METHOD,
    "/v1/adapters": _READING,
    "/ready": _ANY_METHOD,
    "/": _ANY_METHOD,
    "/docs": _ANY_METHOD,
    "/openapi.json": _ANY_METHOD,
}
"""What a key with the scope generate is good for. All else needs admin, so that nothing is open by being forgotten."""

_MODELS = "/v1/models/"
"""All below it, too: ids of models may have slashes."""


class Authenticate:
    """ASGI middleware, before anything is told or read: without a key nobody learns which paths and methods there are.

    The scope admin includes generate.
    """

    def __init__(self, app: ASGIApp, *, keyring: Keyring) -> None:
        self._app = app
        self._keyring = keyring

    async def __call__(self, scope: Connection, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or _path_of(scope) == LIVENESS:
            await self._app(scope, receive, send)
            return
        try:
            self._admit(scope)
        except OctavoError as error:
            await error_response(error)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _admit(self, scope: Connection) -> None:
        """Raises Unauthenticated and Forbidden."""
        caller = self._keyring.caller(_bearer_key(Headers(scope=scope)))
        record_of(Request(scope)).key_id = caller.key_id
        set_caller(scope, caller)
        if not _is_good_for(caller, scope) and _is_served(scope):
            raise Forbidden("This key is not good for that; one with the scope admin is.")


def _bearer_key(headers: Headers) -> str:
    """Empty where there is none: no header or several, or another scheme."""
    values = headers.getlist("authorization")
    scheme, _, key = values[0].partition(" ") if len(values) == 1 else ("", "", "")
    return key.strip(" ") if scheme.lower() == "bearer" else ""


def _is_good_for(caller: Caller, scope: Connection) -> bool:
    return Scope.ADMIN in caller.scopes or (Scope.GENERATE in caller.scopes and _is_for_generating(scope))


def _is_for_generating(scope: Connection) -> bool:
    path = _path_of(scope)
    return scope["method"] in _FOR_GENERATING.get(path, ()) or path.startswith(_MODELS)


def _path_of(scope: Connection) -> str:
    """Below the place where the application is mounted."""
    return str(scope["path"]).removeprefix(scope.get("root_path", ""))


def _is_served(scope: Connection) -> bool:
    """Where nothing is, that is what the router answers."""
    return any(route.matches(scope)[0] is not Match.NONE for route in scope["app"].routes)
