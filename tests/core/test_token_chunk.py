"""Chunks taken apart, so that the log-probabilities of a long prompt keep nobody waiting."""

from hypothesis import given
from hypothesis import strategies as st

from octavo.core.output import FinishReason, TokenChunk, TokenLogprob


def scored(num_tokens: int, num_top: int) -> tuple[TokenLogprob, ...]:
    return tuple(
        TokenLogprob(token, -token / 7, tuple((other, -1.0) for other in range(num_top))) for token in range(num_tokens)
    )


@given(st.integers(0, 400), st.sampled_from([0, 1, 5, 20, 1000]), st.sampled_from([None, *FinishReason]))
def test_the_parts_of_a_chunk_are_small_and_together_the_chunk(
    num_scored: int, num_top: int, reason: FinishReason | None
) -> None:
    chunk = TokenChunk((1, 2), reason, scored(2, num_top), scored(num_scored, num_top), num_cached=3, queue_seconds=0.5)
    parts = list(chunk.parts())
    assert TokenChunk.joined(parts) == chunk
    assert [part.finish_reason for part in parts[:-1]] == [None] * (len(parts) - 1)
    assert all(len(part.prompt_logprobs) * (1 + num_top) <= 128 or len(part.prompt_logprobs) == 1 for part in parts)
    assert all(part.prompt_logprobs for part in parts) or len(parts) == 1
