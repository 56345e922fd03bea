"""What a browser may let web pages do here: a page from elsewhere, or from a name that is not ours, may do nothing."""

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from octavo.api.errors import HostInvalid, error_response
from octavo.api.path import LIVENESS, path_of
from octavo.core.browser_access import AllowedHosts, AllowedOrigins, called_host, normal_origin
from octavo.errors import Forbidden, OctavoError

_PREFLIGHT = {
    "access-control-allow-methods": "GET, POST, DELETE",
    # The star does not stand for authorization. Nothing is sent that a page could not send of itself.
    "access-control-allow-headers": "authorization, content-type, x-request-id, *",
    "access-control-max-age": "600",
}
_EXPOSED = ", ".join(
    (
        *("x-request-id", "x-octavo-ignored", "retry-after"),
        *(f"x-ratelimit-{what}-{of}" for what in ("limit", "remaining", "reset") for of in ("requests", "tokens")),
    )
)


class HostNotAllowed(Forbidden):
    """The name by which the server was called is none of its own."""

    code = "host_not_allowed"


class OriginNotAllowed(Forbidden):
    """A web page from elsewhere let the browser ask."""

    code = "origin_not_allowed"


class BrowserGuard:
    """ASGI middleware, before keys are looked at: a browser asks without one whether it may ask with one.

    The liveness probe is answered whatever it calls the server: it tells nothing, and who asks may know no name.
    """

    def __init__(self, app: ASGIApp, *, hosts: AllowedHosts, origins: AllowedOrigins) -> None:
        self._app = app
        self._hosts = hosts
        self._origins = origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        try:
            host = self._checked_host(headers)
            origin = self._foreign_origin(headers, f"{scope['scheme']}://{host}")
        except OctavoError as error:
            answer = self._app if path_of(scope) == LIVENESS else error_response(error)
            await answer(scope, receive, send)
            return
        if origin is None:
            await self._app(scope, receive, send)
        elif scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
            await Response(status_code=204, headers=_shared_with(origin) | _PREFLIGHT)(scope, receive, send)
        else:
            await self._app(scope, receive, _sharing(origin, send))

    def _checked_host(self, headers: Headers) -> str:
        """The Host header. Raises HostInvalid and HostNotAllowed."""
        hosts = headers.getlist("host")
        if len(hosts) != 1:
            raise HostInvalid("A request needs one Host header.")
        try:
            host = called_host(hosts[0])
        except ValueError as error:
            raise HostInvalid(f"The Host header {error}.") from error
        if not self._hosts.allow(host):
            raise HostNotAllowed(
                f"This server does not answer to the name {host!r}; --allow-hosts lists the names to which it does."
            )
        return hosts[0]

    def _foreign_origin(self, headers: Headers, own_origin: str) -> str | None:
        """Of the page that asks; None where that is the server's own, or there is none. Raises OriginNotAllowed."""
        origins = headers.getlist("origin")
        if not origins or (len(origins) == 1 and _is_same(origins[0], own_origin)):
            return None
        if len(origins) > 1 or not self._origins.allow(origins[0]):
            raise OriginNotAllowed(
                "Pages of this origin may not call the server; --allow-origins lists those that may."
            )
        return origins[0]


def _is_same(origin: str, own: str) -> bool:
    try:
        return normal_origin(origin) == normal_origin(own)
    except ValueError:
        return False


def _shared_with(origin: str) -> dict[str, str]:
    return {"access-control-allow-origin": origin, "vary": "origin"}


def _sharing(origin: str, send: Send) -> Send:
    added = {**_shared_with(origin), "access-control-expose-headers": _EXPOSED}
    raw = [(name.encode(), value.encode("latin-1")) for name, value in added.items()]

    async def send_shared(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", ()), *raw]
        await send(message)

    return send_shared
