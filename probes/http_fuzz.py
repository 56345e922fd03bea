"""Requests that are nearly HTTP: hypothesis changes parts of good ones."""

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import httptools
from benchmarks import http_client
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from probes.answer import READ_BYTES, SECONDS, Answer, Place
from probes.cases import CHAT, COMPLETIONS
from probes.counts import Counts
from probes.http_changes import END, Change, Parts, changes
from probes.target import MODEL, Target

EXPECTED = (*range(200, 500), 501, 505)
TOO_SLOW = 408
"""The answer to what never becomes a request."""
GOOD = tuple(range(200, 300))
NUM_FOR_EXAMPLE = 8
"""Requests for each of the target's examples: 2000 at the usual number."""
AT_A_TIME = 16
MAX_CHANGES = 3
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
HEAD = re.compile(rb"(?:\r\n)*HEAD ")


@dataclass(frozen=True, slots=True)
class Sending:
    """ends: whether the client says that it sends nothing more, which is taken for its leaving."""

    data: bytes
    ends: bool = False

    @property
    def is_head(self) -> bool:
        return HEAD.match(self.data) is not None

    @property
    def is_whole(self) -> bool:
        """Whether another reader of HTTP than the server's own has seen the end of a request."""
        reading = http_client.Answer()
        with suppress(httptools.HttpParserError, httptools.HttpParserUpgrade):
            httptools.HttpRequestParser(reading).feed_data(self.data)
        return reading.is_complete

    def may_be_ignored(self, received: bytes) -> bool:
        """Whether the connection may be closed after so much, which is no answer."""
        return self.ends or not (received or self.data.strip(END))


def good_requests(place: Place) -> list[Parts]:
    """Requests that get what they ask for."""
    prompt = {"model": MODEL, "prompt": "x", "max_tokens": 2}
    chat = {"model": MODEL, "messages": [{"role": "user", "content": "x"}], "max_tokens": 2}
    text = json.dumps({"model": MODEL, "text": "x"}).encode()
    return [
        *(request_parts(place, b"GET", path) for path in ("/health", "/v1/models", "/metrics?x=%41&y")),
        request_parts(place, b"HEAD", "/health"),
        request_parts(place, b"GET", "/ready", {"connection": "close", "accept": "*/*"}, version=b"HTTP/1.0"),
        sized(place, COMPLETIONS, json.dumps(prompt).encode()),
        sized(place, COMPLETIONS, json.dumps(prompt | {"stream": True}).encode()),
        sized(place, COMPLETIONS, json.dumps(prompt | {"stream": True}).encode(), version=b"HTTP/1.0"),
        sized(place, CHAT, json.dumps(chat | {"stream": True}).encode(), expect="100-continue"),
        sized(place, "/v1/tokenize", text, version=b"HTTP/1.0"),
        chunked(place, CHAT, json.dumps(chat).encode()),
        chunked(place, "/v1/tokenize", text),
    ]


def request_parts(
    place: Place,
    method: bytes,
    path: str,
    headers: Mapping[str, str] | None = None,
    body: Sequence[bytes] = (),
    version: bytes = b"HTTP/1.1",
) -> Parts:
    lines = {"host": f"{place.host}:{place.port}", **(headers or {})}
    words = [(name.encode(), b": ", value.encode(), END) for name, value in lines.items()]
    return (method, b" ", path.encode(), b" ", version, END, *(word for line in words for word in line), END, *body)


def sized(place: Place, path: str, body: bytes, version: bytes = b"HTTP/1.1", **headers: str) -> Parts:
    lines = {"content-type": "application/json", "content-length": str(len(body)), **headers}
    return request_parts(place, b"POST", path, lines, (body,), version)


def chunked(place: Place, path: str, body: bytes) -> Parts:
    """In two chunks, the second with an extension, and a trailer."""
    half = len(body) // 2
    first = (f"{half:x}".encode(), END, body[:half], END)
    second = (f"{len(body) - half:X}".encode(), b";", b"x=y", END, body[half:], END)
    last = (b"0", END, b"x", b": ", b"y", END, END)
    lines = {"content-type": "application/json", "transfer-encoding": "chunked"}
    return request_parts(place, b"POST", path, lines, (*first, *second, *last))


