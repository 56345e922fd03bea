"""Whether a child still works, told from what it says."""

from hypothesis import given
from hypothesis import strategies as st

from octavo.engine.worker.ending import HUNG_STEP, SILENT
from octavo.engine.worker.watchdog import START_PATIENCE, Watchdog

IDLE = 0


def watchdog(step: int = IDLE) -> Watchdog:
    """That has heard of a child once."""
    made = Watchdog(max_silence=15, max_step=120)
    made.hear(step)
    return made


def reason(watched: Watchdog) -> str:
    return "" if watched.verdict is None else watched.verdict.reason


def test_a_child_that_says_nothing_any_more_is_silent() -> None:
    watched = watchdog()
    watched.wait(14)
    assert reason(watched) == ""
    watched.wait(1)
    assert reason(watched) == SILENT


def test_a_child_that_has_said_nothing_yet_has_longer() -> None:
    watched = Watchdog(max_silence=15, max_step=120)
    watched.wait(15 * START_PATIENCE - 1)
    assert reason(watched) == ""
    watched.wait(1)
    assert reason(watched) == SILENT


@given(st.lists(st.floats(0, 14), max_size=50))
def test_who_speaks_in_time_and_is_idle_works_for_ever(pauses: list[float]) -> None:
    watched = watchdog()
    for pause in pauses:
        watched.wait(pause)
        watched.hear(IDLE)
    assert watched.verdict is None


def test_a_step_that_is_told_again_after_its_time_hangs() -> None:
    watched = watchdog(7)
    for _ in range(119):
        watched.wait(1)
        watched.hear(7)
    assert reason(watched) == ""
    watched.wait(1)
    assert reason(watched) == "", "it may have ended since it was told"
    watched.hear(7)
    assert reason(watched) == HUNG_STEP


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 14)), max_size=200))
def test_steps_that_change_or_end_in_time_do_not_hang(beats: list[tuple[int, int]]) -> None:
    watched, same = watchdog(), 0
    last = IDLE
    for step, pause in beats:
        same = same + pause if step == last else 0
        if same >= 120:
            break
        watched.wait(pause)
        assert watched.hear(step) == (step != last)
        last = step
    assert reason(watched) == ""
