"""How many of its threads the engine uses, beside what else runs on the machine.

llama.cpp's threads wait for each other some thousand times a step. One that has to share its processor makes all wait,
far longer than its loss: beside a single busy process two threads are often slower than one.
"""

import numpy as np

from octavo.engine.batching.step_costs import StepCosts

MIN_LOSS = 0.3
"""Processors that others must take from the threads before fewer are tried."""
GAIN = 0.95
"""Of the time that steps took before, what they may take at most with another number of threads for it to be kept."""
TRIAL_STEPS = 3
RATE = 0.3
"""How much of a step's surprise is believed."""
PATIENCE = 2.0
"""Seconds until the next trial; twice as many after each one that failed, up to MAX_PATIENCE."""
MAX_PATIENCE = 60.0


class ThreadGovernor:
    """Tries a thread less while others take time from the threads, and one more where some are not used; keeps what is
    faster.

    costs: of steps; only how those of different sizes compare counts.
    """

    def __init__(self, max_threads: int, costs: StepCosts) -> None:
        self.num_threads = max_threads
        self._max_threads = max_threads
        self._costs = costs
        self._slowness: float | None = None  # of the last steps, against `costs`
        self._loss = 0.0
        self._patience = self._wait = PATIENCE
        self._trial: _Trial | None = None

    def observe(self, num_tokens: int, wall: float, cpu: float) -> None:
        """A step of so many tokens took so many seconds, and so many of all threads' processor time."""
        slowness = wall / float(self._costs.seconds(np.array([num_tokens]))[0])
        self._slowness = slowness if self._slowness is None else _nearer(self._slowness, slowness)
        self._loss = _nearer(self._loss, self.num_threads - cpu / wall)
        self._wait -= wall
        if self._trial is not None:
            self._judge(self._trial)
        elif self._wait <= 0:
            self._consider()

    def _consider(self) -> None:
        if self._loss > MIN_LOSS and self.num_threads > 1:
            self._try(self.num_threads - 1)
        elif self.num_threads < self._max_threads:
            self._try(self.num_threads + 1)

    def _try(self, num_threads: int) -> None:
        assert self._slowness is not None
        self._trial = _Trial(self.num_threads, self._slowness)
        self._use(num_threads)

    def _judge(self, trial: "_Trial") -> None:
        assert self._slowness is not None
        trial.steps_left -= 1
        if trial.steps_left:
            return
        has_failed = self._slowness > GAIN * trial.slowness_before
        self._patience = min(2 * self._patience, MAX_PATIENCE) if has_failed else PATIENCE
        self._wait = self._patience
        self._trial = None
        if has_failed:
            self._use(trial.threads_before)

    def _use(self, num_threads: int) -> None:
        """What was seen with another number says nothing of this one."""
        self.num_threads = num_threads
        self._slowness, self._loss = None, 0.0


class _Trial:
    """Of another number of threads for some steps."""

    def __init__(self, threads_before: int, slowness_before: float) -> None:
        self.threads_before = threads_before
        self.slowness_before = slowness_before
        self.steps_left = TRIAL_STEPS


def _nearer(average: float, value: float) -> float:
    return average + RATE * (value - average)
