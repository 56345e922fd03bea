"""A queue that gives its owners turns by what they have used."""

import gc
from collections import Counter, deque
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.core.fair_queue import MAX_DEBT, FairQueue, Owner

Item = tuple[Owner, int]
"""Its owner, and its number among that owner's."""

HEAVY, LIGHT = ("key", "heavy"), ("key", "light")

owners = st.tuples(st.sampled_from("AB"), st.sampled_from("xyz"))
costs = st.integers(1, 100)


def queue_of(*given: Owner) -> FairQueue[Item]:
    queue: FairQueue[Item] = FairQueue()
    numbers: Counter[Owner] = Counter()
    for owner in given:
        queue.add((owner, numbers[owner]), owner)
        numbers[owner] += 1
    return queue


def serve(queue: FairQueue[Item], cost: float) -> Owner:
    """The owner of the next item, which ends when it has used so much."""
    owner, _ = queue.pop()
    queue.charge(owner, cost)
    queue.end(owner)
    return owner


def reachable(root: object) -> int:
    """How many containers hang on an object."""
    seen: dict[int, Any] = {}
    left = deque([root])
    while left:
        one = left.popleft()
        if id(one) not in seen and gc.is_tracked(one) and not isinstance(one, type):
            seen[id(one)] = one
            left.extend(gc.get_referents(one))
    return len(seen)


def test_items_of_one_owner_come_in_order() -> None:
    queue = queue_of(*[HEAVY] * 5)
    assert [queue.pop() for _ in range(5)] == [(HEAVY, number) for number in range(5)]
    assert len(queue) == 0


def test_without_owners_it_is_a_plain_queue() -> None:
    queue = queue_of(*[()] * 4)
    first = queue.pop()
    queue.charge((), 100)
    queue.put_back(first, ())
    queue.remove(((), 2), ())
    assert [queue.pop()[1] for _ in range(3)] == [0, 1, 3]


def test_who_has_used_less_is_next_whoever_came_first() -> None:
    queue = queue_of(*[HEAVY] * 40)
    for _ in range(8):
        queue.charge(queue.pop()[0], 10)
    queue.add((LIGHT, 0), LIGHT)
    assert queue.pop() == (LIGHT, 0)


def test_keys_share_before_their_users_do() -> None:
    inventive = [("A", f"user {number}") for number in range(10)]
    queue = queue_of(*inventive * 2, *[("B", "")] * 10)
    assert Counter(serve(queue, 1)[0] for _ in range(20)) == {"A": 10, "B": 10}


def test_owners_who_use_much_with_each_item_get_fewer_of_them() -> None:
    queue = queue_of(*[HEAVY] * 100, *[LIGHT] * 100)
    served: Counter[Owner] = Counter()
    for _ in range(50):
        owner, _ = queue.pop()
        queue.charge(owner, 90 if owner == HEAVY else 10)
        queue.end(owner)
        served[owner] += 1
    assert served == {LIGHT: 45, HEAVY: 5}


def test_what_was_used_while_nobody_else_had_need_of_it_is_forgiven() -> None:
    queue = queue_of(LIGHT, *[HEAVY] * 120)
    assert queue.pop()[0] == LIGHT  # it is being worked on all the time
    for _ in range(100):
        serve(queue, MAX_DEBT)
    for number in range(1, 20):
        queue.add((LIGHT, number), LIGHT)
    served = Counter(serve(queue, MAX_DEBT / 4) for _ in range(19))
    assert 0 < served[LIGHT] - served[HEAVY] <= 8


def test_what_is_put_back_is_first_of_its_owners_again() -> None:
    queue = queue_of(HEAVY, HEAVY, LIGHT)
    held = [queue.pop() for _ in range(3)]
    for item in reversed(held):
        queue.put_back(item, item[0])
    heavy = [item for item in (queue.pop() for _ in range(3)) if item[0] == HEAVY]
    assert heavy == [(HEAVY, 0), (HEAVY, 1)]


def test_who_left_is_forgotten() -> None:
    queue = queue_of()

    def come_and_go(owner: Owner) -> None:
        for number in range(3):
            queue.add((owner, number), owner)
        serve(queue, 10)
        queue.put_back(queue.pop(), owner)
        queue.remove((owner, 1), owner)
        queue.remove((owner, 2), owner)
        assert len(queue) == 0

    def ask_once(owner: Owner, cost: float) -> None:
        queue.add((owner, 0), owner)
        serve(queue, cost)

    come_and_go(("key", "user"))
    before = reachable(queue)
    for number in range(100):
        come_and_go((f"key {number % 3}", f"user {number}"))
    assert reachable(queue) == before
    queue.add((HEAVY, 0), HEAVY)
    few = reachable(queue)
    for number in range(300):
        ask_once(("key", f"invented {number}"), 1 + number % 7)
        serve(queue, 10)
        queue.add((HEAVY, number), HEAVY)
        assert reachable(queue) < 3 * few


