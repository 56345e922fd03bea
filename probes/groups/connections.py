"""Clients that send too much, too slowly or not HTTP, do not read, or go away."""

import asyncio
import json
import re
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import suppress
from itertools import cycle
from typing import Any

from probes.answer import NO_ANSWER, SECONDS, Answer, Place, converse, exchange, first_answer, read_answer
from probes.cases import CHAT, COMPLETIONS
from probes.counts import Counts
from probes.gauges import num_running
from probes.probe import MIB, Attack, Control, Group
from probes.sockets import CLOSE_WAIT, CLOSED, is_in_state, reset_on_close, small_socket
from probes.target import MODEL, Target

RECEIVE_SECONDS = 3
"""Of the servers here, in place of 30: an attack must wait for it."""
UNREAD_SECONDS = 2
SLOW = ("--max-receive-time", str(RECEIVE_SECONDS))
UNREAD = ("--max-unread-time", str(UNREAD_SECONDS))
RECEIVE_BYTES = 4096
"""That the kernel takes for a client that does not read."""
CLOSED_WITHIN = 10 * RECEIVE_SECONDS
"""Seconds in which a slow connection must be closed, on a machine that is busy."""
AT_A_TIME = 50
LAST = -1
"""In place of a number of events: all."""
ENDLESS = '@script {"text": "The fox. The dog. ", "delay": 0.02}'
FLOOD = ("--scripted-delay", "0.005", "--ctx", "16384")
"""With all log-probabilities, more than the kernel takes from a server whose client does not read."""
STATUS_LINE = re.compile(rb"HTTP/1\.[01] \d{3} ")


def body_of(prompt: str, path: str = COMPLETIONS, **fields: Any) -> bytes:
    """A request for an answer without end."""
    asked = {"prompt": prompt} if path == COMPLETIONS else {"messages": [{"role": "user", "content": prompt}]}
    return json.dumps({"model": MODEL, **asked, "max_tokens": 3000, "ignore_eos": True, **fields}).encode()


def request_of(target: Target, body: bytes, path: str = COMPLETIONS) -> bytes:
    return target.place.head(path, f"content-length: {len(body)}", *_key(target)) + body


def _key(target: Target) -> Iterable[str]:
    return (f"{name}: {value}" for name, value in target.headers.items())


async def all_of(number: int, work: Callable[[int], Awaitable[None]], at_a_time: int = AT_A_TIME) -> None:
    """Do so many, some at a time."""
    turns = iter(range(number))

    async def worker() -> None:
        for turn in turns:
            await work(turn)

    await asyncio.gather(*(worker() for _ in range(min(number, at_a_time))))


async def chunk_floods(target: Target) -> Counts:
    """A million chunks of one byte (I8), for a body of a megabyte, and more of them than a body may have bytes."""
    counts = Counts()
    good = body_of("x", max_tokens=1).ljust(10**6)
    whole = b"".join(b"1\r\n%c\r\n" % byte for byte in good) + b"0\r\n\r\n"
    endless = b"1\r\nx\r\n" * 12_000

    async def flood() -> AsyncIterator[bytes]:
        yield target.place.head(COMPLETIONS, "transfer-encoding: chunked", *_key(target))
        for _ in range(2_000):
            yield endless

    async def send(number: int) -> None:
        if number % 10:
            data = target.place.head(COMPLETIONS, "transfer-encoding: chunked", *_key(target)) + whole
            counts.judge("a million chunks", await exchange(target.place, data), (200,))
        else:
            counts.judge("endless chunks", await exchange(target.place, flood()), (408, 413))

    await all_of(target.sized(20), send, at_a_time=2)
    return counts


def head_cases(place: Place) -> Iterable[tuple[str, tuple[int, ...], bytes]]:
    """Headers and request lines beyond what is read (I9)."""
    host = f"host: {place.host}:{place.port}"
    for size in (17 * 2**10, 63 * 2**10):
        yield f"headers of {size} bytes", (200,), place.head("/health", f"x: {'x' * size}", method="GET")
    for size in (66 * 2**10, 2**20, 16 * 2**20):
        yield f"headers of {size} bytes", (431,), place.head("/health", f"x: {'x' * size}", method="GET")
    lines = (f"x{number}: 1" for number in range(50_000))
    yield "50000 headers", (431,), place.head("/health", *lines, method="GET")
    for size in (2**16, 2**20):
        yield f"a target of {size} bytes", (414, 431), place.head("/" + "x" * size, method="GET")
    yield "a method of 64 KiB", (400, 414, 431, 501), place.head("/health", method="G" * 2**16)
    yield "a header without an end", (431,), f"GET /health HTTP/1.1\r\n{host}\r\nx: ".encode() + b"x" * 2**21


