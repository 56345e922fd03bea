"""A draft model says what it would say itself, whatever its slots have held before."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.batching.steps import SteadySteps, rising_costs
from engine.builders import hashed_logits, request, scripted_runner
from octavo.engine.batching.draft_model import DraftModel
from octavo.engine.batching.draft_plan import DraftPlanner, Offer
from octavo.engine.batching.runner import ForwardBatch
from octavo.engine.batching.sequence import Sequence
from octavo.engine.runners.scripted import NextLogits, ScriptedRunner

MODEL = hashed_logits(3)


def greedy(next_logits: NextLogits, tokens: tuple[int, ...], length: int) -> list[int]:
    said = list(tokens)
    for _ in range(length):
        said.append(int(next_logits(tuple(said)).argmax()))
    return said[len(tokens) :]


def drafting(runner: ScriptedRunner) -> DraftModel:
    return DraftModel(runner, SteadySteps())


def in_slot(slot: int, tokens: tuple[int, ...], cache_key: str = "") -> Sequence:
    """A sequence that decodes in a slot."""
    made = Sequence(replace(request(tokens, 100), cache_key=cache_key), context_length=200)
    made.slot = slot
    return made


def num_computed(runner: ScriptedRunner) -> int:
    return sum(len(batch.tokens) for batch in runner.batches)


@dataclass(frozen=True, slots=True)
class Asked:
    """Somebody decodes in the slot, with these tokens, and may have so many drafted."""

    slot: int
    tokens: tuple[int, ...]
    length: int
    cache_key: str


asked = st.builds(
    Asked,
    st.integers(0, 3),
    st.lists(st.integers(1, 2), min_size=1, max_size=30).map(tuple),
    st.integers(0, 5),
    st.sampled_from(("", "another")),
)
steps = st.lists(st.lists(asked, min_size=1, max_size=4, unique_by=lambda each: each.slot), max_size=8)


@given(steps, st.integers(4, 40), st.none() | st.integers(20, 80))
def test_what_it_drafts_is_its_own_greedy_answer_or_nothing(
    steps: list[list[Asked]], max_batch_tokens: int, cache_tokens: int | None
) -> None:
    """The scripted runner checks by itself that the tokens of a slot follow each other."""
    model = drafting(scripted_runner(MODEL, max_batch_tokens=max_batch_tokens, cache_tokens=cache_tokens))
    for step in steps:
        sequences = [in_slot(each.slot, each.tokens, each.cache_key) for each in step]
        drafts = model.propose(sequences, [each.length for each in step])
        for each, draft in zip(step, drafts, strict=True):
            assert draft.tolist() == greedy(MODEL, each.tokens, each.length)[: len(draft)]
            assert cache_tokens is not None or len(draft) in (0, each.length)


def test_all_are_drafted_for_in_one_forward_a_token() -> None:
    runner = scripted_runner(MODEL)
    prompts = [(1, 2, 3), (2, 3), (3,)]
    drafts = drafting(runner).propose([in_slot(slot, prompt) for slot, prompt in enumerate(prompts)], [4, 2, 3])
    assert [draft.tolist() for draft in drafts] == [
        greedy(MODEL, prompt, length) for prompt, length in zip(prompts, (4, 2, 3), strict=True)
    ]
    assert [len(batch.tokens) for batch in runner.batches] == [6, 3, 2, 1]


@pytest.mark.parametrize("num_right", [0, 1, 3])
def test_only_what_was_not_drafted_right_is_computed_again(num_right: int) -> None:
    runner = scripted_runner(MODEL)
    model, sequence = drafting(runner), in_slot(0, (1, 2, 3, 4))
    [draft] = model.propose([sequence], [3])
    for token in (*draft.tolist()[:num_right], 9):
        sequence.append(token)
    before = num_computed(runner)
    model.propose([sequence], [1])
    assert num_computed(runner) - before == (2 if num_right == 3 else 1)


def test_who_is_far_behind_is_drafted_for_once_the_model_has_caught_up() -> None:
    model = drafting(scripted_runner(MODEL, max_batch_tokens=16))
    far, near = in_slot(0, tuple(range(1, 15)) * 2), in_slot(1, (1, 2))
    lengths = [[len(draft) for draft in model.propose([far, near], [3, 3])] for _ in range(3)]
    assert lengths == [[0, 3], [3, 3], [3, 3]]


def test_prompts_are_caught_up_with_in_forwards_that_keep_nobody_waiting_for_long() -> None:
    runner = scripted_runner(MODEL, max_batch_tokens=16)
    DraftModel(runner, rising_costs(per_token=0.01, first=0.02)).propose([in_slot(0, tuple(range(1, 15)))], [1])
    assert num_computed(runner) == 9


def test_what_another_slot_holds_of_a_sequence_is_copied() -> None:
    runner = scripted_runner(MODEL, max_batch_tokens=64)
    model, prompt = drafting(runner), tuple(range(1, 15)) * 2
    model.propose([in_slot(0, prompt)], [1])
    [draft] = model.propose([in_slot(2, (*prompt, 5))], [2])
    assert draft.tolist() == greedy(MODEL, (*prompt, 5), 2)
    assert num_computed(runner) == len(prompt) + 2


def test_nothing_is_kept_for_those_with_whom_it_may_not_be_shared() -> None:
    runner = scripted_runner(MODEL, max_batch_tokens=64)
    model, prompt = drafting(runner), tuple(range(1, 15)) * 2
    for slot in (0, 0, 2):
        model.propose([in_slot(slot, prompt, cache_key=f"user {slot} {num_computed(runner)}")], [1])
    assert num_computed(runner) == 3 * len(prompt)


def test_a_full_cache_ends_the_drafts() -> None:
    model = drafting(scripted_runner(MODEL, cache_tokens=6))
    assert [len(draft) for draft in model.propose([in_slot(0, (1, 2, 3, 4))], [5])] == [3]
    assert [len(draft) for draft in model.propose([in_slot(1, (1, 2, 3, 4))], [5])] == [0]


def planned(offers: list[Offer], drafting_seconds: float, max_tokens: int = 100) -> list[int]:
    """Where a token more costs a step a tenth more."""
    costs, drafting_costs = rising_costs(per_token=0.1), rising_costs(per_token=0.0, first=drafting_seconds)
    return DraftPlanner(costs, drafting_costs).plan(offers, range(len(offers)), max_tokens).lengths.tolist()


def test_what_drafting_takes_is_weighed_against_what_it_gives() -> None:
    dear = Offer(0.9, 8, takes_time=True)
    assert planned([dear], drafting_seconds=0.001) == planned([Offer(0.9, 8)], drafting_seconds=9.9) == [8]
    assert 0 < planned([dear], drafting_seconds=0.3)[0] < 8
    assert planned([dear], drafting_seconds=2.0) == [0]
    assert planned([Offer(0.5, 8, takes_time=True), Offer(0.9, 3)], drafting_seconds=9.9) == [0, 3]


def test_a_forward_of_the_draft_model_is_paid_for_once_by_all() -> None:
    dear = Offer(0.9, 8, takes_time=True)
    assert planned([dear] * 4, drafting_seconds=0.6) == [1, 1, 1, 1]
    assert planned([dear] * 4, drafting_seconds=4 * 0.6) == [0, 0, 0, 0]


@given(
    st.lists(st.builds(Offer, st.floats(0, 1), st.integers(0, 6), st.booleans()), min_size=1, max_size=6),
    st.permutations(range(7)),
    st.integers(0, 20),
    st.floats(0, 1),
    st.floats(0, 1),
)
def test_a_plan_takes_no_more_than_is_offered_and_is_as_fast_as_none(
    offers: list[Offer], slots: list[int], max_tokens: int, per_token: float, drafting_seconds: float
) -> None:
    costs, drafting_costs = rising_costs(per_token), rising_costs(0.0, first=drafting_seconds)
    plan = DraftPlanner(costs, drafting_costs).plan(offers, slots[: len(offers)], max_tokens)
    lengths = plan.lengths.tolist()
    assert all(0 <= length <= offer.length for length, offer in zip(lengths, offers, strict=True))
    assert sum(lengths) <= max_tokens
    promised = sum(
        sum(offer.rate**place for place in range(length + 1)) for length, offer in zip(lengths, offers, strict=True)
    )
    depths = [length for length, offer in zip(lengths, offers, strict=True) if offer.takes_time]

    def seconds(lengths: list[int]) -> float:
        batch = ForwardBatch.build(
            sorted((slot, 0, np.zeros(1 + length, np.int32), 1) for slot, length in zip(slots, lengths, strict=False))
        )
        return float(costs.seconds(np.array([len(batch.tokens)]), batch.num_graphs)[0])

    assert plan.speed == pytest.approx(promised / (seconds(lengths) + drafting_seconds * max(depths, default=0)))
    assert plan.speed >= len(offers) / seconds([0] * len(offers)) - 1e-9


def test_a_guess_that_needs_a_graph_of_its_own_has_to_be_worth_it() -> None:
    sure, likely = Offer(1.0, 2), Offer(0.6, 2)
    planner = DraftPlanner(rising_costs(per_token=0.1))
    assert planner.plan([likely], [0], 100).lengths.tolist() == [2]
    assert planner.plan([likely, *[Offer(0.0, 0)] * 7], range(8), 100).lengths.tolist() == [0] * 8
    assert planner.plan([sure] * 8, range(8), 100).lengths.tolist() == [2] * 8, "all are in two graphs"
    assert planner.plan([sure] * 8, range(0, 16, 2), 100).lengths.tolist() == [2] * 8, "as many as without"
