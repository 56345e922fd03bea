"""How many of its threads the engine uses, beside what else runs on the machine.

llama.cpp's threads wait for each other some thousand times a step. One that has to share its processor makes all wait,
far longer than its loss: beside a single busy process two threads are often slower than one.
"""

import numpy as np

from octavo.engine.batching.step_costs import StepCosts

MIN_LOSS = 0.3
"""Processors that others must take from the threads before fewer are tried."""
LOSS_RATE = 0.3
"""How much of a step's loss is believed."""
GAIN = 0.95
"""Of the time that steps took before, what they may take at most with another number of threads for it to be kept."""
TRIAL_STEPS = 3
PATIENCE = 2.0
"""Seconds until the next trial; twice as many after each one that failed, up to MAX_PATIENCE."""
MAX_PATIENCE = 60.0


class ThreadGovernor:
    """Tries a thread less while others take time from the threads, and one more where some are not used; keeps what is
    faster.

    num_threads: to begin with. costs: of steps with so many, its own to correct: each step of a trial is held against
    what one of its size took before.
    """

    def __init__(self, num_threads: int, max_threads: int, costs: StepCosts) -> None:
        self.num_threads = num_threads
        self._max_threads = max_threads
        self._costs = costs
        self._loss = 0.0
        self._patience = self._wait = PATIENCE
        self._trial: _Trial | None = None

    def observe(self, num_tokens: int, wall: float, cpu: float, num_graphs: int = 1) -> None:
        """A step of so many tokens took so many seconds, and so many of all threads' processor time."""
        self._wait -= wall
        if self._trial is not None:
            self._judge(self._trial, wall, float(self._costs.seconds(np.array([num_tokens]), num_graphs)[0]))
            return
        self._costs.observe(num_tokens, wall, num_graphs)
        self._loss += LOSS_RATE * (self.num_threads - cpu / wall - self._loss)
        if self._wait <= 0:
            self._consider()

    def _consider(self) -> None:
        if self._loss > MIN_LOSS and self.num_threads > 1:
            self._try(self.num_threads - 1)
        elif self.num_threads < self._max_threads:
            self._try(self.num_threads + 1)

    def _try(self, num_threads: int) -> None:
        self._trial = _Trial(self.num_threads)
        self._use(num_threads)

    def _judge(self, trial: "_Trial", wall: float, expected: float) -> None:
        trial.add(wall, expected)
        if trial.steps_left and not trial.has_failed:
            return
        self._patience = min(2 * self._patience, MAX_PATIENCE) if trial.has_failed else PATIENCE
        self._wait = self._patience
        self._trial = None
        if trial.has_failed:
            self._use(trial.threads_before)

    def _use(self, num_threads: int) -> None:
        self.num_threads = num_threads
        self._loss = 0.0  # of other threads


class _Trial:
    """Of another number of threads for some steps."""

    def __init__(self, threads_before: int) -> None:
        self.threads_before = threads_before
        self.steps_left = TRIAL_STEPS
        self._wall = self._expected = 0.0

    def add(self, wall: float, expected: float) -> None:
        """A step took so many seconds, and would have taken so many before."""
        self._wall += wall
        self._expected += expected
        self.steps_left -= 1

    @property
    def has_failed(self) -> bool:
        """Also when it would if the steps that are left took no time: they may be a hundred times as long as before."""
        num_steps = TRIAL_STEPS - self.steps_left
        return self._wall > GAIN * self._expected * TRIAL_STEPS / num_steps
