"""Waiting for a chunk until a deadline."""

import asyncio
import weakref
from collections.abc import AsyncGenerator

import pytest

from octavo.core.output import TokenChunk
from octavo.errors import EngineError
from octavo.service.deadline import Deadline, Deadlines

FIRST, SECOND = TokenChunk((1,)), TokenChunk((2,))


async def given(*chunks: TokenChunk) -> AsyncGenerator[TokenChunk, None]:
    for chunk in chunks:
        yield chunk


async def silence() -> AsyncGenerator[TokenChunk, None]:
    await asyncio.Event().wait()
    yield FIRST


async def test_before_the_deadline_each_chunk_comes_as_it_is_and_the_end_without_a_reason_is_an_error() -> None:
    deadline, chunks = Deadline(), given(FIRST, SECOND)
    assert [await deadline.next_of(chunks) for _ in range(2)] == [FIRST, SECOND]
    with pytest.raises(EngineError):
        await deadline.next_of(chunks)


async def test_after_the_deadline_nothing_is_read() -> None:
    deadline, chunks = Deadline(), given(FIRST, SECOND)
    deadline.expire()
    assert await deadline.next_of(chunks) is None
    assert await anext(chunks) == FIRST
    await chunks.aclose()


async def test_everyone_who_waits_is_told_and_can_go_on_with_something_else() -> None:
    deadline = Deadline()

    async def read_twice() -> TokenChunk | None:
        assert await deadline.next_of(silence()) is None
        await asyncio.sleep(0)  # raises if the task were still to be cancelled
        return await deadline.next_of(silence())

    tasks = [asyncio.create_task(read_twice()) for _ in range(3)]
    await asyncio.sleep(0)
    deadline.expire()
    assert await asyncio.gather(*tasks) == [None] * 3
    assert not any(task.cancelling() for task in tasks)


async def test_a_chunk_that_an_engine_gives_in_spite_of_the_interruption_is_not_lost() -> None:
    deadline = Deadline()

    async def stubborn() -> AsyncGenerator[TokenChunk, None]:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            yield FIRST

    chunks = stubborn()
    task = asyncio.create_task(deadline.next_of(chunks))
    await asyncio.sleep(0)
    deadline.expire()
    assert await task == FIRST
    assert await deadline.next_of(chunks) is None
    await chunks.aclose()


async def test_a_cancellation_from_elsewhere_stays_one_before_and_after_the_deadline() -> None:
    deadline = Deadline()
    task = asyncio.create_task(deadline.next_of(silence()))
    await asyncio.sleep(0)
    task.cancel()
    deadline.expire()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_every_job_has_its_own_deadline_until_all_are_over() -> None:
    deadlines = Deadlines(timeout=None)
    with deadlines.deadline() as first, deadlines.deadline() as second:
        first.expire()
        assert await first.next_of(silence()) is None
        assert await second.next_of(given(SECOND)) == SECOND
        deadlines.expire_all()
        assert await second.next_of(silence()) is None
    with deadlines.deadline() as third:
        assert await third.next_of(silence()) is None


async def test_a_timeout_counts_from_the_beginning_of_the_job() -> None:
    with Deadlines(timeout=0.001).deadline() as deadline:
        assert await deadline.next_of(silence()) is None


async def test_a_job_that_has_ended_leaves_neither_timer_nor_deadline() -> None:
    deadlines = Deadlines(timeout=3600)
    with deadlines.deadline() as deadline:
        reference = weakref.ref(deadline)
        del deadline
    assert reference() is None


async def test_what_nobody_reads_when_the_deadline_comes_is_closed_at_once_and_only_once() -> None:
    deadline, closed = Deadline(), asyncio.Event()

    async def endless() -> AsyncGenerator[TokenChunk, None]:
        try:
            while True:
                yield FIRST
        finally:
            await asyncio.sleep(0)
            assert not closed.is_set()
            closed.set()

    chunks = endless()
    async with deadline.closing(chunks):
        assert await deadline.next_of(chunks) == FIRST
        deadline.expire()
        deadline.expire()
        await closed.wait()
        assert await deadline.next_of(chunks) is None


async def test_a_block_that_ends_while_its_stream_is_being_closed_waits_for_that() -> None:
    deadline, may_close, closed = Deadline(), asyncio.Event(), asyncio.Event()

    async def slow_to_close() -> AsyncGenerator[TokenChunk, None]:
        try:
            yield FIRST
        finally:
            await may_close.wait()
            closed.set()

    async def read() -> None:
        chunks = slow_to_close()
        async with deadline.closing(chunks):
            await deadline.next_of(chunks)
            deadline.expire()
            for _ in range(3):
                await asyncio.sleep(0)
        assert closed.is_set()

    task = asyncio.create_task(read())
    for _ in range(10):
        await asyncio.sleep(0)
    assert not task.done()
    may_close.set()
    await task


async def test_what_is_read_when_the_deadline_comes_is_closed_by_its_reader() -> None:
    deadline, chunks = Deadline(), silence()
    reader = asyncio.create_task(deadline.next_of(chunks))
    async with deadline.closing(chunks):
        await asyncio.sleep(0)
        deadline.expire()
        assert await reader is None


async def test_time_that_a_job_has_had_before_it_began_is_taken_off() -> None:
    told: list[str] = []
    with Deadlines(timeout=3600).deadline(waited=3600, on_expiry=lambda: told.append("expired")) as deadline:
        assert await deadline.next_of(silence()) is None
    assert told == ["expired"]
