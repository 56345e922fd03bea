"""What a reader gets of the chunks that come for it."""

import asyncio
import tracemalloc
from collections.abc import Callable

import msgspec
import pytest

from octavo.core.output import FinishReason, TokenChunk, TokenLogprob
from octavo.engine.worker.mailbox import MAX_AT_ONCE, Mailbox
from octavo.errors import EngineDied

FIRST = TokenChunk((1,), logprobs=(TokenLogprob(1, -1.0),), prompt_logprobs=(TokenLogprob(9, -3.0),), num_cached=4)
LAST = TokenChunk((2, 3), FinishReason.LENGTH, (TokenLogprob(2, -2.0), TokenLogprob(3, 0.0)))


packed = msgspec.msgpack.Encoder().encode


def with_logprobs(token: int) -> TokenChunk:
    top = tuple((other, -float(other)) for other in range(20))
    return TokenChunk((token,), logprobs=(TokenLogprob(token, -1.0, top),))


async def read(mailbox: Mailbox) -> TokenChunk:
    if mailbox.is_empty:
        await mailbox.arrival()
    return mailbox.take()


async def test_a_reader_that_keeps_up_gets_each_chunk_as_it_is() -> None:
    mailbox = Mailbox()
    for chunk in (FIRST, LAST):
        mailbox.put(packed(chunk))
        assert await read(mailbox) == chunk
    assert mailbox.is_empty


async def test_a_reader_that_is_behind_gets_all_that_has_come_as_one_chunk() -> None:
    mailbox = Mailbox()
    mailbox.put(packed(FIRST))
    mailbox.put(packed(LAST))
    assert await read(mailbox) == TokenChunk(
        (1, 2, 3), FinishReason.LENGTH, (*FIRST.logprobs, *LAST.logprobs), FIRST.prompt_logprobs, num_cached=4
    )
    assert mailbox.is_empty


@pytest.mark.parametrize("num_before", [1, 5, 6, 7, 300, 1000])
@pytest.mark.parametrize("chunk_of", [lambda token: TokenChunk((token,)), with_logprobs])
async def test_a_reader_that_is_far_behind_misses_nothing(
    num_before: int, chunk_of: Callable[[int], TokenChunk]
) -> None:
    chunks = [FIRST, *map(chunk_of, range(num_before)), LAST]
    mailbox = Mailbox()
    for chunk in chunks:
        mailbox.put(packed(chunk))
    received = []
    while not mailbox.is_empty:
        received.append(await read(mailbox))
    assert TokenChunk.joined(received) == TokenChunk.joined(chunks)
    assert [chunk.finish_reason for chunk in received] == [None] * (len(received) - 1) + [FinishReason.LENGTH]


async def test_a_turn_brings_many_tokens_but_few_log_probabilities() -> None:
    for chunk_of, fewest, most in ((lambda token: TokenChunk((token,)), 100, 1000), (with_logprobs, 2, 10)):
        mailbox = Mailbox()
        for token in range(2000):
            mailbox.put(packed(chunk_of(token)))
        assert fewest <= len((await read(mailbox)).tokens) <= most


async def test_a_chunk_that_is_larger_than_a_turn_comes_whole() -> None:
    large = TokenChunk(tuple(range(MAX_AT_ONCE)))
    mailbox = Mailbox()
    for chunk in (FIRST, large, LAST):
        mailbox.put(packed(chunk))
    assert [await read(mailbox) for _ in range(3)] == [FIRST, large, LAST]


async def test_what_nobody_reads_takes_little_more_memory_than_its_numbers() -> None:
    mailbox, num_chunks = Mailbox(), 6400
    tracemalloc.start()
    for token in range(num_chunks):
        mailbox.put(packed(with_logprobs(token)))
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size / num_chunks < 20 * 20


async def test_a_reader_that_waits_is_woken_once_and_gets_what_came_until_its_turn() -> None:
    mailbox = Mailbox()
    reader = asyncio.create_task(read(mailbox))
    await asyncio.sleep(0)
    mailbox.put(packed(FIRST))
    mailbox.put(packed(LAST))
    assert (await reader).tokens == (1, 2, 3)


async def test_an_error_comes_behind_the_chunks_that_were_there_before_it() -> None:
    mailbox = Mailbox()
    mailbox.put(packed(FIRST))
    mailbox.fail(EngineDied("gone"))
    assert await read(mailbox) == FIRST
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
    mailbox.put(packed(FIRST))
    with pytest.raises(asyncio.CancelledError):
        await reader
    assert await read(mailbox) == FIRST
