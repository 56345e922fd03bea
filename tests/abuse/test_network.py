"""The network's own judges: servers and proxies that lie are seen."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress

import pytest
from probes.answer import Answer, Place, exchange, first_answer
from probes.bad_network import FAULTS, BadNetwork, End, Fault, Side
from probes.cases import COMPLETIONS
from probes.counts import Counts
from probes.groups.network import Request, Seen, Whole, look
from probes.http_fuzz import EXPECTED, Received, Sending, generated_sendings, judge, received_for
from probes.target import Target

TEXT = "one two three"
PLAIN = Request(COMPLETIONS, is_streamed=False, has_log_prompt=False)
STREAMED = Request(COMPLETIONS, is_streamed=True, has_log_prompt=False)
PATIENCE = 0.5


def event(text: str) -> bytes:
    return b"data: " + json.dumps({"choices": [{"text": text}]}).encode() + b"\n\n"


DONE = b"data: [DONE]\n\n"
BODY = json.dumps({"choices": [{"text": TEXT}]}).encode()
GET = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"
HEAD = GET.replace(b"GET", b"HEAD")
LAST = b"HTTP/1.1 200 OK\r\nx-request-id: the-last-request\r\ncontent-length: 0\r\n\r\n"


def framed(body: bytes, length: int | None = None) -> bytes:
    return b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % (len(body) if length is None else length) + body


def unframed(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\n\r\n" + body


@asynccontextmanager
async def answering(answer: bytes) -> AsyncIterator[Place]:
    """A server that says this to all, and closes."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with closing(writer), suppress(OSError, EOFError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(answer)
            writer.write_eof()
            await reader.read()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield Place(*server.sockets[0].getsockname()[:2])
    finally:
        server.close()


@pytest.mark.parametrize(
    ("request_", "answer", "seen"),
    [
        (PLAIN, framed(BODY), Seen.WHOLE),
        (PLAIN, framed(BODY, len(BODY) + 1), Seen.ERROR),
        (PLAIN, b"", Seen.ERROR),
        (PLAIN, framed(BODY.replace(b" three", b"")), Seen.SHORT),
        (PLAIN, unframed(BODY[:-5]), Seen.UNMARKED),
        (STREAMED, framed(event("one two") + event(" three") + DONE), Seen.WHOLE),
        (STREAMED, framed(event("one two"), 1000), Seen.ERROR),
        (STREAMED, framed(event("one two") + b'data: {"error": {"message": "no"}}\n\n'), Seen.ERROR),
        (STREAMED, framed(event("one two") + DONE), Seen.SHORT),
        (STREAMED, framed(event("one two")), Seen.UNMARKED),
        (STREAMED, unframed(event("one two")), Seen.UNMARKED),
    ],
)
async def test_a_cut_is_told_from_an_end(request_: Request, answer: bytes, seen: Seen) -> None:
    async with answering(answer) as place:
        assert await look(place, request_, Whole(TEXT, len(BODY)), 60) is seen


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
async def test_a_network_carries_all_or_so_many_bytes(fault: Fault) -> None:
    async with answering(framed(BODY)) as place:
        network = BadNetwork(place, fault, num_bytes=40)
        async with network.serving() as entrance:
            patience = PATIENCE if fault.end is End.SILENCE else 60
            seen = await look(entrance, PLAIN, Whole(TEXT, len(BODY)), patience)
        assert seen is (Seen.WHOLE if fault.end is None else Seen.ERROR)
        assert network.num_ended == (fault.end is not None)
        assert network.has_acted == (fault.share == 1)  # of so few pieces none is lost


async def test_a_network_without_a_fault_has_not_acted() -> None:
    async with answering(framed(BODY)) as place:
        network = BadNetwork(place, Fault("nothing"))
        async with network.serving() as entrance:
            assert await look(entrance, PLAIN, Whole(TEXT, len(BODY)), 60) is Seen.WHOLE
        assert not network.has_acted


async def test_a_network_that_falls_silent_closes_nothing() -> None:
    fault = Fault("silence", end=End.SILENCE, side=Side.ANSWER)
    async with answering(framed(BODY)) as place, BadNetwork(place, fault, 40).serving() as entrance:
        reader, writer = await entrance.connect()
        with closing(writer):
            writer.write(b"GET / HTTP/1.1\r\n\r\n")
            assert await reader.readexactly(40) == framed(BODY)[:40]
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(reader.read(), PATIENCE)


