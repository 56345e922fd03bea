"""What keys may use in a minute, on a given clock."""

import gc
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from octavo.core.caller import Caller, KeyLimits
from octavo.errors import RateLimited
from octavo.service.rate_limits import LimitState, RateLimiter, _Use
from octavo.telemetry.metrics import Metrics


class World:
    """A limiter, and the time."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.registry = CollectorRegistry()
        self.limiter = RateLimiter(Metrics(self.registry), lambda: self.now)

    def ask(self, caller: Caller) -> float:
        """A request that is answered at once. Seconds after which to try again; 0 where it was not refused."""
        try:
            with self.limiter.request(caller):
                return 0
        except RateLimited as refusal:
            return refusal.retry_after


@pytest.fixture
def world() -> World:
    return World()


def caller(key_id: str = "a", **limits: int) -> Caller:
    return Caller(key_id, limits=KeyLimits(**limits))


def test_a_minutes_requests_may_come_at_once_and_the_next_ones_come_back_one_by_one(world: World) -> None:
    limited = caller(requests=3)
    assert [world.ask(limited) for _ in range(3)] == [0, 0, 0]
    assert world.ask(limited) == 20
    world.now += 5
    assert world.ask(limited) == 15
    world.now += 15
    assert [world.ask(limited) for _ in range(2)] == [0, 20]


def test_what_is_not_used_is_not_saved_beyond_a_minutes_worth(world: World) -> None:
    limited = caller(requests=2)
    world.ask(limited)
    world.now += 3600
    assert [world.ask(limited) for _ in range(3)] == [0, 0, 30]


def test_a_refused_request_uses_nothing(world: World) -> None:
    limited = caller(requests=1, concurrent=5)
    world.ask(limited)
    assert [world.ask(limited) for _ in range(100)] == [60] * 100
    world.now += 60
    assert world.ask(limited) == 0


def test_tokens_are_paid_for_afterwards_and_who_owes_some_waits_until_it_has_one(world: World) -> None:
    limited = caller(tokens=60)
    world.ask(limited)
    world.limiter.charge(limited, 59)
    assert world.ask(limited) == 0
    world.limiter.charge(limited, 121)
    assert world.ask(limited) == 121
    world.now += 120
    assert world.ask(limited) == 1
    world.now += 1
    assert world.ask(limited) == 0


def test_a_prompt_must_fit_in_what_is_left_unless_nothing_is_used(world: World) -> None:
    limited = caller(tokens=60)
    world.limiter.prompt(limited, 50)
    with pytest.raises(RateLimited) as refusal:
        world.limiter.prompt(limited, 30)
    assert refusal.value.retry_after == 20
    assert world.limiter.states(limited)[0].remaining == 10, "a refused prompt uses nothing"
    world.limiter.prompt(limited, 10)
    with pytest.raises(RateLimited) as refusal:
        world.limiter.prompt(limited, 1000)
    assert refusal.value.retry_after == 60
    world.now += 60
    world.limiter.prompt(limited, 1000)
    world.limiter.prompt(caller("b"), 10**9)


def test_a_debt_is_of_no_more_than_two_minutes(world: World) -> None:
    limited = caller(tokens=100)
    world.limiter.charge(limited, 10**6)
    assert world.ask(limited) == pytest.approx(120.6)


def test_a_limit_of_any_size_does_no_harm_to_others(world: World) -> None:
    endless = caller("endless", requests=10**400, tokens=10**400)
    world.ask(endless)
    world.limiter.charge(endless, 2**60)
    world.now += 1
    assert [world.ask(each) for each in (endless, caller("b", requests=1))] == [pytest.approx(119, abs=1), 0]


def test_limits_are_changed_by_requests_alone(world: World) -> None:
    before, now = caller(tokens=100), caller(requests=10)
    world.limiter.charge(before, 150)
    assert [state.name for state in world.limiter.states(now)] == ["tokens"]
    assert world.ask(before) > 0
    assert world.ask(now) == 0
    assert [state.name for state in world.limiter.states(before)] == ["requests"]
    world.limiter.charge(before, 10**6)
    assert world.ask(now) == 0


def test_no_more_requests_run_than_may_and_each_gives_its_place_back_however_it_ends(world: World) -> None:
    limited = caller(concurrent=2)
    with ExitStack() as running:
        for _ in range(2):
            running.enter_context(world.limiter.request(limited))
        assert world.ask(limited) == 1
    assert world.ask(limited) == 0
    for _ in range(3):
        with pytest.raises(ValueError, match="broken"), world.limiter.request(limited):
            raise ValueError("broken")
    assert world.ask(limited) == 0


def test_the_longest_wait_is_the_one_that_is_told(world: World) -> None:
    limited = caller(requests=1, tokens=1, concurrent=1)
    with world.limiter.request(limited):
        assert world.ask(limited) == 60
        world.limiter.charge(limited, 10)
        with pytest.raises(RateLimited, match="1 tokens a minute") as refusal, world.limiter.request(limited):
            pass
        assert refusal.value.retry_after == 180
    samples = {
        limit: world.registry.get_sample_value("octavo_rate_limited_total", {"limit": limit})
        for limit in ("requests", "tokens", "concurrent")
    }
    assert samples == {"requests": 1, "tokens": 1, "concurrent": None}


def test_keys_have_limits_of_their_own(world: World) -> None:
    assert [world.ask(caller("a", requests=1)) for _ in range(2)] == [0, 60]
    assert [world.ask(caller("b", requests=1)) for _ in range(2)] == [0, 60]


def test_a_key_without_limits_is_never_refused(world: World) -> None:
    free = caller()
    world.limiter.charge(free, 10**9)
    with ExitStack() as running:
        for _ in range(1000):
            running.enter_context(world.limiter.request(free))
    assert world.limiter.states(free) == []


def test_a_limit_that_is_changed_holds_at_once(world: World) -> None:
    for _ in range(10):
        world.ask(caller(requests=10))
    assert world.ask(caller(requests=10)) == 6
    assert world.ask(caller(requests=20)) == 0
    assert world.ask(caller(requests=5)) == 84
    assert world.ask(caller()) == 0


def test_what_remains_is_told_in_whole_units_and_with_the_time_until_all_is_there(world: World) -> None:
    limited = caller(requests=60, tokens=600)
    with world.limiter.request(limited):
        world.limiter.charge(limited, 100)
    world.now += 0.25
    assert world.limiter.states(limited) == [
        LimitState("requests", 60, 59, pytest.approx(0.75)),
        LimitState("tokens", 600, 502, pytest.approx(9.75)),
    ]
    world.limiter.charge(limited, 1000)
    assert world.limiter.states(limited)[1].remaining == 0
    assert [state.name for state in world.limiter.states(caller("b", tokens=5, concurrent=1))] == ["tokens"]


def test_keys_that_have_used_nothing_for_a_while_are_forgotten(world: World) -> None:
    def num_known() -> int:
        gc.collect()
        return sum(isinstance(each, _Use) for each in gc.get_objects())

    before = num_known()  # other tests' limiters may be left
    with world.limiter.request(caller("running", concurrent=1)):
        for number in range(1000):
            world.ask(caller(f"key {number}", requests=60))
            world.now += 0.5
        assert num_known() - before <= 8
        assert world.ask(caller("running", concurrent=1)) == 1


steps = st.lists(st.floats(0, 100) | st.just("ask") | st.integers(1, 500), max_size=60)


@given(steps, st.integers(1, 20), st.integers(1, 500))
def test_in_any_time_no_more_is_begun_than_the_limits_allow_and_who_waits_as_told_is_not_refused(
    steps: list[float | str], requests: int, tokens: int
) -> None:
    world, limited = World(), caller(requests=requests, tokens=tokens)
    begun: list[float] = []
    for step in steps:
        if isinstance(step, float):
            world.now += step
        elif isinstance(step, int):
            world.limiter.charge(limited, step)
        elif wait := world.ask(limited):
            world.now += wait
            assert world.ask(limited) == 0
            begun.append(world.now)
        else:
            begun.append(world.now)
    for start, end in _spans(begun):
        number = sum(start <= time <= end for time in begun)
        assert number <= requests * (1 + (end - start) / 60) + 1e-3


def _spans(times: list[float]) -> Iterator[tuple[float, float]]:
    return ((start, end) for start in times for end in times if start <= end)
