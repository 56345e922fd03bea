"""Where the control of an attack is sent: a server that reads all and answers the same to all.

python -m probes.sink
"""

import asyncio
import re

from probes.companion import accompany

ERROR = b'{"error":{"message":"no","type":"invalid_request_error","param":null,"code":"no"}}'
EVENTS = b'data: {"choices":[{"index":0,"text":"fox "}]}\n\n' * 64 + b"data: [DONE]\n\n"
REFUSAL = b"HTTP/1.1 422 No\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(ERROR) + ERROR
STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: %d\r\n\r\n" % len(EVENTS) + EVENTS
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)\r\n", re.IGNORECASE)
PATIENCE = 3.0
"""Seconds for a request to come whole."""
MAX_HEAD = 2**16


class Sink(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._timer = asyncio.get_running_loop().call_later(PATIENCE, transport.close)
        self._start()

    def _start(self) -> None:
        self._head = b""
        self._num_missing: int | None = None
        self._is_stream = False

    def data_received(self, data: bytes) -> None:
        self._is_stream = self._is_stream or b'"stream": true' in data or b'"stream":true' in data
        if self._num_missing is not None:
            self._num_missing -= len(data)
        else:
            self._head += data
            head, end, body = self._head.partition(b"\r\n\r\n")
            if not end and len(self._head) < MAX_HEAD:
                return
            length = LENGTH.search(head + b"\r\n")
            is_chunked = b"chunked" in head and not length
            self._num_missing = 2**62 if is_chunked else int(length[1]) - len(body) if length else 0
        if self._num_missing <= 0 or data.endswith(b"0\r\n\r\n"):
            self._answer()

    def _answer(self) -> None:
        self._timer.cancel()
        self._transport.write(STREAM if self._is_stream else REFUSAL)
        self._timer = asyncio.get_running_loop().call_later(PATIENCE, self._transport.close)
        self._start()

    def connection_lost(self, _: Exception | None) -> None:
        self._timer.cancel()


async def main() -> None:
    server = await asyncio.get_running_loop().create_server(Sink, "127.0.0.1", 0, backlog=2048)
    host, port = server.sockets[0].getsockname()[:2]

    async def work(is_over: asyncio.Event) -> bool:
        await is_over.wait()
        return True

    await accompany(f"http://{host}:{port}", work)


if __name__ == "__main__":
    asyncio.run(main())
