"""A running server, as the commands that ask one see it."""

import json
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

from octavo.cli.terminal import shown
from octavo.config import key_for_calls
from octavo.core.api_key import is_key
from octavo.errors import ConfigError, OctavoError

TIMEOUT = httpx.Timeout(None, connect=5.0)
"""An answer may take any time: it may wait in a queue, and its tokens come when they come."""

T = TypeVar("T")
Read = Callable[[Any], T]
"""Takes what a command needs from JSON; KeyError and its like say that the JSON is of another form."""


class CallFailed(OctavoError):
    """The server cannot be reached, refused the request or broke off."""

    code = "call_failed"


class ServerClient:
    """Connections to the server at `url`, for a `with` statement."""

    def __init__(self, url: str, key: str | None = None, *, timeout: httpx.Timeout = TIMEOUT) -> None:
        """key: None is that of the environment. Raises ConfigError for an address or a key that is none."""
        self._url = url
        try:
            # The address is taken as it was given: no proxy from the environment stands between.
            self._http = httpx.Client(base_url=url, headers=_credentials(key), timeout=timeout, trust_env=False)
        except httpx.InvalidURL as error:
            raise ConfigError(f"--url {url!r}: {error}.") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.close()

    def first_model(self) -> str:
        """The id of the model that the server names first. Raises CallFailed."""
        return self.call("GET", "/v1/models", lambda answer: str(answer["data"][0]["id"]))

    def call(self, method: str, path: str, read: Read[T], body: Mapping[str, Any] | None = None) -> T:
        """What `read` takes from the answer. Raises CallFailed, and ConfigError for a body that is not Unicode."""
        with self._reported_failures():
            response = self._http.send(self._request(method, path, body))
            _check(response)
            return self._read(response.content, read)

    def read(self, path: str, read: Callable[[str], T]) -> T:
        """What `read` takes from a text; ValueError says that it is of another form. Raises CallFailed."""
        with self._reported_failures():
            response = self._http.send(self._request("GET", path, None))
        _check(response)
        try:
            return read(response.text)
        except ValueError as error:
            raise self._unreadable() from error

    def stream(self, path: str, read: Read[T], body: Mapping[str, Any]) -> Generator[T, None, None]:
        """What `read` takes from each event of the answer, as it comes; closing the iterator ends the request.

        Raises CallFailed, also for an error within the answer, and ConfigError for a body that is not Unicode.
        """
        with self._reported_failures():
            response = self._http.send(self._request("POST", path, {**body, "stream": True}), stream=True)
            with closing(response):
                if response.is_error:
                    response.read()
                _check(response)
                for data in _events(response):
                    if data == b"[DONE]":
                        return
                    yield self._read(data, lambda event: read(_accepted(event)))
        raise CallFailed("The server broke off before the end of its answer.")

    def _request(self, method: str, path: str, body: Mapping[str, Any] | None) -> httpx.Request:
        if body is None:
            return self._http.build_request(method, path)
        headers = {"content-type": "application/json"}
        return self._http.build_request(method, path, content=_encoded(body), headers=headers)

    @contextmanager
    def _reported_failures(self) -> Iterator[None]:
        try:
            yield
        except httpx.ConnectError as error:
            raise CallFailed(f"No server answers at {self._url}. Start one with: octavo serve") from error
        except httpx.HTTPError as error:
            raise CallFailed(f"The connection to {self._url} failed: {error or type(error).__name__}") from error

    def _read(self, data: bytes, read: Read[T]) -> T:
        try:
            return read(json.loads(data))
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise self._unreadable() from error

    def _unreadable(self) -> CallFailed:
        return CallFailed(f"What {self._url} answered cannot be read; is it a server of this API?")


def _credentials(key: str | None) -> dict[str, str]:
    key = key_for_calls() if key is None else key
    if not key:
        return {}
    if not is_key(key):
        raise ConfigError("The key for the server has characters that no key has, or too many.")
    return {"authorization": f"Bearer {key}"}


def _encoded(body: Mapping[str, Any]) -> bytes:
    """Fields that are None are absent."""
    given = {name: value for name, value in body.items() if value is not None}
    try:
        return json.dumps(given, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise ConfigError("A text of the request is not UTF-8.") from error


def _events(response: httpx.Response) -> Iterator[bytes]:
    pending = b""
    for data in response.iter_bytes():  # not iter_lines: it takes some characters of a text for line ends
        *lines, pending = (pending + data).split(b"\n")
        for line in lines:
            if line.startswith(b"data: "):
                yield line.removeprefix(b"data: ")


def _accepted(event: Any) -> Any:
    if "error" in event:
        raise CallFailed(_one_line(event["error"]["message"]))
    return event


def _check(response: httpx.Response) -> None:
    if not response.is_error:
        return
    try:
        message = str(response.json()["error"]["message"])
    except (ValueError, LookupError, TypeError):
        message = response.text or response.reason_phrase
    raise CallFailed(f"The server answered {response.status_code}: {_one_line(message)}")


def _one_line(message: str) -> str:
    return shown(" ".join(message.split()))
