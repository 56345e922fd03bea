"""Places in the queue, and who gets those that are kept for others."""

from contextlib import ExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st
from service_builders import PuppetEngine

from octavo.core.fair_queue import Owner
from octavo.core.limits import Limits
from octavo.errors import Overloaded
from octavo.service import ServedModel
from octavo.service.admission import Admission

NUM_SLOTS, QUEUE = 2, 4
FULL = NUM_SLOTS + QUEUE
HEAVY, LIGHT = ("A", "heavy"), ("A", "light")


class Queue:
    """A model with two slots and four places in its queue, and who has been admitted."""

    def __init__(self) -> None:
        self.engine = PuppetEngine(NUM_SLOTS)
        self.model = ServedModel("m", self.engine, 0)
        self.admission = Admission(Limits(max_queue_per_slot=QUEUE // NUM_SLOTS))
        self.admitted = ExitStack()

    def fill(self, owner: Owner = HEAVY) -> None:
        """Until nothing more of the owner is admitted."""
        for _ in range(100):
            if not self.admits(owner):
                return
        raise AssertionError("it is never full")

    def admits(self, owner: Owner, num_choices: int = 1) -> bool:
        """Whether a job is; it stays until `empty`."""
        try:
            self.admitted.enter_context(self.admission.admit(self.model, owner, num_choices))
        except Overloaded:
            return False
        return True

    def empty(self) -> None:
        self.admitted.close()


@pytest.fixture
def queue() -> Queue:
    return Queue()


def test_one_owner_fills_the_slots_and_the_queue_and_no_more(queue: Queue) -> None:
    assert [queue.admits(HEAVY) for _ in range(FULL + 3)] == [True] * FULL + [False] * 3


def test_a_user_without_requests_has_one_place_where_another_user_filled_the_queue(queue: Queue) -> None:
    queue.fill()
    assert [queue.admits(LIGHT) for _ in range(2)] == [True, False]


def test_a_key_without_requests_has_one_place_even_where_another_invents_users(queue: Queue) -> None:
    queue.fill()
    invented = [queue.admits(("A", f"user {number}")) for number in range(10)]
    assert sum(invented) == NUM_SLOTS
    assert [queue.admits(("B", "")) for _ in range(2)] == [True, False]
    assert not queue.admits(("B", "another user"))
    assert [queue.admits((key, "")) for key in "CDE"] == [True, False, False], "what is kept for others is bounded"


def test_who_left_may_come_again(queue: Queue) -> None:
    queue.fill()
    for _ in range(10):
        with queue.admission.admit(queue.model, LIGHT, 1):
            assert not queue.admits(LIGHT)
    queue.empty()
    queue.fill()
    assert queue.admits(LIGHT)


def test_a_job_of_several_choices_takes_as_many_places_but_no_more_than_there_are_slots(queue: Queue) -> None:
    assert [queue.admits(HEAVY, 2) for _ in range(4)] == [True, True, True, False]
    queue.empty()
    assert [queue.admits(HEAVY, 100) for _ in range(4)] == [True, True, True, False]


def test_those_who_get_their_images_ready_keep_no_others_out(queue: Queue) -> None:
    with ExitStack() as preparing:
        for _ in range(QUEUE):
            preparing.enter_context(queue.admission.preparing(queue.model, HEAVY))
        with pytest.raises(Overloaded, match=f"images of {QUEUE} requests"):
            preparing.enter_context(queue.admission.preparing(queue.model, HEAVY))
        preparing.enter_context(queue.admission.preparing(queue.model, LIGHT))
        with pytest.raises(Overloaded):
            preparing.enter_context(queue.admission.preparing(queue.model, LIGHT))
    queue.fill()
    with pytest.raises(Overloaded, match="queue"):
        preparing.enter_context(queue.admission.preparing(queue.model, HEAVY))
    preparing.enter_context(queue.admission.preparing(queue.model, LIGHT))


def test_a_refusal_says_when_to_try_again(queue: Queue) -> None:
    queue.fill()
    with pytest.raises(Overloaded) as refusal, queue.admission.admit(queue.model, HEAVY, 1):
        pass
    assert refusal.value.retry_after == QUEUE / NUM_SLOTS


owners = st.tuples(st.sampled_from("ABCDEFGH"), st.sampled_from("abcdefgh"))


@given(st.lists(st.tuples(owners, st.integers(1, 4)), max_size=60))
def test_whoever_asks_for_what_the_queue_is_bounded_and_all_places_come_back(asked: list[tuple[Owner, int]]) -> None:
    queue = Queue()
    num_places = 0
    for owner, num_choices in asked:
        if queue.admits(owner, num_choices):
            num_places += min(num_choices, NUM_SLOTS)
    assert num_places < FULL + 3 * NUM_SLOTS
    queue.empty()
    assert [queue.admits(HEAVY) for _ in range(FULL + 1)] == [True] * FULL + [False]
