"""Who computes what in the next step, on invented tokens."""

from dataclasses import dataclass, field
from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from engine.builders import runner_limits, sequence
from octavo.engine.batching.composer import MixedSteps, ScheduledSequence
from octavo.engine.batching.scheduler import Scheduler
from octavo.engine.batching.sequence import Sequence

_tokens = count(1)


def prompt(length: int) -> Sequence:
    """Unlike every other: nothing is shared."""
    return sequence((next(_tokens),) * length)


def mixed(num_slots: int, token_budget: int) -> Scheduler:
    limits = runner_limits(num_slots=num_slots, max_batch_tokens=token_budget, max_logits=num_slots)
    return Scheduler(num_slots, MixedSteps(limits))


def scheduler(*sequences: Sequence, num_slots: int = 4, token_budget: int = 512) -> Scheduler:
    made = mixed(num_slots, token_budget)
    for each in sequences:
        made.add(each)
    return made


def compute(batch: list[ScheduledSequence]) -> None:
    """What a step does: the scheduled tokens are computed, and who reaches the end gets a token."""
    for item in batch:
        item.sequence.advance(item.num_tokens)
        if item.sequence.num_pending == 0:
            item.sequence.append(1)


def test_requests_are_admitted_in_order_to_the_lowest_slots() -> None:
    first, second, third = (prompt(1) for _ in range(3))
    under_test = scheduler(first, second, third, num_slots=2)
    batch = under_test.schedule().batch
    assert [(item.sequence, item.sequence.slot) for item in batch] == [(first, 0), (second, 1)]
    assert (under_test.num_running, under_test.num_waiting) == (2, 1)
    under_test.remove(first)
    assert [item.sequence for item in under_test.schedule().batch] == [third, second]
    assert third.slot == 0


def test_several_prompts_get_equal_chunks() -> None:
    batch = scheduler(*(prompt(1000) for _ in range(3)), token_budget=600).schedule().batch
    assert [item.num_tokens for item in batch] == [200, 200, 200]


def test_what_short_prompts_leave_over_goes_to_the_first_admitted() -> None:
    batch = scheduler(prompt(1000), prompt(1000), prompt(50), token_budget=600).schedule().batch
    assert [item.num_tokens for item in batch] == [350, 200, 50]
    assert [item.num_tokens == item.sequence.num_pending for item in batch] == [False, False, True]


def test_where_equal_chunks_would_be_small_the_first_admitted_get_larger_ones() -> None:
    batch = scheduler(*(prompt(1000) for _ in range(4)), token_budget=300).schedule().batch
    assert [item.num_tokens for item in batch] == [150, 150]


def test_prompts_that_fit_whole_are_not_mixed_with_a_piece_of_another() -> None:
    batch = scheduler(*(prompt(104) for _ in range(6)), prompt(90), num_slots=8).schedule().batch
    assert [item.num_tokens for item in batch] == [104, 104, 104, 104, 90]


def test_decoding_goes_on_beside_a_long_prompt() -> None:
    decoding = [prompt(1), prompt(1), prompt(1)]
    under_test = scheduler(*decoding, token_budget=8)
    compute(under_test.schedule().batch)
    under_test.add(long := prompt(100))
    assert {item.sequence: item.num_tokens for item in under_test.schedule().batch} == {
        **dict.fromkeys(decoding, 1),
        long: 5,
    }


def test_a_preempted_sequence_returns_to_the_head_of_the_queue_with_its_tokens() -> None:
    first, second, third = prompt(2), prompt(2), prompt(2)
    under_test = scheduler(first, second, third, num_slots=2)
    compute(under_test.schedule().batch)
    assert under_test.last_admitted is second
    under_test.preempt_last()
    assert (second.slot, second.num_computed, second.num_tokens) == (None, 0, 3)
    assert (under_test.num_running, under_test.num_waiting) == (1, 2)
    under_test.remove(first)
    assert [(item.sequence, item.num_tokens) for item in under_test.schedule().batch] == [(second, 3), (third, 2)]


def test_a_preempted_sequence_waits_until_another_one_has_left() -> None:
    first, second = prompt(2), prompt(2)
    under_test = scheduler(first, second)
    compute(under_test.schedule().batch)
    under_test.preempt_last()
    under_test.add(prompt(1))
    for _ in range(3):
        batch = under_test.schedule().batch
        assert [item.sequence for item in batch] == [first]
        compute(batch)


