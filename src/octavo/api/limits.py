"""What is refused before a body is read: wrong types, other encodings, too many bytes."""

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from octavo.api.body_budget import BodyBudget, BodyShare
from octavo.api.errors import BodyTooLarge, UnsupportedMedia, error_response
from octavo.errors import OctavoError


class BodyLimits:
    """ASGI middleware. No more than `max_body` bytes of a body reach the application, whatever its headers say; those
    that are still coming have one budget."""

    def __init__(self, app: ASGIApp, *, max_body: int) -> None:
        self._app = app
        self._max_body = max_body
        self._budget = BodyBudget()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            self._check_headers(scope["method"], Headers(scope=scope))
        except OctavoError as error:
            await error_response(error)(scope, receive, send)
            return
        await self._app(scope, _WholeBody(receive, self._max_body, self._budget), send)

    def _check_headers(self, method: str, headers: Headers) -> None:
        length = headers.get("content-length")
        if length is not None:
            self._check_length(length)
        encoding = headers.get("content-encoding", "identity")
        if encoding.strip().lower() not in ("identity", ""):
            raise UnsupportedMedia("The body's content-encoding is not supported; send it unencoded.")
        if method == "POST" and "content-type" in headers:
            _check_content_type(headers["content-type"])

    def _check_length(self, length: str) -> None:
        # Digits alone, as the server takes them. How many is compared first: thousands of them are never parsed.
        if len(length.lstrip("0")) > len(str(self._max_body)) or int(length) > self._max_body:
            raise _too_large(self._max_body)


class _WholeBody:
    """What a request receives, its body as one message however many pieces it comes in: a list of a million of them
    would take fifty times their memory."""

    def __init__(self, receive: Receive, max_body: int, budget: BodyBudget) -> None:
        self._receive = receive
        self._max_body = max_body
        self._budget = budget
        self._is_refused = False

    async def __call__(self) -> Message:
        """Raises BodyTooLarge once; what comes after is for whoever throws it away."""
        message = await self._receive()
        if self._is_refused or message["type"] != "http.request":
            return message
        with self._budget.share() as share:
            return await self._gathered(message, share)

    async def _gathered(self, message: Message, share: BodyShare) -> Message:
        body = bytearray(message.get("body", b""))
        while message.get("more_body", False) and len(body) <= self._max_body:
            await share.grow(len(body))
            message = await self._receive()
            if message["type"] != "http.request":
                return message
            body += message.get("body", b"")
        if len(body) > self._max_body:
            self._is_refused = True
            raise _too_large(self._max_body)
        return {"type": "http.request", "body": body, "more_body": False}  # no copy of it: Starlette makes one


def _too_large(max_body: int) -> BodyTooLarge:
    return BodyTooLarge(f"The body is too large; at most {max_body} bytes are read.")


def _check_content_type(value: str) -> None:
    media_type, *parameters = (part.strip().lower() for part in value.split(";"))
    charsets = [name.removeprefix("charset=").strip('"') for name in parameters if name.startswith("charset=")]
    if media_type != "application/json" or any(charset not in ("utf-8", "utf8") for charset in charsets):
        raise UnsupportedMedia("The body must have the content-type application/json, in UTF-8.")
