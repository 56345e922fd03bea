"""How long the model takes for a step, by its number of tokens: measured at start, corrected by every step."""

from collections.abc import Callable
from time import perf_counter
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from octavo.engine.batching.runner import LONE_CHUNK, ForwardBatch, ModelRunner

SIZES = np.array([1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 1024, 2048, 4096, 8192])
FEW = int(np.searchsorted(SIZES, 8))
"""The size by which what a token takes is told from what a step takes."""
NEARBY_RATE = 0.2
"""How much of what a step took otherwise than expected is believed of steps of its size and of larger ones."""
GENERAL_RATE = 0.02
"""The same for smaller ones, as a share of what they take: a machine that has become slower is so for all."""


class StepCosts(Protocol):
    """Seconds that a step takes, by its number of tokens and of the graphs that they are computed in."""

    def seconds(
        self, num_tokens: NDArray[np.int64], num_graphs: NDArray[np.int64] | int = 1
    ) -> NDArray[np.float64]: ...

    def max_tokens(self, seconds: float) -> int:
        """Of a step of one graph that takes no longer."""
        ...

    def observe(self, num_tokens: int, seconds: float, num_graphs: int = 1) -> None:
        """A step of so many tokens took so long."""
        ...


class FreeSteps:
    """Steps of a model that takes no time worth counting, such as a scripted one. Nothing is to be weighed by them."""

    def seconds(self, num_tokens: NDArray[np.int64], num_graphs: NDArray[np.int64] | int = 1) -> NDArray[np.float64]:
        return np.zeros(len(num_tokens))

    def max_tokens(self, seconds: float) -> int:
        return int(SIZES[-1])

    def observe(self, num_tokens: int, seconds: float, num_graphs: int = 1) -> None:
        pass


FREE_STEPS: StepCosts = FreeSteps()


class StepTimer:
    """Times steps of a runner that is idle, and leaves it so; all logits are computed, as where drafts are checked.

    max_tokens: of a step.
    """

    def __init__(self, runner: ModelRunner, clock: Callable[[], float] = perf_counter) -> None:
        limits = runner.limits
        self.max_tokens = min(LONE_CHUNK, limits.max_batch_tokens, limits.context_length - 1)
        self._tokens = np.arange(self.max_tokens, dtype=np.int32) % limits.vocabulary_size
        self._runner = runner
        self._clock = clock

    def seconds(self, num_tokens: int) -> float:
        started = self._clock()
        self._runner.forward(ForwardBatch.build([(0, 0, self._tokens[:num_tokens], num_tokens)]))
        elapsed = self._clock() - started
        self._runner.truncate(0, 0)
        return elapsed


class MeasuredSteps:
    """Times of SIZES in one graph; those between by interpolation.

    Each graph more reads all weights once more, as a step of a single token does.
    """

    def __init__(self, seconds: NDArray[np.float64]) -> None:
        """seconds: of SIZES."""
        self._seconds = seconds

    @classmethod
    def measure(cls, runner: ModelRunner, clock: Callable[[], float] = perf_counter) -> "MeasuredSteps":
        """From a step of one token and one of a chunk of a prompt, on a straight line through both."""
        timer = StepTimer(runner, clock)
        length = timer.max_tokens
        one, chunk = min(timer.seconds(1), timer.seconds(1)), timer.seconds(length)
        per_token = max(chunk - one, 0.0) / max(length - 1, 1)
        return cls(one + per_token * (SIZES - 1))

    def seconds(self, num_tokens: NDArray[np.int64], num_graphs: NDArray[np.int64] | int = 1) -> NDArray[np.float64]:
        in_one: NDArray[np.float64] = np.interp(num_tokens, SIZES, self._seconds)
        return in_one + self._seconds_per_graph * (num_graphs - 1)

    @property
    def _seconds_per_graph(self) -> float:
        """What a step of one token takes but for the token itself."""
        per_token = (self._seconds[FEW] - self._seconds[0]) / (SIZES[FEW] - 1)
        return max(float(self._seconds[0] - per_token), 0.0)

    def max_tokens(self, seconds: float) -> int:
        ascending = np.maximum.accumulate(self._seconds)
        return int(np.interp(seconds, ascending, SIZES))

    def observe(self, num_tokens: int, seconds: float, num_graphs: int = 1) -> None:
        above = int(np.searchsorted(SIZES[:-1], num_tokens))
        below = max(above - 1, 0)
        expected = float(self.seconds(np.array([num_tokens]), num_graphs)[0])
        surprise = min(seconds / expected - 1, 1.0)  # a step that was interrupted says little
        rates = np.full(len(SIZES), GENERAL_RATE)
        rates[[below, above]] = NEARBY_RATE
        change = self._seconds * rates * surprise
        change[above + 1 :] = change[above]  # a larger step does what a smaller one does, and more
        self._seconds = self._seconds + change
