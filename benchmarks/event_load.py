"""Many streamed answers at a time, whose events are counted and not read: a load that costs little itself.

python -m benchmarks.event_load --port 8080 --streams 500 --max-tokens 200

A process of its own: it prints a line when every connection is open and has had a short answer, waits for a line on its
standard input, asks once on each connection, and prints what came as JSON. Standard input at its end ends it unasked.
"""

from __future__ import annotations

import argparse
import resource
import select
import socket
import sys
import time
from collections.abc import Sequence

import msgspec

HOST = "127.0.0.1"
READ_BYTES = 1 << 18
EVENT = b"data: "
ENDING = b"data: [DONE]\n\n\r\n0\r\n\r\n"
WARM_UP_TOKENS = 2
READY = "ready"


class Counts(msgspec.Struct, frozen=True):
    """What came on all connections together.

    events: also the last one, which is [DONE]. reads: pieces in which the bytes came out of the sockets.
    """

    events: int
    reads: int
    num_bytes: int
    wall_seconds: float
    cpu_seconds: float


class LoadFailed(Exception):
    """An answer that was none; the message has its beginning."""


class Stream:
    """One kept connection and what has come of its present answer."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection((HOST, port))
        self._tail = b""
        self.events = self.num_bytes = self.reads = 0

    def ask(self, body: bytes) -> None:
        """Send a request for a streamed completion."""
        self._tail = b""
        self.events = self.num_bytes = self.reads = 0
        head = f"POST /v1/completions HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/json\r\n"
        self.socket.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)

    def read(self) -> bool:
        """Count what has come; whether the answer has ended. Raises LoadFailed."""
        data = self.socket.recv(READ_BYTES)
        if not data or (self.num_bytes == 0 and not data.startswith(b"HTTP/1.1 200")):
            raise LoadFailed(f"a stream was refused or cut: {data[:500]!r}")
        self.reads += 1
        self.num_bytes += len(data)
        self.events += (self._tail[1 - len(EVENT) :] + data).count(EVENT)
        self._tail = (self._tail + data)[-len(ENDING) :]
        return self._tail == ENDING


def stream_all(streams: Sequence[Stream], body: bytes) -> Counts:
    """Ask once on each stream, and read all answers to their end. Raises LoadFailed."""
    cpu, wall = time.process_time(), time.perf_counter()
    by_number = {stream.socket.fileno(): stream for stream in streams}
    with select.epoll() as poller:
        for number, stream in by_number.items():
            stream.ask(body)
            poller.register(number, select.EPOLLIN)
        num_open = len(streams)
        while num_open:
            for number, _ in poller.poll():
                if by_number[number].read():
                    poller.unregister(number)
                    num_open -= 1
    return Counts(
        events=sum(stream.events for stream in streams),
        reads=sum(stream.reads for stream in streams),
        num_bytes=sum(stream.num_bytes for stream in streams),
        wall_seconds=time.perf_counter() - wall,
        cpu_seconds=time.process_time() - cpu,
    )


def request_body(max_tokens: int) -> bytes:
    """With stop strings that never come, though one of them begins now and then."""
    return msgspec.json.encode(
        {
            "model": "scripted",
            "prompt": "Once upon a time",
            "max_tokens": max_tokens,
            "stream": True,
            "ignore_eos": True,
            "stop": ["\n\nUser:", "dogs"],
        }
    )


def main() -> None:
    """Read the options, get ready, send the load when told to."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.event_load", description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--streams", type=int, required=True)
    parser.add_argument("--max-tokens", type=int, required=True)
    options = parser.parse_args()
    _, most_files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, most_files))
    try:
        streams = [Stream(options.port) for _ in range(options.streams)]
        stream_all(streams, request_body(WARM_UP_TOKENS))
        print(READY, flush=True)
        if sys.stdin.readline():
            print(msgspec.json.encode(stream_all(streams, request_body(options.max_tokens))).decode(), flush=True)
    except (LoadFailed, OSError) as error:
        sys.exit(f"The load failed: {error}")


if __name__ == "__main__":
    main()
