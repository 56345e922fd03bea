"""How many threads the engine uses where nothing else runs: measured at start.

One per processor is not always fastest: the processors of one core share its arithmetic, all threads wait for one on a
slow core, and memory that two cores keep busy gives nothing to more.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

CLEARLY = 1.1
"""Times as fast as more threads, what fewer must be: noise at start must not decide for as long as the engine runs."""
UNDISTURBED = 0.85
"""Of their processors' time, what the threads must have had for the choice to last."""
ROUNDS = 3
STEPS = 2
"""In a row with the same number: the first one also starts or ends threads."""
ENOUGH = 0.1
"""Seconds of steps with a number of threads, after which there are no more: long steps differ little."""

TimeStep = Callable[[int, int], tuple[float, float]]
"""From numbers of threads and of tokens to the seconds that such a step takes, and its processor time."""
Rates = Mapping[int, float]
"""Tokens/s by number of threads."""


@dataclass(frozen=True, slots=True)
class ThreadChoice:
    """num_threads: where nothing else runs. at_first: beside what runs now.

    decoding, prompts: as far as measured, of steps of one token, and of chunks of a prompt.
    """

    num_threads: int
    at_first: int
    reason: str
    decoding: Rates = field(default_factory=dict)
    prompts: Rates = field(default_factory=dict)

    @classmethod
    def fixed(cls, num_threads: int, reason: str) -> "ThreadChoice":
        return cls(num_threads, num_threads, reason)

    @property
    def summary(self) -> str:
        at_first = f", {self.at_first} at first" if self.at_first != self.num_threads else ""
        measured = (("decoding", self.decoding), ("of a prompt", self.prompts))
        rates = "".join(f"; tokens/s {name}: {_list(rates)}" for name, rates in measured if rates)
        return f"{self.num_threads}{at_first} ({self.reason}{rates})"


def choose_threads(candidates: Sequence[int], time_step: TimeStep, chunk: int) -> ThreadChoice:
    """The fastest of the candidates, a smaller number only where it is clearly faster.

    Where others take the threads' time, that says nothing of later: then the largest may be used when they have gone.

    candidates: the largest first. chunk: tokens of a prompt in a step.
    """
    most = candidates[0]
    if len(candidates) == 1:
        return ThreadChoice.fixed(most, "one per processor")
    trials = _try(candidates, time_step)
    decoding = {number: 1 / trial.best for number, trial in trials.items()}
    if trials[most].processor_time < UNDISTURBED * most * trials[most].time:
        now = _fastest(decoding, lambda number: decoding[number])
        return ThreadChoice(most, now, "one per processor, of which others had a part at start", decoding)
    prompts = _Prompts(time_step, chunk)
    best = _fastest(decoding, lambda number: decoding[number] * prompts[number])
    return ThreadChoice(best, best, "fastest when measured at start", decoding, prompts)


def _fastest(decoding: Rates, rate: Callable[[int], float]) -> int:
    """By a rate that is asked for only where decoding alone does not settle it for the larger number."""
    best, *others = decoding
    for number in others:
        if decoding[number] >= CLEARLY * decoding[best] and rate(number) >= CLEARLY * rate(best):
            best = number
    return best


class _Prompts(dict[int, float]):
    """Tokens/s, measured where asked for: a chunk takes long, and gains more by each thread than a token does."""

    def __init__(self, time_step: TimeStep, chunk: int) -> None:
        self._time_step = time_step
        self._chunk = chunk

    def __missing__(self, num_threads: int) -> float:
        self[num_threads] = self._chunk / min(self._time_step(num_threads, self._chunk)[0] for _ in range(STEPS))
        return self[num_threads]


class _Trial:
    """Steps of one token with a number of threads. best: seconds of the fastest one. time: seconds of all together."""

    def __init__(self) -> None:
        self.best = inf
        self.time = self.processor_time = 0.0

    def add(self, time: float, processor_time: float) -> None:
        self.best = min(self.best, time)
        self.time += time
        self.processor_time += processor_time


def _try(candidates: Sequence[int], time_step: TimeStep) -> Mapping[int, _Trial]:
    """In turns, so that what is slow for a moment is so for all."""
    trials = {number: _Trial() for number in candidates}
    for number in [number for _ in range(ROUNDS) for number in candidates for _ in range(STEPS)]:
        if trials[number].time < ENOUGH:
            trials[number].add(*time_step(number, 1))
    return trials


def _list(rates: Mapping[int, float]) -> str:
    return ", ".join(f"{rate:.3g} with {number}" for number, rate in rates.items())
