"""The wait before an engine's process is replaced."""

from itertools import accumulate

from octavo.engine.worker.backoff import FIRST_DELAY, LONG_LIFE, LONGEST_DELAY, Backoff


def test_the_delay_doubles_up_to_a_bound() -> None:
    backoff = Backoff()
    delays = [backoff.next_delay(lived=LONG_LIFE * FIRST_DELAY / 4) for _ in range(20)]
    assert delays[:3] == [FIRST_DELAY, 2 * FIRST_DELAY, 4 * FIRST_DELAY]
    assert delays == sorted(delays)
    assert delays[-1] == LONGEST_DELAY


def test_a_process_that_dies_at_once_each_time_is_started_a_few_times_a_minute() -> None:
    backoff = Backoff()
    deaths = list(accumulate(backoff.next_delay(lived=0) for _ in range(20)))
    assert sum(death < 60 for death in deaths) <= 10
    assert sum(240 <= death < 300 for death in deaths) <= 2


def test_a_life_that_was_long_beside_the_delay_before_it_starts_it_over() -> None:
    backoff = Backoff()
    *_, delay = [backoff.next_delay(lived=0) for _ in range(5)]
    assert backoff.next_delay(lived=LONG_LIFE * delay) == FIRST_DELAY
    assert backoff.next_delay(lived=LONG_LIFE * FIRST_DELAY * 0.9) == 2 * FIRST_DELAY


def test_whatever_keeps_killing_it_has_it_wait_or_live() -> None:
    """A death every second, as by a request that is sent again and again, is soon one every half a minute."""
    backoff = Backoff()
    delays = [backoff.next_delay(lived=1.0) for _ in range(12)]
    assert delays[-1] == LONGEST_DELAY
