"""Which number of threads is settled on, on invented machines."""

from collections.abc import Callable

import pytest

from octavo.engine.batching.step_costs import SIZES, MeasuredSteps
from octavo.engine.runners.llama_cpp.threads import MAX_PATIENCE, TRIAL_STEPS, ThreadGovernor

Machine = Callable[[int], tuple[float, float]]
"""From a number of threads to the wall time and the processor time of a step that takes a second with one."""


def quiet(threads: int) -> tuple[float, float]:
    return 1 / threads, 1.0


def beside_a_hog(threads: int) -> tuple[float, float]:
    """Two processors, one of them shared: two threads wait for each other, one has a processor for itself."""
    return (2.5, 4.0) if threads == 2 else (1.0, 1.0)


def beside_its_own_server(threads: int) -> tuple[float, float]:
    """What is taken is little, and two threads stay faster."""
    return (0.6, 0.9) if threads == 2 else (1.0, 1.0)


def run(governor: ThreadGovernor, machine: Machine, seconds: float) -> float:
    """The share of the time that was spent with all threads."""
    now, with_all = 0.0, 0.0
    while now < seconds:
        wall, cpu = machine(governor.num_threads)
        with_all += wall if governor.num_threads == 2 else 0.0
        now += wall
        governor.observe(1, wall, cpu)
    return with_all / now


def governor() -> ThreadGovernor:
    return ThreadGovernor(2, 2, MeasuredSteps(SIZES * 1.0))


def test_on_a_quiet_machine_all_threads_are_used_all_the_time() -> None:
    assert run(governor(), quiet, 1000) == 1.0


def test_beside_a_busy_process_a_thread_is_given_up_and_rarely_tried_again() -> None:
    under_test = governor()
    run(under_test, beside_a_hog, 20)
    assert run(under_test, beside_a_hog, 1000) < 0.15


def test_when_the_busy_process_has_gone_all_threads_are_used_again() -> None:
    under_test = governor()
    run(under_test, beside_a_hog, 500)
    run(under_test, quiet, MAX_PATIENCE + 5)
    assert run(under_test, quiet, 1000) == 1.0


def test_where_fewer_threads_are_no_faster_they_are_hardly_tried() -> None:
    under_test = governor()
    run(under_test, beside_its_own_server, 100)
    assert run(under_test, beside_its_own_server, 1000) > 0.94


def test_a_single_thread_is_never_given_up() -> None:
    under_test = ThreadGovernor(1, 1, MeasuredSteps(SIZES * 1.0))
    for _ in range(1000):
        under_test.observe(1, 10.0, 1.0)
    assert under_test.num_threads == 1


def test_a_thread_that_was_left_out_at_first_is_tried_once_nobody_takes_its_processor() -> None:
    under_test = ThreadGovernor(1, 2, MeasuredSteps(SIZES * 1.0))
    run(under_test, quiet, 10)
    assert under_test.num_threads == 2


@pytest.mark.parametrize(("wall", "num_threads"), [(0.75, 2), (0.5, 1)])
def test_steps_of_a_trial_are_held_against_steps_of_their_own_size(wall: float, num_threads: int) -> None:
    """Answers took five times as long as was expected, and prompts, of which the trial is, as long as was expected."""
    under_test = ThreadGovernor(2, 2, MeasuredSteps(SIZES * 0.01))
    while under_test.num_threads == 2:
        under_test.observe(64, 0.64, 0.9)
        under_test.observe(8, 0.4, 0.6)
    for _ in range(TRIAL_STEPS):
        under_test.observe(64, wall, wall)
    assert under_test.num_threads == num_threads


def test_a_trial_ends_with_the_step_that_loses_it() -> None:
    under_test = ThreadGovernor(1, 2, MeasuredSteps(SIZES * 0.01))
    while under_test.num_threads == 1:
        under_test.observe(1, 0.01, 0.01)
    under_test.observe(1, 3.0, 4.0)
    assert under_test.num_threads == 1
