"""A server that answers what it is told to, and remembers what it was asked."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CHAT = "/v1/chat/completions"


@dataclass(frozen=True, slots=True)
class Recorded:
    """body: the JSON that was sent, or None. authorization: the header of that name."""

    method: str
    path: str
    body: Any
    authorization: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """hangs: whether it never ends, until the client goes away."""

    body: bytes
    status: int = 200
    hangs: bool = False

    @classmethod
    def of(cls, value: Any, status: int = 200) -> "Answer":
        return cls(json.dumps(value).encode(), status)

    @classmethod
    def stream(cls, *deltas: dict[str, Any], hangs: bool = False) -> "Answer":
        """A chat answer in events. One that hangs has no end."""
        events = [json.dumps({"choices": [{"index": 0, "delta": delta}]}) for delta in deltas]
        ending = [] if hangs else ["[DONE]"]
        return cls("".join(f"data: {event}\n\n" for event in events + ending).encode(), hangs=hangs)


class RecordingServer:
    """answers: by method and path; those left out are 404. client_is_gone: set when one left an answer that hangs."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.requests: list[Recorded] = []
        self.answers: dict[tuple[str, str], Answer] = {
            ("GET", "/v1/models"): Answer.of({"data": [{"id": "first"}, {"id": "second"}]})
        }
        self.client_is_gone = threading.Event()

    @property
    def bodies(self) -> list[Any]:
        """Of the requests that have one."""
        return [request.body for request in self.requests if request.body is not None]

    def answer(self, request: Recorded) -> Answer:
        self.requests.append(request)
        return self.answers.get((request.method, request.path), Answer.of({"error": {"message": "no such path"}}, 404))


@contextmanager
def recording() -> Iterator[RecordingServer]:
    """A server on a free port of this machine."""
    with _Listener(("127.0.0.1", 0), _Handler) as listener:
        thread = threading.Thread(target=listener.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield listener.recorder
        finally:
            listener.shutdown()
            thread.join()


class _Listener(ThreadingHTTPServer):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.recorder = RecordingServer(self.server_port)


class _Handler(BaseHTTPRequestHandler):
    server: _Listener

    def handle_request(self) -> None:
        size = int(self.headers.get("content-length", 0))
        body = json.loads(self.rfile.read(size)) if size else None
        answer = self.server.recorder.answer(Recorded(self.command, self.path, body, self.headers["authorization"]))
        self.send_response(answer.status)
        self.end_headers()
        self.wfile.write(answer.body)
        if answer.hangs:
            self._wait_for_the_client_to_leave()

    do_GET = do_POST = do_DELETE = handle_request  # noqa: N815  # the names that the base class calls

    def _wait_for_the_client_to_leave(self) -> None:
        with suppress(ConnectionError):
            self.connection.recv(1)
        self.server.recorder.client_is_gone.set()

    def log_message(self, format: str, *args: object) -> None:
        pass