async def large_heads(target: Target) -> Counts:
    counts = Counts()
    for _ in range(target.sized(3)):
        for name, expected, data in head_cases(target.place):
            counts.judge(name, await exchange(target.place, data), expected)
    return counts


def smuggled(place: Place) -> Iterable[tuple[str, bytes]]:
    """Requests that two readers might divide in two ways (I11), each with a second one in it."""
    inner = b"GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n"
    chunks = b"0\r\n\r\n" + inner
    start = (
        f"POST /v1/tokenize HTTP/1.1\r\nhost: {place.host}:{place.port}\r\ncontent-type: application/json\r\n".encode()
    )
    chunked = b"transfer-encoding: chunked\r\n"
    yield "length and chunked", start + b"content-length: 4\r\n" + chunked + b"\r\n" + chunks
    yield "chunked and length", start + chunked + b"content-length: 40\r\n\r\n" + chunks
    yield "chunked twice", start + chunked + chunked + b"\r\n" + chunks
    yield "chunked twice in a line", start + b"transfer-encoding: chunked, chunked\r\n\r\n" + chunks
    yield "chunked and identity", start + b"transfer-encoding: chunked, identity\r\n\r\n" + chunks
    yield "another encoding", start + b"transfer-encoding: xchunked\r\ncontent-length: 4\r\n\r\n" + chunks
    yield "a tab before chunked", start + b"transfer-encoding:\tchunked\r\ncontent-length: 4\r\n\r\n" + chunks
    yield "a space before the colon", start + b"transfer-encoding : chunked\r\ncontent-length: 4\r\n\r\n" + chunks
    yield "a folded header", start + b"x: 1\r\n transfer-encoding: chunked\r\ncontent-length: 4\r\n\r\n" + chunks
    yield "two lengths", start + b"content-length: 0\r\ncontent-length: 36\r\n\r\n" + inner
    yield "two lengths in a line", start + b"content-length: 0, 36\r\n\r\n" + inner
    yield "a length with a sign", start + b"content-length: +0\r\n\r\n" + inner
    yield "a length below 0", start + b"content-length: -1\r\n\r\n" + inner
    yield "a length in hexadecimal", start + b"content-length: 0x0\r\n\r\n" + inner
    yield "a bare LF", start.replace(b"\r\n", b"\n") + b"content-length: 0\n\n" + inner
    yield "a bare CR", start + b"x: 1\rcontent-length: 40\r\n\r\n" + inner
    yield "NUL in a header", start + b"x: \0\r\n\r\n" + inner
    yield "no header name", start + b": x\r\n\r\n" + inner
    yield "a chunk size with 0x", start + chunked + b"\r\n0x0\r\n\r\n" + inner
    yield "a chunk size below 0", start + chunked + b"\r\n-1\r\n\r\n" + inner
    yield "a huge chunk size", start + chunked + b"\r\nffffffffffffffffff\r\n" + inner
    yield "a chunk without its end", start + chunked + b"\r\n1\r\nxx0\r\n\r\n" + inner
    yield "a chunk ended by LF", start + chunked + b"\r\n1\nx\n0\n\n" + inner
    yield "no host", b"POST /v1/tokenize HTTP/1.1\r\ncontent-length: 0\r\n\r\n" + inner
    yield "two hosts", start + b"host: other\r\ncontent-length: 0\r\n\r\n" + inner
    yield "HTTP/1.0 and chunked", start.replace(b"1.1", b"1.0") + chunked + b"\r\n" + chunks
    yield "HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + inner
    yield "HTTP/9.9", start.replace(b"HTTP/1.1", b"HTTP/9.9") + b"content-length: 0\r\n\r\n" + inner
    yield "TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200) + inner
    yield "bytes", bytes(range(256)) * 8
    yield "nothing but lines", b"\r\n" * 1000 + b"x\r\n\r\n"


