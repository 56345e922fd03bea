"""What a reader gets of the chunks that come for it."""

import asyncio
import tracemalloc

import pytest

from octavo.core.output import FinishReason, TokenChunk, TokenLogprob
from octavo.engine.worker.mailbox import BLOCK, Mailbox
from octavo.errors import EngineDied

FIRST = TokenChunk((1,), logprobs=(TokenLogprob(1, -1.0),), prompt_logprobs=(TokenLogprob(9, -3.0),), num_cached=4)
LAST = TokenChunk((2, 3), FinishReason.LENGTH, (TokenLogprob(2, -2.0), TokenLogprob(3, 0.0)))


async def read(mailbox: Mailbox) -> TokenChunk:
    if mailbox.is_empty:
        await mailbox.arrival()
    return mailbox.take()


async def test_a_reader_that_keeps_up_gets_each_chunk_as_it_is() -> None:
    mailbox = Mailbox()
    for chunk in (FIRST, LAST):
        mailbox.put(chunk)
        assert await read(mailbox) is chunk
    assert mailbox.is_empty


async def test_a_reader_that_is_behind_gets_all_that_has_come_as_one_chunk() -> None:
    mailbox = Mailbox()
    mailbox.put(FIRST)
    mailbox.put(LAST)
    assert await read(mailbox) == TokenChunk(
        (1, 2, 3), FinishReason.LENGTH, (*FIRST.logprobs, *LAST.logprobs), FIRST.prompt_logprobs, num_cached=4
    )
    assert mailbox.is_empty


@pytest.mark.parametrize("num_before", [BLOCK - 2, BLOCK - 1, BLOCK, 3 * BLOCK, 3 * BLOCK + 7])
async def test_a_reader_that_is_far_behind_misses_nothing(num_before: int) -> None:
    mailbox = Mailbox()
    mailbox.put(FIRST)
    for token in range(num_before):
        mailbox.put(TokenChunk((token,)))
    mailbox.put(LAST)
    whole = await read(mailbox)
    assert whole.tokens == (1, *range(num_before), 2, 3)
    assert (whole.finish_reason, whole.num_cached) == (FinishReason.LENGTH, FIRST.num_cached)
    assert whole.logprobs == (*FIRST.logprobs, *LAST.logprobs)
    assert mailbox.is_empty


async def test_what_nobody_reads_takes_little_more_memory_than_its_numbers() -> None:
    mailbox, num_chunks = Mailbox(), 100 * BLOCK
    tracemalloc.start()
    for token in range(num_chunks):
        top = tuple((other, -float(other)) for other in range(20))
        mailbox.put(TokenChunk((token,), logprobs=(TokenLogprob(token, -1.0, top),)))
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size / num_chunks < 20 * 20
    whole = await read(mailbox)
    assert whole.tokens == tuple(range(num_chunks))
    assert whole.logprobs[-1] == TokenLogprob(num_chunks - 1, -1.0, top)


async def test_a_reader_that_waits_is_woken_once_and_gets_what_came_until_its_turn() -> None:
    mailbox = Mailbox()
    reader = asyncio.create_task(read(mailbox))
    await asyncio.sleep(0)
    mailbox.put(FIRST)
    mailbox.put(LAST)
    assert (await reader).tokens == (1, 2, 3)


async def test_an_error_comes_behind_the_chunks_that_were_there_before_it() -> None:
    mailbox = Mailbox()
    mailbox.put(FIRST)
    mailbox.fail(EngineDied("gone"))
    assert await read(mailbox) is FIRST
    with pytest.raises(EngineDied, match="gone"):
        await read(mailbox)


async def test_an_error_wakes_a_reader_that_waits() -> None:
    mailbox = Mailbox()
    reader = asyncio.create_task(read(mailbox))
    await asyncio.sleep(0)
    mailbox.fail(EngineDied("gone"))
    with pytest.raises(EngineDied):
        await reader


async def test_what_comes_after_a_reader_has_gone_away_disturbs_nobody() -> None:
    mailbox = Mailbox()
    reader = asyncio.create_task(read(mailbox))
    await asyncio.sleep(0)
    reader.cancel()
    mailbox.put(FIRST)
    with pytest.raises(asyncio.CancelledError):
        await reader
    assert await read(mailbox) is FIRST