def test_when_a_preempted_sequence_is_cancelled_others_are_admitted_again() -> None:
    first, second, third = prompt(2), prompt(2), prompt(2)
    under_test = scheduler(first, second)
    compute(under_test.schedule().batch)
    under_test.preempt_last()
    under_test.remove(second)
    under_test.add(third)
    assert [item.sequence for item in under_test.schedule().batch] == [first, third]


def test_when_the_cache_is_full_one_that_comes_and_goes_lets_nobody_in() -> None:
    first, second, passing = prompt(2), prompt(2), prompt(2)
    under_test = scheduler(first, second)
    compute(under_test.schedule().batch)
    under_test.preempt_last()
    under_test.add(passing)
    under_test.remove(passing)
    assert [item.sequence for item in under_test.schedule().batch] == [first]


def test_a_waiting_sequence_can_be_removed() -> None:
    first, second, third = prompt(1), prompt(1), prompt(1)
    under_test = scheduler(first, second, third, num_slots=1)
    compute(under_test.schedule().batch)
    under_test.remove(second)
    under_test.remove(first)
    assert [item.sequence for item in under_test.schedule().batch] == [third]
    under_test.remove(third)
    assert not under_test.has_work


@dataclass
class Job:
    arrival: int
    prompt_length: int
    num_tokens: int
    cancelled_at: int | None
    sequence: Sequence = field(init=False)

    def __post_init__(self) -> None:
        self.sequence = prompt(self.prompt_length)

    @property
    def is_done(self) -> bool:
        return self.sequence.num_generated >= self.num_tokens


jobs = st.lists(
    st.builds(Job, st.integers(0, 20), st.integers(1, 300), st.integers(1, 8), st.none() | st.integers(0, 30)),
    min_size=1,
    max_size=12,
)


@given(jobs, st.integers(1, 5), st.integers(0, 200), st.sets(st.integers(0, 60), max_size=6))
def test_whatever_comes_and_goes_each_step_works_and_everybody_ends(
    jobs: list[Job], num_slots: int, spare: int, preempted_at: set[int]
) -> None:
    budget = num_slots + spare
    under_test = mixed(num_slots, budget)
    alive: list[Job] = []
    step = 0
    # Each step computes a token at least; what is preempted is computed again.
    bound = 30 + (1 + len(preempted_at)) * sum(job.prompt_length + job.num_tokens for job in jobs)
    while under_test.has_work or step <= 30:
        assert step <= bound
        for job in jobs:
            if (job.arrival == step and job.cancelled_at is None) or job.arrival == step < (job.cancelled_at or 0):
                under_test.add(job.sequence)
                alive.append(job)
        for job in [job for job in alive if job.cancelled_at == step]:
            under_test.remove(job.sequence)
            alive.remove(job)
        decoding = [job.sequence for job in alive if job.sequence.slot is not None and job.sequence.num_pending == 1]
        batch = under_test.schedule().batch if under_test.has_work else []
        check_step(batch, [job.sequence for job in alive], decoding, budget)
        if step in preempted_at and under_test.num_running > 1:
            under_test.preempt_last()
        else:
            compute(batch)
        for job in [job for job in alive if job.is_done]:
            under_test.remove(job.sequence)
            alive.remove(job)
        step += 1
    assert not alive
    assert (under_test.num_running, under_test.num_waiting) == (0, 0)


def check_step(batch: list[ScheduledSequence], alive: list[Sequence], decoding: list[Sequence], budget: int) -> None:
    """alive: in order of arrival."""
    slots = [item.sequence.slot for item in batch]
    assert None not in slots
    assert slots == sorted(set(slots)), "sorted by slot, each once"
    assert sum(item.num_tokens for item in batch) <= budget
    assert all(0 < item.num_tokens <= item.sequence.num_pending for item in batch)
    assert bool(batch) == bool(alive), "where something is to be done, something is done"
    scheduled = {item.sequence for item in batch}
    assert scheduled.issuperset(decoding), "who decodes never waits"
    has_slot = [each.slot is not None for each in alive]
    assert has_slot == sorted(has_slot, reverse=True), "first come, first served"