async def smuggling(target: Target) -> Counts:
    """Refused with 400 and closed: never answered as two requests."""
    counts, num_twice = Counts(), 0
    requests = [each for _ in range(target.sized(3)) for each in smuggled(target.place)]

    async def send(turn: int) -> None:
        nonlocal num_twice
        name, data = requests[turn]
        received = await converse(target.place, data)
        counts.judge(name, first_answer(received), (400, 501, 505))
        is_twice = len(STATUS_LINE.findall(received)) > 1
        num_twice += is_twice
        counts.count(f"{name} is one request", not is_twice, f"{received[:300]!r}")

    await all_of(len(requests), send, at_a_time=AT_A_TIME)
    counts.figures["answered as two requests"] = num_twice
    return counts


async def slow_senders(target: Target) -> Counts:
    """Headers and bodies that come a byte a second, connections on which nothing or no more comes (F4)."""
    counts, late = Counts(), Answer(408)
    number = target.sized(500)
    head = target.place.head(COMPLETIONS, "content-length: 1000", *_key(target))
    kinds = cycle(
        (
            ("headers", b"GET /health HTTP/1.1\r\n", b"x"),
            ("a body", head, b" "),
            ("nothing", b"", b""),
            ("an idle connection", target.place.head("/v1/nothing", "content-length: 0", *_key(target)), b""),
        )
    )
    plans = [next(kinds) for _ in range(number)]

    async def stay(turn: int) -> None:
        name, first, more = plans[turn]
        start = time.monotonic()
        is_closed, answer = await _until_closed(target.place, first, more, _patience(name))
        counts.count(f"{name}: closed", is_closed, f"open after {time.monotonic() - start:.0f} s")
        if answer.status and name in ("headers", "a body"):
            counts.judge(name, answer, (late.status,))
        if name != "an idle connection":  # those may stay for later requests
            counts.worst("closed after, s", time.monotonic() - start)

    await all_of(number, stay, at_a_time=number)
    return counts


def _patience(name: str) -> float:
    return SECONDS if name == "an idle connection" else CLOSED_WITHIN


async def _until_closed(place: Place, first: bytes, more: bytes, seconds: float) -> tuple[bool, Answer]:
    """Send, and then a little every second. Whether the server closed in time, and what it answered."""
    reader, writer = await place.connect()

    async def drip() -> None:
        with suppress(OSError):
            writer.write(first)
            while True:
                await asyncio.sleep(1)
                writer.write(more)

    dripping, received = asyncio.create_task(drip()), b""
    try:
        async with asyncio.timeout(seconds):
            with suppress(OSError):
                while data := await reader.read(2**16):
                    received += data
        return True, first_answer(received)
    except TimeoutError:
        return False, NO_ANSWER
    finally:
        dripping.cancel()
        writer.transport.abort()


async def slow_readers(target: Target) -> Counts:
    """Streams that nobody reads (F3): their memory is bounded, and they are ended."""
    counts = Counts()
    body = body_of("x", stream=True, max_tokens=10_000, logprobs=20)

    async def stay(turn: int) -> None:
        client = await small_socket(target.place, RECEIVE_BYTES)
        loop, start = asyncio.get_running_loop(), time.monotonic()
        try:
            await loop.sock_sendall(client, request_of(target, body))
            await loop.sock_recv(client, 10)
            is_closed = await _closes_unread(client)
            counts.count("closed", is_closed, f"open after {time.monotonic() - start:.0f} s")
            counts.worst("closed after, s", time.monotonic() - start)
        finally:
            client.close()

    await all_of(target.sized(60), stay, at_a_time=30)
    return counts


async def _closes_unread(client: socket.socket) -> bool:
    """Whether the other side resets the connection; nothing is read, and an error is pending when it has."""
    deadline = time.monotonic() + CLOSED_WITHIN
    while time.monotonic() < deadline:
        if is_in_state(client, CLOSED, CLOSE_WAIT):
            return True
        await asyncio.sleep(0.1)
    return False