@pytest.mark.parametrize(
    ("answer", "is_whole"),
    [
        (framed(BODY), True),
        (framed(BODY, len(BODY) + 1), False),
        (unframed(BODY), True),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n", False),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n", True),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nx\r\n", False),
        (b"HTTP/1.1 200 OK\r\ncontent-le", False),
        (b"", False),
    ],
)
async def test_an_answer_is_whole_by_its_framing(answer: bytes, is_whole: bool) -> None:
    async with answering(answer) as place:
        assert (await exchange(place, GET)).is_whole is is_whole


@pytest.mark.parametrize(
    ("data", "received"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", Received(b"", is_closed=True)),
        (GET, Received(framed(BODY) * 2, is_closed=False)),
        (GET, Received(framed(BODY) + b"x", is_closed=True)),
        (GET, Received(framed(BODY), is_closed=True, behind=framed(BODY))),
        (GET, Received(framed(BODY), is_closed=True, behind=framed(BODY) + LAST)),
        (GET, Received(framed(BODY), is_closed=True, behind=LAST[:-1])),
        (HEAD, Received(LAST.replace(b"length: 0", b"length: 1") + b"x", is_closed=True)),
        (HEAD, Received(framed(BODY) * 2, is_closed=True)),
        (HEAD, Received(framed(b"", 15), is_closed=True, behind=framed(b"", 15))),
        (b"\r\n", Received(b"", is_closed=False)),
        (b"x", Received(b"SSH-2.0\r\n", is_closed=True)),
        (b"x", Received(framed(BODY, 1000), is_closed=True)),
        (b"GET / HTTP/1.1\r\nhost: x\r\n\r\n", Received(b"HTTP/1.1 408 No\r\n\r\n", is_closed=True)),
        (b"x", Received(b"HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n", is_closed=False)),
        (b"x", Received(b"HTTP/1.1 400 No\r\ncontent-length: 0\r\n\r\n", is_closed=False)),
        (b"HEAD / HTTP/1.1\r\n\r\n", Received(b"HTTP/1.1 500 No\r\ncontent-length: 9\r\n\r\n", is_closed=False)),
    ],
)
def test_what_is_no_answer_to_a_request_is_found(data: bytes, received: Received) -> None:
    counts = Counts()
    judge(counts, Sending(data), received, EXPECTED)
    assert not counts.is_right


def test_a_client_that_ends_gets_a_whole_answer_or_none() -> None:
    counts = Counts()
    judge(counts, Sending(GET, ends=True), Received(framed(BODY)[:-1], is_closed=True), EXPECTED)
    assert not counts.is_right


@pytest.mark.parametrize(
    ("sending", "received"),
    [
        (Sending(b"\r\n"), Received(b"", is_closed=True)),
        (Sending(b"GET / HTTP/1.1\r\n\r\n", ends=True), Received(b"", is_closed=True)),
        (Sending(b"x"), Received(framed(BODY) + b"HTTP/1.1 4", is_closed=False)),
        (Sending(b"x"), Received(b"HTTP/1.1 100 Continue\r\n\r\n" + framed(BODY), is_closed=False)),
        (Sending(b"x"), Received(unframed(BODY), is_closed=True)),
        (Sending(GET), Received(framed(BODY), is_closed=True, behind=LAST)),
        (Sending(HEAD), Received(framed(b"", 15), is_closed=True, behind=LAST)),
        (Sending(GET * 2), Received(framed(BODY) * 2, is_closed=False)),
        (Sending(b"HEAD / HTTP/1.1\r\n\r\n"), Received(framed(b"", 15), is_closed=False)),
    ],
)
def test_what_is_one_is_right(sending: Sending, received: Received) -> None:
    counts = Counts()
    judge(counts, sending, received, EXPECTED)
    assert (counts.is_right, counts.num_sent) == (True, 1)


async def test_one_request_with_two_answers_is_found() -> None:
    async with answering(framed(BODY) * 2) as place:
        sending, counts = Sending(GET), Counts()
        judge(counts, sending, await received_for(place, sending), EXPECTED)
    assert not counts.is_right


def test_of_many_answers_the_first_is_read() -> None:
    headers = {"content-length": str(len(BODY))}
    assert first_answer(framed(BODY) * 2) == Answer(200, headers, BODY, has_more=True)
    assert first_answer(framed(BODY)) == Answer(200, headers, BODY)
    assert first_answer(b"no HTTP") == Answer(0, is_whole=False)


def test_the_same_seed_sends_the_same() -> None:
    one, same, other = (generated_sendings(Target("http://127.0.0.1:80", seed=seed), 20) for seed in (1, 1, 2))
    assert one == same
    assert one != other
    assert len(set(one)) == 20
