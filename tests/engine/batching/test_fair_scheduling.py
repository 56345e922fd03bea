"""Who gets a slot next where several owners wait, on invented tokens."""

from collections import Counter
from dataclasses import replace
from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from engine.batching.cores import Answers, core, run
from engine.builders import request, runner_limits, scripted_runner, sequence
from octavo.core.fair_queue import Owner
from octavo.engine.batching.composer import MixedSteps
from octavo.engine.batching.scheduler import Scheduler
from octavo.engine.batching.sequence import Sequence

HEAVY, LIGHT, OTHER_KEY = ("A", "heavy"), ("A", "light"), ("B", "")

_tokens = count(1)


def of(owner: Owner, length: int = 10) -> Sequence:
    """Unlike every other: nothing is shared."""
    return sequence((next(_tokens),) * length, owner=owner)


def scheduler(*sequences: Sequence, num_slots: int) -> Scheduler:
    made = Scheduler(num_slots, MixedSteps(runner_limits(num_slots=num_slots, max_batch_tokens=512, max_logits=64)))
    for each in sequences:
        made.add(each)
    return made


def step(under_test: Scheduler, max_generated: int = 1000) -> list[Sequence]:
    """Compute what is scheduled and draw tokens; those that have so many end, and are returned."""
    for item in under_test.schedule().batch:
        item.sequence.advance(item.num_tokens)
        if item.sequence.num_pending == 0:
            item.sequence.append(1)
    ended = [each for each in under_test.running if each.num_generated >= max_generated]
    for each in ended:
        under_test.remove(each)
    return ended


def owners_of_running(under_test: Scheduler) -> Counter[Owner]:
    return Counter(each.owner for each in under_test.running)


def test_a_user_who_comes_late_is_admitted_before_all_that_a_heavy_one_has_waiting() -> None:
    under_test = scheduler(*(of(HEAVY) for _ in range(42)), num_slots=2)
    step(under_test)
    under_test.add(late := of(LIGHT))
    under_test.remove(under_test.last_admitted)
    under_test.schedule()
    assert under_test.last_admitted is late


def test_slots_that_are_free_at_the_same_time_are_shared_at_once() -> None:
    under_test = scheduler(*(of(HEAVY) for _ in range(20)), *(of(LIGHT) for _ in range(20)), num_slots=8)
    under_test.schedule()
    assert owners_of_running(under_test) == {HEAVY: 4, LIGHT: 4}


def test_a_key_with_many_users_gets_no_more_than_another_with_one() -> None:
    many = [of(("A", f"user {number}")) for number in range(20)]
    under_test = scheduler(*many, *(of(OTHER_KEY) for _ in range(20)), num_slots=8)
    under_test.schedule()
    assert owners_of_running(under_test)[OTHER_KEY] == 4


def test_a_long_prompt_counts_as_much_as_so_many_short_ones() -> None:
    long, short = [of(HEAVY, 90) for _ in range(9)], [of(LIGHT, 10) for _ in range(20)]
    under_test = scheduler(*long, *short, num_slots=11)
    under_test.schedule()
    assert owners_of_running(under_test) == {HEAVY: 2, LIGHT: 9}


def test_what_is_found_computed_costs_nothing() -> None:
    under_test = core(scripted_runner(num_slots=1), max_saved=1000)
    prompt = tuple(range(1, 11)) * 4
    run(under_test, request(prompt, 1, owner=OTHER_KEY))
    for asked in (
        *(request(prompt, 1, owner=LIGHT, id=f"cached {number}") for number in range(3)),
        *(request((number,) * 20, 1, owner=HEAVY, id=f"new {number}") for number in range(3)),
    ):
        under_test.submit(asked)
    order: list[str] = []
    while under_test.has_work:
        order += [id for id, _ in under_test.step()]
    assert order[:4] == ["cached 0", "new 0", "cached 1", "cached 2"]


def test_a_preempted_sequence_is_not_paid_for_twice() -> None:
    first, heavy, light = of(HEAVY), of(HEAVY, 60), of(LIGHT, 40)
    under_test = scheduler(first, heavy, light, num_slots=3)
    step(under_test)
    under_test.preempt_last()
    under_test.remove(first)
    step(under_test)
    assert owners_of_running(under_test) == {HEAVY: 1, LIGHT: 1}
    under_test.add(of(HEAVY))
    under_test.add(of(LIGHT))
    under_test.schedule()
    assert owners_of_running(under_test) == {HEAVY: 1, LIGHT: 2}


def test_who_waits_for_a_shared_prompt_lets_others_pass_and_keeps_its_place_in_its_owners_line() -> None:
    under_test = core(scripted_runner(num_slots=2, max_batch_tokens=8))
    prompt = tuple(range(1, 11)) * 4
    leader, follower, last = (request(prompt, 1, owner=LIGHT, id=id) for id in ("leader", "follower", "last"))
    for asked in (leader, follower, last, request((9, 9), 1, owner=LIGHT, id="other")):
        under_test.submit(asked)
    under_test.step()
    assert (under_test.num_running, under_test.num_waiting) == (2, 2)
    order: list[str] = []
    while under_test.has_work:
        order += [id for id, _ in under_test.step()]
    assert [id for id in order if id != "other"] == ["leader", "follower", "last"]


def test_samples_of_one_prompt_are_one_owners() -> None:
    samples = [request((1, 2, 3), 1, owner=HEAVY, id=f"sample {number}") for number in range(8)]
    under_test = core(scripted_runner(num_slots=1))
    for asked in (*samples, request((4, 5), 1, owner=LIGHT, id="light")):
        under_test.submit(asked)
    order: list[str] = []
    while under_test.has_work:
        order += [id for id, _ in under_test.step()]
    assert order.index("light") == 1
    assert [id for id in order if id != "light"] == [each.id for each in samples]


def test_users_of_two_keys_never_find_each_others_prefix_and_those_of_one_key_do() -> None:
    under_test = core(scripted_runner(num_slots=4), max_saved=1000)
    prompt = tuple(range(1, 11)) * 4
    asked = [
        replace(request(prompt, 1, owner=owner), cache_key=owner[0])
        for owner in (HEAVY, OTHER_KEY, LIGHT, ("B", "somebody"))
    ]
    assert [run(under_test, each).num_cached(each) for each in asked] == [0, 0, 39, 39]
    together = Answers()
    later = [replace(request((*prompt, 7), 1), cache_key=key) for key in ("C", "A", "B", "C")]
    for each in later:
        under_test.submit(each)
    while under_test.has_work:
        together.take(under_test.step())
    assert [together.num_cached(each) for each in later] == [0, 40, 40, 40]


@given(
    st.lists(st.sampled_from([HEAVY, LIGHT, OTHER_KEY, ("B", "x")]), min_size=1, max_size=30),
    st.integers(1, 4),
    st.integers(1, 6),
)
def test_whoever_owns_what_no_slot_stays_free_and_each_owners_sequences_are_admitted_in_order(
    owners: list[Owner], num_slots: int, max_generated: int
) -> None:
    sequences = [of(owner) for owner in owners]
    under_test = scheduler(*sequences, num_slots=num_slots)
    admitted: list[Sequence] = []
    while under_test.has_work:
        left = under_test.num_running + under_test.num_waiting
        ended = step(under_test, max_generated)
        assert under_test.num_running + len(ended) == min(num_slots, left)
        admitted += [each for each in (*ended, *under_test.running) if each not in admitted]
    for owner in set(owners):
        own = [each for each in sequences if each.owner == owner]
        starts = [each for each in admitted if each.owner == owner]
        assert sorted(starts, key=sequences.index) == own