async def aborts(target: Target) -> Counts:
    """Clients that go before the headers, after the first token, in mid-stream and at the last token (F1)."""
    counts = Counts()
    plans = [
        (is_streamed, num_events, is_rude)
        for is_streamed, num_events in ((True, 0), (True, 1), (True, 8), (True, LAST), (False, 0))
        for is_rude in (False, True)
    ]

    async def leave(turn: int) -> None:
        is_streamed, num_events, is_rude = plans[turn % len(plans)]
        last: dict[str, Any] = {"max_tokens": 32} if num_events == LAST else {}
        reader, writer = await target.place.connect()
        if is_rude:
            reset_on_close(writer)
        writer.write(request_of(target, body_of(ENDLESS, stream=is_streamed, **last)))
        received = b""
        while not _has_come(received, num_events) and (data := await reader.read(4096)):
            received += data
        counts.count(f"{num_events} events", _has_come(received, num_events), f"{received[:200]!r}")
        writer.transport.abort() if is_rude else writer.close()

    start = time.monotonic()
    await all_of(target.sized(200), leave, at_a_time=20)
    counts.worst("slots free after, s", await _seconds_until_idle(target))
    counts.worst("all gone after, s", time.monotonic() - start)
    return counts


def _has_come(received: bytes, num_events: int) -> bool:
    return b'"finish_reason":"length"' in received if num_events == LAST else received.count(b"data: {") >= num_events


async def _seconds_until_idle(target: Target) -> float:
    """Until nothing of the attack runs; one stream may be the healthy client's."""
    start = time.monotonic()
    while time.monotonic() - start < SECONDS:
        answer = await exchange(target.place, target.place.head("/metrics", *_key(target), method="GET"))
        if not answer.body.startswith(b"#") or num_running(answer.body.decode()) <= 1:
            break
        await asyncio.sleep(0.05)
    return time.monotonic() - start


async def too_many(target: Target) -> Counts:
    """More connections than the server takes: those beyond are told so, and liveness is answered."""
    counts, held = Counts(), []
    try:
        for _ in range(60):
            held.append(await target.place.connect())
        for _ in range(target.sized(10)):
            data = request_of(target, b'{"model": "demo", "text": "x"}', "/v1/tokenize")
            counts.judge("one more", await exchange(target.place, data), (503,))
            data = target.place.head("/health", method="GET")
            counts.judge("liveness", await exchange(target.place, data), (200,))
    finally:
        for _, writer in held:
            writer.transport.abort()
    return counts


async def pipelines(target: Target) -> Counts:
    """Requests sent before the answers to the first ones: answered in order, and bounded."""
    counts = Counts()
    one = request_of(target, b'{"model": "demo", "text": "x"}', "/v1/tokenize")
    for number in (2, 50):
        received = await converse(
            target.place, one * (number - 1) + one.replace(b"\r\n", b"\r\nconnection: close\r\n", 1)
        )
        statuses = STATUS_LINE.findall(received)
        for turn in range(number):
            counts.count(
                f"request {turn} of {number}", turn < len(statuses) and b" 200 " in statuses[turn], f"{statuses}"
            )
    reader, writer = await target.place.connect()
    writer.write(request_of(target, body_of(ENDLESS, CHAT, max_tokens=20), CHAT) + one * 20_000)
    counts.judge("megabytes of requests in line", await asyncio.wait_for(read_answer(reader), SECONDS), (200, 400))
    writer.transport.abort()
    return counts


GROUP = Group(
    "connections",
    (
        Attack("chunk floods", chunk_floods),
        Attack("large heads", large_heads, max_growth=32 * MIB),
        Attack("smuggling", smuggling),
        Attack("slow senders", slow_senders, flags=SLOW),
        Attack("slow readers", slow_readers, flags=(*UNREAD, *FLOOD)),
        Attack("aborts", aborts),
        Attack("too many connections", too_many, flags=("--max-connections", "50"), is_compared=False),
        Attack("pipelines", pipelines),
    ),
    (
        Control("--max-headers", "large heads", ("--max-headers", "64MiB")),
        Control("--max-receive-time", "slow senders", ("--max-receive-time", "100000")),
        Control("--max-unread-time", "slow readers", ("--max-unread-time", "100000")),
        Control("--max-unread", "slow readers", ("--max-unread", "1GiB", "--max-unread-time", "100000")),
        Control("--max-connections", "too many connections", ("--max-connections", "100000")),
    ),
)