def test_only_who_has_an_item_uses_something() -> None:
    queue = queue_of(HEAVY)
    for use in (lambda: queue.charge(LIGHT, 1), lambda: queue.end(LIGHT), lambda: queue.remove((LIGHT, 0), LIGHT)):
        with pytest.raises(KeyError):
            use()


def test_who_asks_again_with_each_answer_gets_its_share_whether_its_answers_are_long_or_short() -> None:
    used = closed_loop({f"heavy {n}": [1000] for n in range(5)} | {f"light {n}": [10] for n in range(5)}, 2, 20_000)
    assert max(used.values()) - min(used.values()) <= 1000


@pytest.mark.parametrize("num_others", [0, 3])
def test_who_came_back_begins_where_the_others_are(num_others: int) -> None:
    others = [("key", f"other {number}") for number in range(num_others)]
    queue = queue_of(*[HEAVY] * 10, *others * 10)
    for _ in range(5):
        serve(queue, 100)
    queue.add((LIGHT, 0), LIGHT)
    serve(queue, 0)
    queue.add((LIGHT, 1), LIGHT)
    turns = [serve(queue, 100) for _ in range(num_others + 2)]
    assert turns.count(LIGHT) == 1


@given(st.lists(st.tuples(owners, costs) | st.just("serve"), max_size=60))
def test_every_item_comes_once_and_those_of_an_owner_in_order(steps: list[tuple[Owner, int] | str]) -> None:
    queue: FairQueue[Item] = FairQueue()
    waiting: dict[Owner, deque[int]] = {}
    prices: dict[Item, int] = {}

    def take() -> None:
        owner, number = queue.pop()
        assert waiting[owner].popleft() == number
        queue.charge(owner, prices[owner, number])
        queue.end(owner)

    for number, step in enumerate(steps):
        if isinstance(step, tuple):
            owner, cost = step
            queue.add((owner, number), owner)
            waiting.setdefault(owner, deque()).append(number)
            prices[owner, number] = cost
        elif any(waiting.values()):
            take()
        assert len(queue) == sum(map(len, waiting.values()))
    while len(queue):
        take()
    assert not any(waiting.values())


@given(st.lists(costs | st.just("pop"), max_size=40), costs)
def test_one_who_comes_is_served_before_the_next_but_one_of_a_busy_owner(history: list[int | str], cost: int) -> None:
    queue = queue_of(*[HEAVY] * 50)
    popped = 0
    for step in history:
        if step == "pop":
            queue.pop()
            popped += 1
        elif popped and isinstance(step, int):
            queue.charge(HEAVY, step)
    queue.add((LIGHT, 0), LIGHT)
    if popped:
        queue.charge(HEAVY, cost)
        queue.end(HEAVY)
    assert LIGHT in (serve(queue, cost), serve(queue, cost))


@given(st.lists(st.lists(costs, min_size=1, max_size=5), min_size=2, max_size=5), st.integers(1, 60))
def test_between_owners_who_always_wait_no_one_gets_ahead_by_more_than_an_item(
    prices: list[list[int]], num_served: int
) -> None:
    names: list[Owner] = [("key", str(index)) for index in range(len(prices))]
    queue = queue_of(*[name for name in names for _ in range(num_served + 1)])
    used: Counter[Owner] = Counter(dict.fromkeys(names, 0))
    cost_of: dict[Owner, Iterator[int]] = {name: _round(costs) for name, costs in zip(names, prices, strict=True)}
    for _ in range(num_served):
        owner, _ = queue.pop()
        cost = next(cost_of[owner])
        queue.charge(owner, cost)
        queue.end(owner)
        used[owner] += cost
        assert max(used.values()) - min(used.values()) <= max(map(max, prices))


@given(
    st.lists(st.lists(costs, min_size=1, max_size=3), min_size=2, max_size=6),
    st.integers(1, 4),
    st.integers(1, 2000),
)
def test_whoever_always_has_one_item_is_never_far_ahead_of_another(
    prices: list[list[int]], num_slots: int, num_steps: int
) -> None:
    used = closed_loop({str(number): each for number, each in enumerate(prices)}, num_slots, num_steps)
    assert max(used.values()) - min(used.values()) <= 4 * max(map(max, prices))


def closed_loop(prices: dict[str, list[int]], num_slots: int, num_steps: int) -> Counter[str]:
    """What users have used of so many slots, who each have one item, and the next one at once when that has ended."""
    queue: FairQueue[str] = FairQueue()
    price_of = {user: _round(costs) for user, costs in prices.items()}
    left: dict[str, int] = {}
    used: Counter[str] = Counter(dict.fromkeys(prices, 0))
    for user in prices:
        queue.add(user, ("key", user))
    for _ in range(num_steps):
        while len(left) < num_slots and len(queue):
            user = queue.pop()
            left[user] = next(price_of[user])
        for user in list(left):
            queue.charge(("key", user), 1)
            used[user] += 1
            left[user] -= 1
            if left[user] == 0:
                del left[user]
                queue.end(("key", user))
                queue.add(user, ("key", user))
    return used


def _round(costs: list[int]) -> Iterator[int]:
    while True:
        yield from costs
