"""Requests that are nearly HTTP: hypothesis changes parts of good ones."""

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import httptools
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from probes.answer import READ_BYTES, SECONDS, Answer, AnswerReader, Place, first_answer
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
ID = "x-request-id"
LAST_ID = "the-last-request"


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
        return Requests.of(self.data).num_whole > 0

    @property
    def is_one(self) -> bool:
        """Whether that has seen one request, which ends with the last byte."""
        seen = Requests.of(self.data)
        return seen.is_http and seen.num_begun == seen.num_whole == 1 and not Requests.of(self.data[:-1]).num_whole

    @property
    def may_be_ignored(self) -> bool:
        """Whether the connection may be closed without an answer."""
        return self.ends or not self.data.strip(END)


class Requests:
    """Those in some bytes, as httptools sees them, which calls the `on_` methods. num_whole: whose end has come."""

    def __init__(self) -> None:
        self.num_begun = 0
        self.num_whole = 0
        self.is_http = True

    @classmethod
    def of(cls, data: bytes) -> Self:
        seen = cls()
        try:
            httptools.HttpRequestParser(seen).feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            seen.is_http = False
        return seen

    def on_message_begin(self) -> None:
        self.num_begun += 1

    def on_message_complete(self) -> None:
        self.num_whole += 1


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

    What is one request to another reader of HTTP is answered once, in whole and as specified; so is the first of all
    else. Only where nothing but line ends has come, or the client ends, the connection may be closed without an answer.
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
    """data: up to the end of an answer, or of the connection. behind: what comes then, up to the connection's end.

    is_closed: whether the server has ended the connection; else it stays open, and nothing more was read.
    """

    data: bytes
    is_closed: bool
    behind: bytes = b""

    @property
    def has_begun(self) -> bool:
        """Whether anything of an answer has come; that a body may come is none."""
        return self.data.removeprefix(CONTINUE) != b""


async def received_for(place: Place, sending: Sending) -> Received:
    """Behind the answer to one request a last request is sent: what comes before its answer, nobody has asked for."""
    data, behind, is_closed = bytearray(), bytearray(), False
    try:
        reader, writer = await place.connect()
    except OSError:
        return Received(b"", is_closed=True)
    try:
        async with asyncio.timeout(SECONDS):
            writer.write(sending.data)
            if sending.ends:
                writer.write_eof()
            is_closed = await _read_into(data, reader, AnswerReader(is_head=sending.is_head))
            if sending.is_one and not is_closed:
                if not sending.ends:
                    writer.write(place.head("/health", "connection: close", f"{ID}: {LAST_ID}", method="GET"))
                is_closed = await _read_into(behind, reader)
    except TimeoutError:
        pass
    finally:
        writer.transport.abort()
    return Received(bytes(data), is_closed, bytes(behind))


async def _read_into(received: bytearray, reader: asyncio.StreamReader, answer: AnswerReader | None = None) -> bool:
    """Up to the end of an answer, where one is given, or of the connection. Whether that has ended."""
    while answer is None or not answer.is_over:
        try:
            data = await reader.read(READ_BYTES)
        except OSError:  # a reset is an end as well
            return True
        if not data:
            return True
        received += data
        if answer is not None:
            answer.push(data)
    return False


def judge(counts: Counts, sending: Sending, received: Received, expected: tuple[int, ...]) -> None:
    name = f"{sending.data[:200]!r}"
    if sending.is_whole:
        expected = tuple(status for status in expected if status != TOO_SLOW)
    answer = first_answer(received.data, is_head=sending.is_head, is_closed=received.is_closed)
    _tell(counts, answer)
    if fault := _fault_of(sending, received, answer):
        counts.count(name, False, fault)
    elif not received.has_begun:
        counts.count(name, True)
    elif sending.is_head:  # its answer has no body to be judged
        counts.count(name, answer.status in expected, str(answer.status))
    else:
        counts.judge(name, answer, expected, sent=sending.data)


def _fault_of(sending: Sending, received: Received, answer: Answer) -> str:
    """Why this is neither one whole answer nor an end that may be; "" where it is."""
    if not received.has_begun:
        is_right = received.is_closed and sending.may_be_ignored
        return "" if is_right else f"no answer, and the connection is {'closed' if received.is_closed else 'open'}"
    if not answer.is_whole:
        return f"the answer is not whole, or not HTTP: {received}"[:300]
    if sending.is_one and (answer.has_more or not _is_last(received.behind)):
        return f"one request, and more than one answer: {received.data[-100:]!r}, {received.behind[:100]!r}"
    return ""


def _is_last(behind: bytes) -> bool:
    """Whether this is the answer to the last request, or none."""
    answer = first_answer(behind)
    return not behind or (answer.is_whole and not answer.has_more and answer.headers.get(ID) == LAST_ID)


def _tell(counts: Counts, answer: Answer) -> None:
    kind = f"{answer.status}" if answer.status else "no answer"
    counts.figures[kind] = counts.figures.get(kind, 0) + 1
