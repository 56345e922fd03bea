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

    def __init__(self, queue: int = QUEUE) -> None:
        self.engine = PuppetEngine(NUM_SLOTS)
        self.model = ServedModel("m", self.engine, 0)
        self.admission = Admission(Limits(max_queue_per_slot=queue // NUM_SLOTS))
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


def test_a_full_queue_takes_what_is_within_a_users_share(queue: Queue) -> None:
    queue.fill()
    assert [queue.admits(LIGHT) for _ in range(FULL)] == [True] * 3 + [False] * 3
    assert not queue.admits(HEAVY)


def test_a_full_queue_takes_what_is_within_a_keys_share_whatever_users_it_has(queue: Queue) -> None:
    queue.fill()
    assert [queue.admits(("B", user)) for user in "xyzx"] == [True, True, True, False]
    assert [queue.admits(("C", "")) for _ in range(3)] == [True, True, False]


def test_a_key_that_floods_with_invented_users_keeps_no_other_from_its_share(queue: Queue) -> None:
    queue.fill()
    for number in range(100):
        queue.fill(("A", f"user {number}"))
    assert [queue.admits(("B", "")) for _ in range(FULL)] == [True] * 3 + [False] * 3


def test_where_more_users_are_than_places_a_full_queue_is_full(queue: Queue) -> None:
    assert sum(queue.admits(("", f"user {number}")) for number in range(100)) == FULL


def test_who_left_may_come_again(queue: Queue) -> None:
    queue.fill()
    for _ in range(10):
        with ExitStack() as places:
            for _ in range(FULL // 2):
                places.enter_context(queue.admission.admit(queue.model, LIGHT, 1))
            assert not queue.admits(LIGHT)
    queue.empty()
    queue.fill()
    assert queue.admits(LIGHT)


def test_without_a_queue_there_are_the_slots() -> None:
    queue = Queue(queue=0)
    assert [queue.admits(HEAVY) for _ in range(NUM_SLOTS + 1)] == [True] * NUM_SLOTS + [False]


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
        for _ in range(QUEUE // 2):
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
    assert num_places < 4 * FULL + NUM_SLOTS
    queue.empty()
    assert [queue.admits(HEAVY) for _ in range(FULL + 1)] == [True] * FULL + [False]


@given(st.lists(st.tuples(st.sampled_from("ABC"), st.integers(0, 9)) | st.integers(0, 30), max_size=150))
def test_no_key_is_refused_below_its_share_whatever_others_do(
    steps: list[tuple[str, int] | int],
) -> None:
    queue = Queue()
    admitted: list[tuple[Owner, ExitStack]] = []
    for step in steps:
        if isinstance(step, int):  # one leaves
            if admitted:
                admitted.pop(step % len(admitted))[1].close()
            continue
        owner = (step[0], str(step[1]))
        queue.admitted = ExitStack()
        own, keys = sum(key == owner[0] for (key, _), _ in admitted), {owner[0], *(key for (key, _), _ in admitted)}
        if queue.admits(owner):
            admitted.append((owner, queue.admitted))
        else:
            assert own + 1 > FULL / len(keys)
