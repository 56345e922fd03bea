"""What sequences share never shows in their tokens, only in what is computed."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.batching.cores import Answers, Visit, alone, check_all, core, play, run, samplings, visits_of
from engine.builders import hashed_logits, request, runner_limits, scripted_runner
from octavo.core.request import LogprobParams
from octavo.engine.batching.composer import LoneSteps, MixedSteps
from octavo.engine.batching.runner import ForwardBatch, Snapshot
from octavo.engine.runners.scripted import ScriptedRunner

STEMS = ((1, 2, 3, 4) * 8, (5, 6, 7) * 9, (1, 2, 3, 4) * 5 + (9,) * 10)
COMPOSERS = pytest.mark.parametrize("composer", [MixedSteps, LoneSteps])

prompts = st.builds(
    lambda stem, length, tail: (*stem[:length], *tail),
    st.sampled_from(STEMS),
    st.integers(0, 32),
    st.lists(st.integers(1, 15), min_size=1, max_size=4),
)
requests = st.builds(
    request,
    prompts,
    st.integers(0, 12),
    sampling=samplings,
    ignore_eos=st.booleans(),
    stop_tokens=st.frozensets(st.integers(0, 15), max_size=3),
    min_tokens=st.integers(0, 5),
    logprobs=st.builds(LogprobParams, st.booleans(), st.booleans(), st.integers(0, 5)),
)
visits = visits_of(requests)


@COMPOSERS
@given(visits, st.integers(1, 4), st.integers(1, 40), st.integers(0, 20), st.booleans(), st.integers(0, 200))
def test_everybody_gets_what_the_plain_loop_gives(
    composer: type,
    visits: list[Visit],
    num_slots: int,
    token_budget: int,
    spare_rows: int,
    can_share: bool,
    max_saved: int,
) -> None:
    next_logits = hashed_logits(3)
    runner = scripted_runner(
        next_logits,
        num_slots=num_slots,
        max_batch_tokens=max(token_budget, num_slots),
        max_logits=num_slots + spare_rows,
        can_share=can_share,
    )
    under_test = core(runner, composer, max_saved)
    check_all(visits, play(under_test, visits), next_logits)
    assert (under_test.num_running, under_test.num_waiting) == (0, 0)


@COMPOSERS
@given(visits, st.integers(2, 4), st.integers(50, 90), st.integers(4, 40), st.integers(0, 200))
def test_with_a_cache_for_few_everybody_still_gets_the_same(
    composer: type, visits: list[Visit], num_slots: int, cache_tokens: int, token_budget: int, max_saved: int
) -> None:
    # The longest request has 48 tokens: each one fits alone.
    next_logits = hashed_logits(4)
    runner = scripted_runner(next_logits, num_slots=num_slots, max_batch_tokens=token_budget, cache_tokens=cache_tokens)
    check_all(visits, play(core(runner, composer, max_saved), visits), next_logits)


def computed(runner: ScriptedRunner) -> int:
    return sum(len(batch.tokens) for batch in runner.batches)


PROMPT = tuple(range(1, 11)) * 4


def test_samples_of_a_prompt_share_its_prefill() -> None:
    runner = scripted_runner()
    samples = [request(PROMPT, 3, ignore_eos=True) for _ in range(4)]
    answers = run(core(runner), *samples)
    assert computed(runner) == 40 + 2 + 3 * (1 + 2), (
        "the prompt once, its last token and two more for each other sample"
    )
    assert [answers.num_cached(each) for each in samples] == [0, 39, 39, 39]
    assert [answers.of(each) for each in samples] == [alone(samples[0], hashed_logits(0))] * 4


def test_a_finished_sequence_leaves_its_tokens_to_the_next_that_begins_alike() -> None:
    runner = scripted_runner()
    under_test = core(runner)
    first = request(PROMPT, 5, ignore_eos=True)
    answer = run(under_test, first).of(first)
    turn = request((*PROMPT, *answer.tokens, 7, 8), 1)
    assert run(under_test, turn).num_cached(turn) == 40 + 4, "the last token drawn was never computed"


def test_nobody_waits_for_tokens_that_are_still_to_be_drawn() -> None:
    asked = request((1, 2, 3, 4) * 5, 40, ignore_eos=True)
    answer = alone(asked, hashed_logits(0))
    under_test = core(scripted_runner())
    under_test.submit(asked)
    for _ in range(5):
        under_test.step()
    follower = request((*asked.prompt_tokens, *answer.tokens[:30]), 1)
    under_test.submit(follower)
    under_test.step()
    assert under_test.running == {asked.id, follower.id}


def test_a_cancelled_sequence_leaves_what_it_had_computed() -> None:
    under_test = core(scripted_runner(max_batch_tokens=20))
    gone = request(PROMPT, 5)
    under_test.submit(gone)
    under_test.step()
    under_test.cancel(gone.id)
    after = request(PROMPT, 1)
    assert run(under_test, after).num_cached(after) == 20


CONVERSATIONS = [(token,) * 30 for token in range(1, 7)]


def test_conversations_take_turns_in_one_slot_and_each_finds_its_own_tokens() -> None:
    under_test = core(scripted_runner(num_slots=1), max_saved=1000)
    for prompt in CONVERSATIONS:
        run(under_test, request(prompt, 1))
    turns = [request((*prompt, 8, 9), 1) for prompt in CONVERSATIONS]
    assert [run(under_test, turn).num_cached(turn) for turn in turns] == [30] * 6


def test_of_more_conversations_than_may_be_saved_those_used_last_are_kept() -> None:
    under_test = core(scripted_runner(num_slots=1), max_saved=100)
    for prompt in CONVERSATIONS:
        run(under_test, request(prompt, 1))
    turns = [request((*prompt, 8, 9), 1) for prompt in reversed(CONVERSATIONS)]
    assert [run(under_test, turn).num_cached(turn) for turn in turns] == [30, 30, 30, 30, 0, 0]


def test_a_short_request_with_the_same_beginning_does_not_cost_a_long_conversation() -> None:
    under_test = core(scripted_runner(num_slots=1), max_saved=1000)
    run(under_test, request(PROMPT, 1))
    run(under_test, request((*PROMPT[:20], 9, 9), 1))
    turn = request((*PROMPT, 9), 1)
    assert run(under_test, turn).num_cached(turn) == 40


def test_tokens_are_shared_only_under_the_same_cache_key() -> None:
    under_test = core(scripted_runner(num_slots=2), max_saved=1000)
    asked = [replace(request(PROMPT, 1), cache_key=key) for key in ("a", "b", "a", "b")]
    assert [run(under_test, each).num_cached(each) for each in asked] == [0, 0, 39, 39]


def test_gaps_that_nobody_fills_are_closed() -> None:
    runner = scripted_runner(num_slots=4)
    under_test = core(runner)
    long, short = [request((token, 1), 30, ignore_eos=True) for token in (3, 4)], request((1, 2), 2, ignore_eos=True)
    for each in (long[0], short, long[1]):
        under_test.submit(each)
    answers = Answers()
    for _ in range(5):
        answers.take(under_test.step())
    assert runner.batches[-1].slots.tolist() == [0, 1]
    while under_test.has_work:
        answers.take(under_test.step())
    assert [answers.of(each) for each in long] == [alone(each, hashed_logits(0)) for each in long]


def test_who_waits_for_a_shared_prompt_lets_others_pass() -> None:
    under_test = core(scripted_runner(num_slots=2, max_batch_tokens=8, context_length=64))
    leader, follower, other = request(PROMPT, 2), request(PROMPT, 2), request((9, 9), 1)
    for each in (leader, follower, other):
        under_test.submit(each)
    under_test.step()
    assert (under_test.num_running, under_test.num_waiting) == (2, 1)


def test_a_scored_prompt_is_computed_whole_and_no_step_has_more_rows_than_allowed() -> None:
    runner = scripted_runner(max_batch_tokens=16, max_logits=6)
    under_test = core(runner)
    run(under_test, request(PROMPT, 1))
    num_before = computed(runner)
    scored = request(PROMPT, 0, logprobs=LogprobParams(of_prompt=True, num_top=2))
    answers = run(under_test, scored)
    assert answers.of(scored) == alone(scored, hashed_logits(0))
    assert computed(runner) - num_before == 39, "the last token is not needed, and none is found computed"
    assert max(int(batch.wants_logits.sum()) for batch in runner.batches) == 6


class WatchedRunner(ScriptedRunner):
    """shapes: by all tokens that a slot then held, (first position, number of tokens) of the batches that got there."""

    def __init__(self) -> None:
        super().__init__(runner_limits(num_slots=3, max_batch_tokens=8, max_logits=8), hashed_logits(0))
        self._held: dict[int, tuple[int, ...]] = {}
        self.shapes: dict[tuple[int, ...], set[tuple[int, int]]] = {}

    def restore(self, slot: int, snapshot: Snapshot) -> None:
        super().restore(slot, snapshot)
        self._held[slot] = tuple(self._cache[slot])

    def forward(self, batch: ForwardBatch) -> np.ndarray:
        [slot] = set(batch.slots.tolist())
        start = int(batch.positions[0])
        held = self._held[slot] = (*self._held.get(slot, ())[:start], *batch.tokens.tolist())
        self.shapes.setdefault(held, set()).add((start, len(batch.tokens)))
        return super().forward(batch)


@given(st.lists(prompts, min_size=1, max_size=6), st.integers(0, 3))
def test_lone_steps_compute_every_token_in_the_same_shape_whatever_else_runs(
    prompts: list[tuple[int, ...]], which: int
) -> None:
    def shapes(*asked: tuple[int, ...]) -> dict[tuple[int, ...], set[tuple[int, int]]]:
        runner = WatchedRunner()
        run(core(runner, LoneSteps), *(request(prompt, 3, ignore_eos=True) for prompt in asked))
        return runner.shapes

    together, by_itself = shapes(*prompts), shapes(prompts[which % len(prompts)])
    for tokens, shape in by_itself.items():
        assert together.get(tokens, shape) == shape
