"""Several streams of events as one."""

import asyncio
from collections.abc import AsyncGenerator, Sequence

import pytest

from octavo.core.output import TextEvent
from octavo.errors import EngineError, EngineUnavailable
from octavo.service.merge import merge


class Source:
    """A stream whose events the test sends. A sent exception is raised in it."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.closed = asyncio.Event()
        self._items: asyncio.Queue[str | BaseException | None] = asyncio.Queue()

    def send(self, *items: str | BaseException | None) -> None:
        for item in items:
            self._items.put_nowait(item)

    async def events(self) -> AsyncGenerator[TextEvent, None]:
        try:
            while (item := await self._items.get()) is not None:
                if isinstance(item, BaseException):
                    raise item
                yield TextEvent(self.index, item, 1)
        finally:
            await asyncio.sleep(0)  # to close takes a turn of the loop, or several
            await asyncio.sleep(0)
            self.closed.set()


def sources(number: int) -> list[Source]:
    return [Source(index) for index in range(number)]


def merged(streams: Sequence[Source]) -> AsyncGenerator[TextEvent, None]:
    return merge([stream.events() for stream in streams], max_open=len(streams))


async def next_text(events: AsyncGenerator[TextEvent, None]) -> str:
    return (await anext(events)).text


async def test_events_come_in_the_order_of_arrival_and_the_end_when_all_have_ended() -> None:
    first, second = streams = sources(2)
    events = merged(streams)
    second.send("a")
    assert await next_text(events) == "a"
    first.send("b")
    assert await next_text(events) == "b"
    first.send("c", None)
    assert await next_text(events) == "c"
    second.send("d", None)
    assert [event.text async for event in events] == ["d"]
    assert first.closed.is_set()
    assert second.closed.is_set()


async def test_the_order_within_a_stream_is_kept() -> None:
    streams = sources(5)
    for stream in streams:
        stream.send(*map(str, range(50)), None)
    events = [event async for event in merged(streams)]
    for stream in streams:
        assert [event.text for event in events if event.index == stream.index] == [*map(str, range(50))]


async def test_streams_open_when_their_turn_comes_and_never_more_than_may_be_open() -> None:
    streams = sources(4)
    opened: list[int] = []

    async def opening(source: Source) -> AsyncGenerator[TextEvent, None]:
        opened.append(source.index)
        async for event in source.events():
            yield event

    events = merge((opening(source) for source in streams), max_open=2)
    streams[1].send("a", None)
    assert await next_text(events) == "a"
    streams[2].send("b")
    assert await next_text(events) == "b"
    assert opened == [0, 1, 2]
    await events.aclose()
    assert opened == [0, 1, 2]


async def test_no_streams_are_an_empty_stream() -> None:
    assert [event async for event in merge([], max_open=1)] == []


async def test_closing_closes_every_stream_before_it_returns() -> None:
    streams = sources(9)
    events = merged(streams)
    streams[4].send("a")
    await anext(events)
    await events.aclose()
    assert all(stream.closed.is_set() for stream in streams)


async def test_an_error_of_one_stream_comes_after_what_arrived_before_it_and_closes_the_others() -> None:
    first, second, third = streams = sources(3)
    events = merged(streams)
    first.send("a", EngineError("broken"))
    assert await next_text(events) == "a"
    with pytest.raises(EngineError, match="broken"):
        await anext(events)
    assert second.closed.is_set()
    assert third.closed.is_set()


async def test_errors_of_several_streams_at_once_raise_the_first() -> None:
    streams = sources(3)
    for stream in streams:
        stream.send(EngineError(f"broken {stream.index}"))
    with pytest.raises(EngineError, match="broken 0"):
        await anext(merged(streams))


async def test_an_engine_that_cancels_its_own_stream_leaves_no_reader_waiting() -> None:
    first, second = streams = sources(2)
    first.send(asyncio.CancelledError())
    with pytest.raises(EngineUnavailable):
        await anext(merged(streams))
    assert second.closed.is_set()


async def test_cancelling_the_reader_closes_every_stream_before_the_cancellation_goes_on() -> None:
    streams = sources(3)
    events = merged(streams)
    streams[0].send("a")
    await anext(events)
    reader = asyncio.ensure_future(anext(events))
    await asyncio.sleep(0)
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
    assert all(stream.closed.is_set() for stream in streams)


async def test_a_reader_that_is_cancelled_again_while_it_closes_still_closes_every_stream() -> None:
    streams = sources(3)
    events = merged(streams)
    streams[0].send("a")
    await anext(events)
    closing = asyncio.ensure_future(events.aclose())
    while not closing.done():
        closing.cancel()
        await asyncio.sleep(0)
    assert closing.cancelled()
    assert all(stream.closed.is_set() for stream in streams)


async def test_a_reader_that_does_not_read_stops_the_streams_and_can_go_on_later() -> None:
    num_made = 0

    async def endless(index: int) -> AsyncGenerator[TextEvent, None]:
        nonlocal num_made
        while True:
            await asyncio.sleep(0)
            num_made += 1
            yield TextEvent(index, "x", 1)

    events = merge([endless(index) for index in range(4)], max_open=4)
    for num_read in range(1, 20):
        await anext(events)
        for _ in range(100):
            await asyncio.sleep(0)
        assert num_made <= num_read + 4 + 4
    await events.aclose()


async def test_a_stream_can_end_while_nobody_reads() -> None:
    streams = sources(2)
    events = merged(streams)
    streams[0].send("a", "b", "c")
    streams[1].send(None)
    assert await next_text(events) == "a"
    await streams[1].closed.wait()
    streams[0].send(None)
    assert [event.text async for event in events] == ["b", "c"]