def generated_sendings(target: Target, number: int) -> list[Sending]:
    """At most so many, each another one; the same for the same seed."""
    found: dict[Sending, None] = {}

    @seed(target.seed)
    @settings(
        max_examples=2 * number,  # hypothesis repeats itself
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
        database=None,
        deadline=None,
    )
    @given(
        parts=st.sampled_from(good_requests(target.place)),
        applied=st.lists(changes, min_size=1, max_size=MAX_CHANGES),
        ends=st.sampled_from((False, False, False, True)),
    )
    def collect(parts: Parts, applied: list[Change], ends: bool) -> None:
        for change in applied:
            parts = change.apply(parts)
        found[Sending(b"".join(parts), ends)] = None

    collect()
    return list(found)[:number]


async def http_fuzz(target: Target) -> Counts:
    """Good requests with changes in each of their parts (I17), each on a connection of its own.

    Each is answered in whole, in HTTP and as specified, or, where no request has come, its connection is closed.
    """
    counts = Counts()
    for parts in good_requests(target.place):
        sending = Sending(b"".join(parts))
        judge(counts, sending, await received_for(target.place, sending), GOOD)
    turns = iter(generated_sendings(target, target.sized(NUM_FOR_EXAMPLE * target.examples)))

    async def work() -> None:
        for sending in turns:
            judge(counts, sending, await received_for(target.place, sending), EXPECTED)

    await asyncio.gather(*(work() for _ in range(AT_A_TIME)))
    counts.figures = dict(sorted(counts.figures.items()))
    return counts


@dataclass(frozen=True, slots=True)
class Received:
    """is_closed: whether the server has ended the connection; else it stays open, and nothing more was read."""

    data: bytes
    is_closed: bool


async def received_for(place: Place, sending: Sending) -> Received:
    """What comes back up to the end of an answer, or of the connection."""
    received = b""
    try:
        reader, writer = await place.connect()
    except OSError:
        return Received(received, is_closed=True)
    try:
        async with asyncio.timeout(SECONDS):
            writer.write(sending.data)
            if sending.ends:
                writer.write_eof()
            while not is_over(received, sending.is_head):
                if not (data := await _read(reader)):
                    return Received(received, is_closed=True)
                received += data
    except TimeoutError:
        pass
    finally:
        writer.transport.abort()
    return Received(received, is_closed=False)


async def _read(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read(READ_BYTES)
    except OSError:  # a reset is an end as well
        return b""


def is_over(received: bytes, is_head: bool) -> bool:
    """Whether an answer has come, or something that is none."""
    try:
        return parsed(received, is_head) is not None
    except httptools.HttpParserError:
        return True


class _Reading(http_client.Answer):
    """The first answer of a connection, with its headers."""

    def __init__(self) -> None:
        super().__init__()
        self.parser = httptools.HttpResponseParser(self)
        self.headers: dict[str, str] = {}
        self.status = 0

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.is_complete:
            super().on_header(name, value)
            self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self.status = self.status or self.parser.get_status_code()

    def on_body(self, data: bytes) -> None:
        if not self.is_complete:
            super().on_body(data)


def parsed(received: bytes, is_head: bool, is_closed: bool = False) -> Answer | None:
    """An answer that is whole by its framing. is_head: its head is. Raises httptools.HttpParserError."""
    reading, data = _Reading(), received.removeprefix(CONTINUE)
    head, end, _ = data.partition(END + END)
    reading.parser.feed_data(head + end if is_head else data)
    is_whole = reading.is_complete or is_head or (is_closed and reading.ends_with_connection)
    if not (reading.has_headers and is_whole):
        return None
    return Answer(reading.status, reading.headers, reading.take())


def judge(counts: Counts, sending: Sending, received: Received, expected: tuple[int, ...]) -> None:
    name = f"{sending.data[:200]!r}"
    if sending.is_whole:
        expected = tuple(status for status in expected if status != TOO_SLOW)
    try:
        answer = parsed(received.data, sending.is_head, received.is_closed)
    except httptools.HttpParserError:
        counts.count(name, False, f"the answer is not HTTP: {received.data[:200]!r}")
        return
    _tell(counts, answer)
    if answer is None:
        counts.count(name, received.is_closed and sending.may_be_ignored(received.data), f"{received}"[:300])
    elif sending.is_head:  # its answer has no body to be judged
        counts.count(name, answer.status in expected, str(answer.status))
    else:
        counts.judge(name, answer, expected, sent=sending.data)


def _tell(counts: Counts, answer: Answer | None) -> None:
    kind = "no answer" if answer is None else f"{answer.status}"
    counts.figures[kind] = counts.figures.get(kind, 0) + 1
