"""Whether log-probabilities are those of a reference."""

from collections.abc import Sequence

import numpy as np

from octavo.core.output import TokenLogprob

from . import forward
from .engines import Answer
from .tiny_gguf import TinyModel

TOLERANCE = 1e-4
"""Nats between 32-bit and 64-bit floats; about 1e-5 has been seen."""


def check_answer(model: TinyModel, prompt: tuple[int, ...], answer: Answer) -> None:
    """Every token that has a log-probability has the reference's, and so have the most probable ones in its place."""
    reference = forward.logprobs(model, (*prompt, *answer.tokens))
    assert [each.token for each in answer.prompt_logprobs] == list(prompt[1:])
    assert [each.token for each in answer.logprobs] == list(answer.tokens)
    check_rows((*answer.prompt_logprobs, *answer.logprobs), reference[:-1])


def check_rows(logprobs: Sequence[TokenLogprob], reference: forward.Array) -> None:
    """reference: shape (len(logprobs), vocabulary)."""
    tokens = [each.token for each in logprobs]
    values = np.array([each.logprob for each in logprobs])
    assert np.abs(values - reference[np.arange(len(tokens)), tokens]).max(initial=0.0) < TOLERANCE
    for each, row in zip(logprobs, reference, strict=True):
        check_top(each.top, row)


def check_top(top: Sequence[tuple[int, float]], row: forward.Array) -> None:
    """The best ones in their order; two that the reference has closer than the tolerance may stand either way."""
    ids = [token for token, _ in top]
    assert len(set(ids)) == len(ids)
    assert np.abs(np.array([value for _, value in top]) - row[ids]).max(initial=0.0) < TOLERANCE
    assert np.abs(np.sort(row)[::-1][: len(ids)] - row[ids]).max(initial=0.0) < 2 * TOLERANCE
    assert [value for _, value in top] == sorted((value for _, value in top), reverse=True)
