"""The step loop over given logits: whatever runs beside it, a request gets the tokens that it gets alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.batching.cores import Answer, Visit, alone, check_all, core, play, run, samplings, visits_of
from engine.builders import EOG_TOKEN, hashed_logits, request, scripted_runner
from octavo.core.output import FinishReason
from octavo.core.sampling import SamplingParams
from octavo.engine.runners.scripted import NextLogits

requests = st.builds(
    request,
    st.lists(st.integers(1, 15), min_size=1, max_size=30).map(tuple),
    st.integers(0, 12),
    sampling=samplings,
    ignore_eos=st.booleans(),
)
visits = visits_of(requests)


@given(visits, st.integers(1, 4), st.integers(1, 40), st.integers(0, 3))
def test_everybody_gets_the_tokens_of_the_plain_loop(
    visits: list[Visit], num_slots: int, token_budget: int, seed: int
) -> None:
    next_logits = hashed_logits(seed)
    runner = scripted_runner(next_logits, num_slots=num_slots, max_batch_tokens=max(token_budget, num_slots))
    under_test = core(runner)
    check_all(visits, play(under_test, visits), next_logits)
    assert (under_test.num_running, under_test.num_waiting) == (0, 0)


@given(visits, st.integers(2, 4), st.integers(42, 80), st.integers(4, 40))
def test_with_a_cache_for_few_everybody_still_gets_the_same_tokens(
    visits: list[Visit], num_slots: int, cache_tokens: int, token_budget: int
) -> None:
    # The longest request has 42 tokens, of which the last is never computed: each one fits alone.
    next_logits = hashed_logits(4)
    runner = scripted_runner(next_logits, num_slots=num_slots, max_batch_tokens=token_budget, cache_tokens=cache_tokens)
    check_all(visits, play(core(runner), visits), next_logits)


def test_a_full_cache_preempts_the_last_admitted() -> None:
    next_logits = hashed_logits(1)
    runner = scripted_runner(next_logits, cache_tokens=24)
    first, second = request((1,) * 10, 10, ignore_eos=True), request((2,) * 10, 10, ignore_eos=True)
    answers = run(core(runner), first, second)
    assert [answers.of(each).end for each in (first, second)] == [FinishReason.LENGTH] * 2
    assert [answers.of(each) for each in (first, second)] == [alone(each, next_logits) for each in (first, second)]
    prefills = [int((batch.tokens[batch.positions < 10] == 2).sum()) for batch in runner.batches]
    assert sum(prefills) == 20, "the second prompt was computed twice"


def test_a_request_that_does_not_fit_even_alone_ends_with_an_error_and_others_go_on() -> None:
    next_logits = hashed_logits(1)
    before, after = (request((3,) * 5, 5, ignore_eos=True) for _ in range(2))
    large = request((4,) * 30, 5)
    answers = run(core(scripted_runner(next_logits, cache_tokens=20)), before, large, after)
    assert answers.of(large) == Answer((), "The KV cache has no room for this request, even alone.")
    assert [answers.of(each) for each in (before, after)] == [alone(each, next_logits) for each in (before, after)]


def test_what_ended_or_was_cancelled_leaves_no_room_taken() -> None:
    runner = scripted_runner(cache_tokens=12)
    under_test = core(runner)
    ended, cancelled = request((1,) * 5, 1), request((2,) * 5, 5, ignore_eos=True)
    for each in (ended, cancelled):
        under_test.submit(each)
    under_test.step()
    under_test.cancel(cancelled.id)
    whole = request((3,) * 12, 1)
    assert run(under_test, whole).of(whole).end is FinishReason.LENGTH


def test_a_request_for_no_tokens_is_answered_at_once() -> None:
    under_test = core(runner := scripted_runner())
    asked = request(max_tokens=0)
    assert run(under_test, asked).of(asked) == Answer((), FinishReason.LENGTH)
    assert runner.batches == []


def ending(after: int) -> NextLogits:
    """Logits whose best token is 5, and end of generation once there are `after` tokens."""

    def next_logits(tokens: tuple[int, ...]) -> np.ndarray:
        return np.eye(16, dtype=np.float32)[EOG_TOKEN if len(tokens) == after else 5]

    return next_logits


GREEDY = SamplingParams(temperature=0.0)


@pytest.mark.parametrize("ignores", [False, True])
def test_the_end_of_generation_token_ends_it_and_is_among_the_tokens_unless_it_is_ignored(ignores: bool) -> None:
    next_logits = ending(after=5)
    asked = request((1, 2, 3), 6, sampling=GREEDY, ignore_eos=ignores)
    expected = Answer((5, 5, 0, 5, 5, 5), FinishReason.LENGTH) if ignores else Answer((5, 5, 0), FinishReason.STOP)
    assert run(core(scripted_runner(next_logits)), asked).of(asked) == expected


def test_an_end_of_generation_that_is_also_the_last_token_asked_for_is_a_stop() -> None:
    next_logits = ending(after=5)
    asked = request((1, 2, 3), 3, sampling=GREEDY)
    assert run(core(scripted_runner(next_logits)), asked).of(asked) == Answer((5, 5, 0), FinishReason.STOP)


@pytest.mark.parametrize(("prompt_length", "num_tokens"), [(60, 4), (63, 1), (64, 1)])
def test_the_end_of_the_context_ends_it(prompt_length: int, num_tokens: int) -> None:
    asked = request((1,) * prompt_length, 100, ignore_eos=True)
    answer = run(core(scripted_runner(context_length=64)), asked).of(asked)
    assert (len(answer.tokens), answer.end) == (num_tokens, FinishReason.LENGTH)


def test_there_is_room_for_as_many_tokens_as_are_asked_for() -> None:
    asked = request((1, 2), 600, ignore_eos=True)
    answer = run(core(scripted_runner(context_length=2000)), asked).of(asked)
    assert (len(answer.tokens), answer.end) == (600, FinishReason.LENGTH)
    assert answer == alone(asked, hashed_logits(0), 2000)


def test_a_long_prompt_is_computed_in_chunks_of_the_budget() -> None:
    runner = scripted_runner(max_batch_tokens=16)
    run(core(runner), request((1,) * 40, 1))
    assert [len(batch.tokens) for batch in runner.batches] == [16, 16, 8]


def test_cancelling_what_has_ended_or_never_was_does_nothing() -> None:
    under_test = core(scripted_runner())
    asked = request(max_tokens=1)
    run(under_test, asked)
    under_test.cancel(asked.id)
    under_test.cancel("nobody")
    assert not under_test.has_work


def test_logits_that_are_not_numbers_end_their_own_sequence_alone() -> None:
    def next_logits(tokens: tuple[int, ...]) -> np.ndarray:
        logits = hashed_logits(0)(tokens)
        return np.full_like(logits, np.nan) if tokens[:2] == (9, 9) and len(tokens) > 3 else logits

    sick, well = request((9, 9), 8, ignore_eos=True), request((1, 2), 8, ignore_eos=True)
    answers = run(core(scripted_runner(next_logits)), sick, well)
    assert answers.of(sick).end == "The model gave logits that are not numbers."
    assert len(answers.of(sick).tokens) == 2
    assert answers.of(well) == alone(well, hashed_logits(0))
