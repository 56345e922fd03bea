"""The step loop with requests under several adapters: one adapter a step, and nobody's answer shows the others."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.batching.cores import (
    ADAPTERS,
    AdaptedRunner,
    Answers,
    Visit,
    adapted,
    alone,
    check_all,
    core,
    play,
    run,
    samplings,
    visits_of,
)
from engine.builders import hashed_logits, request, runner_limits
from octavo.core.adapters import Adapter
from octavo.core.request import GenerationRequest, LogprobParams
from octavo.engine.batching.composer import LoneSteps, MixedSteps
from octavo.engine.batching.core import EngineCore
from octavo.engine.runners.scripted import NextLogits
from octavo.errors import AdapterRefused

KEYS = ("", *(adapter.key for adapter in ADAPTERS))
STEMS = ((1, 2, 3, 4) * 8, (5, 6, 7) * 9)
COMPOSERS = pytest.mark.parametrize("composer", [MixedSteps, LoneSteps])
LOST = "The engine has lost the adapter of this request."

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
    logprobs=st.builds(LogprobParams, st.booleans(), st.booleans(), st.integers(0, 3)),
    adapter=st.sampled_from(KEYS),
)
visits = visits_of(requests)


def runner_of(
    next_logits: NextLogits | None = None,
    *,
    num_slots: int = 4,
    max_batch_tokens: int = 16,
    can_share: bool = True,
    cache_tokens: int | None = None,
) -> AdaptedRunner:
    limits = runner_limits(num_slots=num_slots, max_batch_tokens=max_batch_tokens, can_share=can_share)
    return AdaptedRunner(limits, next_logits or hashed_logits(0), cache_tokens=cache_tokens)


def with_adapters(under_test: EngineCore) -> EngineCore:
    for adapter in ADAPTERS:
        under_test.load_adapter(adapter)
    return under_test


def check_each(visits: list[Visit], answers: Answers, next_logits: NextLogits) -> None:
    for key in KEYS:
        check_all([visit for visit in visits if visit.asked.adapter == key], answers, adapted(next_logits, key))


@COMPOSERS
@given(visits, st.integers(1, 4), st.integers(0, 40), st.booleans(), st.integers(0, 200))
def test_everybody_gets_what_the_adapter_s_model_gives_alone(
    composer: type, visits: list[Visit], num_slots: int, spare: int, can_share: bool, max_saved: int
) -> None:
    next_logits = hashed_logits(3)
    runner = runner_of(next_logits, num_slots=num_slots, max_batch_tokens=num_slots + spare, can_share=can_share)
    under_test = with_adapters(core(runner, composer, max_saved))
    check_each(visits, play(under_test, visits), next_logits)
    assert (under_test.num_running, under_test.num_waiting) == (0, 0)


@COMPOSERS
@given(visits, st.integers(2, 4), st.integers(50, 90), st.integers(0, 200))
def test_with_a_cache_for_few_everybody_still_gets_the_same(
    composer: type, visits: list[Visit], num_slots: int, cache_tokens: int, max_saved: int
) -> None:
    # The longest request has 48 tokens: each one fits alone.
    next_logits = hashed_logits(4)
    runner = runner_of(next_logits, num_slots=num_slots, cache_tokens=cache_tokens)
    check_each(visits, play(with_adapters(core(runner, composer, max_saved)), visits), next_logits)


def mixture(num_each: int, max_tokens: int = 10) -> list[GenerationRequest]:
    """Of each adapter and of none so many requests, of different prompts."""
    return [
        request((1 + number, 2, 3), max_tokens, ignore_eos=True, adapter=key)
        for number in range(num_each)
        for key in KEYS
    ]


def test_adapters_take_turns_and_those_with_the_same_one_share_theirs() -> None:
    runner = runner_of(num_slots=8)
    under_test = with_adapters(core(runner))
    asked = mixture(2)
    answers = run(under_test, *asked)
    turns = [batch.adapter for batch in runner.batches]
    assert turns == list(KEYS) * (len(turns) // 4), "one after the other, as they came"
    assert len(turns) == 4 * 10, "two sequences a step"
    for each in asked:
        assert answers.of(each) == alone(each, adapted(hashed_logits(0), each.adapter))


def test_sequences_with_one_adapter_come_to_neighbouring_slots() -> None:
    runner = runner_of(num_slots=8)
    run(with_adapters(core(runner)), *mixture(2))
    last = {batch.adapter: batch.slots for batch in runner.batches}
    assert all((slots[1:] - slots[:-1] == 1).all() for slots in last.values())


@COMPOSERS
def test_nobody_waits_longer_than_the_others_take_one_turn_each(composer: type) -> None:
    """One answer without an adapter, beside many short ones with adapters that come as soon as there is room."""
    runner = runner_of(num_slots=3)
    under_test = with_adapters(core(runner, composer))
    patient = request((1, 2), 20, ignore_eos=True)
    others = [request((number % 15 + 1, 2), 3, ignore_eos=True, adapter=KEYS[number % 3 + 1]) for number in range(30)]
    run(under_test, patient, *others)
    turns = [batch.adapter for batch in runner.batches]
    own = [place for place, key in enumerate(turns) if not key]
    assert len(own) == 20
    assert max(after - before for before, after in pairwise(own)) <= 4


def test_a_prompt_is_found_computed_only_under_its_adapter() -> None:
    under_test = with_adapters(core(runner_of(num_slots=2), max_saved=1000))
    asked = [request(STEMS[0], 1, adapter=key) for key in ("a", "b", "", "a", "b", "")]
    assert [run(under_test, each).num_cached(each) for each in asked] == [0, 0, 0, 31, 31, 31]


def test_a_request_with_an_adapter_that_is_not_loaded_fails_alone() -> None:
    runner = runner_of()
    under_test = core(runner)
    under_test.load_adapter(ADAPTERS[0])
    lost, known, plain = (request((1, 2), 5, ignore_eos=True, adapter=key) for key in ("b", "a", ""))
    answers = run(under_test, lost, known, plain)
    assert answers.of(lost).end == LOST
    assert answers.of(known) == alone(known, adapted(hashed_logits(0), "a"))
    assert answers.of(plain) == alone(plain, hashed_logits(0))
    assert under_test.num_waiting == 0


def test_an_adapter_that_was_unloaded_is_lost_and_may_come_back() -> None:
    under_test = with_adapters(core(runner_of()))
    asked = request((1, 2), 5, ignore_eos=True, adapter="a")
    under_test.unload_adapter("a")
    assert run(under_test, asked).of(asked).end == LOST
    under_test.load_adapter(ADAPTERS[0])
    again = replace(asked, id="again")
    assert run(under_test, again).of(again) == alone(again, adapted(hashed_logits(0), "a"))


def test_unloading_what_was_never_loaded_changes_nothing() -> None:
    under_test = core(runner_of())
    under_test.unload_adapter("a")
    asked = request()
    assert run(under_test, asked).of(asked) == alone(asked, hashed_logits(0))


class RefusingRunner(AdaptedRunner):
    def load_adapter(self, adapter: Adapter) -> None:
        raise AdapterRefused("The file is not a LoRA adapter for this model.")


def test_an_adapter_that_the_runner_refuses_is_not_loaded() -> None:
    under_test = core(RefusingRunner(runner_limits(), hashed_logits(0)))
    with pytest.raises(AdapterRefused):
        under_test.load_adapter(ADAPTERS[0])
    asked = request(adapter="a")
    assert run(under_test, asked).of(asked).end == LOST
