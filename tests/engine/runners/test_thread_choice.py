"""Which number of threads is chosen at start, on an invented clock."""

from collections.abc import Callable, Mapping, Sequence

import pytest

from octavo.engine.runners.llama_cpp.thread_choice import ThreadChoice, choose_threads

CHUNK = 64


class Clockwork:
    """Steps that take what is given for their numbers of threads and of tokens, by all the processors' time.

    hogs: processors that others have of those of the largest number.
    """

    def __init__(self, token: Mapping[int, float], chunk: Mapping[int, float], hogs: float = 0.0) -> None:
        self._seconds = {1: token, CHUNK: chunk}
        self._hogs = hogs
        self.steps: list[tuple[int, int]] = []

    def __call__(self, num_threads: int, num_tokens: int) -> tuple[float, float]:
        self.steps.append((num_threads, num_tokens))
        seconds = self._seconds[num_tokens][num_threads]
        is_shared = num_threads == max(self._seconds[1])
        return seconds, seconds * (num_threads - self._hogs * is_shared)

    def choose(self) -> ThreadChoice:
        return choose_threads(sorted(self._seconds[1], reverse=True), self, CHUNK)


def scaling(*numbers: int) -> dict[int, float]:
    return {number: 0.01 / number for number in numbers}


def test_where_threads_help_the_largest_number_is_taken_and_no_chunk_is_computed() -> None:
    clockwork = Clockwork(scaling(2, 1), chunk={})
    assert clockwork.choose().num_threads == 2
    assert {num_tokens for _, num_tokens in clockwork.steps} == {1}


def test_fewer_threads_that_are_clearly_faster_are_taken() -> None:
    choice = Clockwork({16: 0.010, 15: 0.0105, 8: 0.008}, {16: 0.10, 8: 0.09}).choose()
    assert (choice.num_threads, choice.at_first) == (8, 8)
    assert choice.decoding == pytest.approx({16: 100, 15: 1 / 0.0105, 8: 125})
    assert choice.prompts == pytest.approx({16: 640, 8: CHUNK / 0.09})


def test_fewer_threads_that_are_hardly_faster_are_not_taken() -> None:
    assert Clockwork({2: 0.0105, 1: 0.010}, {2: 0.1, 1: 0.1}).choose().num_threads == 2


def test_fewer_threads_that_lose_more_in_prompts_than_they_gain_in_answers_are_not_taken() -> None:
    assert Clockwork({16: 0.010, 8: 0.008}, {16: 0.1, 8: 0.2}).choose().num_threads == 16


def test_of_several_smaller_numbers_the_fastest_is_taken() -> None:
    times = {16: 0.02, 12: 0.015, 8: 0.010, 4: 0.016}
    assert Clockwork(times, times).choose().num_threads == 8


def interrupted(time_step: Clockwork) -> Callable[[int, int], tuple[float, float]]:
    """Half of the largest number's steps take ten times as long, running all the time."""

    def stumble(num_threads: int, num_tokens: int) -> tuple[float, float]:
        seconds, cpu = time_step(num_threads, num_tokens)
        slowness = 10 if num_threads == 2 and len(time_step.steps) % 2 else 1
        return slowness * seconds, slowness * cpu

    return stumble


def test_steps_that_were_interrupted_do_not_decide() -> None:
    assert choose_threads((2, 1), interrupted(Clockwork(scaling(2, 1), chunk={})), CHUNK).num_threads == 2


def test_beside_a_busy_process_fewer_threads_are_taken_only_at_first() -> None:
    choice = Clockwork({2: 0.05, 1: 0.01}, chunk={}, hogs=0.8).choose()
    assert (choice.num_threads, choice.at_first) == (2, 1)
    assert choice.summary.startswith("2, 1 at first (one per processor, of which others had a part at start;")


def test_a_large_model_is_not_kept_from_starting() -> None:
    clockwork = Clockwork({2: 0.5, 1: 1.0}, chunk={})
    clockwork.choose()
    assert clockwork.steps == [(2, 1), (1, 1)]


def test_a_single_candidate_needs_no_measurement() -> None:
    clockwork = Clockwork({1: 1.0}, chunk={})
    assert clockwork.choose() == ThreadChoice.fixed(1, "one per processor")
    assert not clockwork.steps


@pytest.mark.parametrize(
    ("choice", "summary"),
    [
        (ThreadChoice.fixed(3, "as configured"), "3 (as configured)"),
        (ThreadChoice(2, 2, "why", {2: 180.4, 1: 9.96}), "2 (why; tokens/s decoding: 180 with 2, 9.96 with 1)"),
        (
            ThreadChoice(1, 1, "why", {2: 1.0, 1: 2.0}, {2: 30.0, 1: 31.0}),
            "1 (why; tokens/s decoding: 1 with 2, 2 with 1; tokens/s of a prompt: 30 with 2, 31 with 1)",
        ),
    ],
)
def test_a_choice_says_what_it_was_chosen_from(choice: ThreadChoice, summary: str) -> None:
    assert choice.summary == summary


@pytest.mark.parametrize("numbers", [(2, 1), (16, 15, 8), (64, 63, 32, 16)])
def test_a_quiet_machine_whose_threads_help_gives_its_largest_number_at_any_speed(numbers: Sequence[int]) -> None:
    for speed in (0.01, 1.0, 100.0):
        token = {number: speed * seconds for number, seconds in scaling(*numbers).items()}
        assert Clockwork(token, chunk={}).choose().num_threads == numbers[0]
