"""How many tokens a job has, and how long they take."""

from dataclasses import dataclass
from time import perf_counter
from typing import Self

from octavo.core.output import TokenChunk
from octavo.core.request import Choice
from octavo.service.job import GenerationJob
from octavo.telemetry.metrics import Metrics

_INTERVAL = 1.0
"""Seconds in which generated tokens are told together: metrics are read less often, and telling costs as much as all
else that is done for a token."""


class JobMeter:
    """Tells the metrics of one job, which runs as long as its `with` block.

    Prompt tokens are told when it starts, generated tokens soon after they come from the engine and the last ones when
    it ends, time to the first token of any choice, and each choice's time per output token when it ends, whatever ended
    it. Prompt tokens that were found computed are told when the job ends: of each prompt as many as for the sample for
    which the fewest were, because the others find what that one has just computed.
    """

    def __init__(self, metrics: Metrics, job: GenerationJob) -> None:
        self._metrics = metrics
        self._model = job.model.id
        self._best_of = job.best_of
        self._started = perf_counter()
        self._has_token = False
        self._num_untold = 0
        self._told = self._started
        self._num_cached: dict[int, int] = {}
        metrics.count_prompt_tokens(self._model, job.num_prompt_tokens)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._metrics.count_generation_tokens(self._model, self._num_untold)
        self._metrics.count_cached_prompt_tokens(self._model, sum(self._num_cached.values()))

    def choice(self, choice: Choice) -> "ChoiceMeter":
        return ChoiceMeter(self, choice.index // self._best_of)

    def begin(self, prompt_index: int, num_cached: int, now: float) -> None:
        """The first token of a choice has just come."""
        self._num_cached[prompt_index] = min(num_cached, self._num_cached.get(prompt_index, num_cached))
        if not self._has_token:
            self._has_token = True
            self._metrics.observe_time_to_first_token(self._model, now - self._started)

    def count(self, num_tokens: int, now: float) -> None:
        self._num_untold += num_tokens
        if now - self._told >= _INTERVAL:
            self._metrics.count_generation_tokens(self._model, self._num_untold)
            self._num_untold, self._told = 0, now

    def observe_time_per_token(self, seconds: float) -> None:
        self._metrics.observe_time_per_output_token(self._model, seconds)


@dataclass(slots=True)
class ChoiceMeter:
    """The tokens of one choice, and their times in seconds of one clock. num_first: those that came at `first`."""

    job: JobMeter
    prompt_index: int
    first: float = 0.0
    last: float = 0.0
    num_first: int = 0
    num_tokens: int = 0

    def count(self, chunk: TokenChunk) -> None:
        """A chunk has just come."""
        if not chunk.tokens:
            return
        self.last = perf_counter()
        if self.num_tokens == 0:
            self.first, self.num_first = self.last, len(chunk.tokens)
            self.job.begin(self.prompt_index, chunk.num_cached, self.last)
        self.num_tokens += len(chunk.tokens)
        self.job.count(len(chunk.tokens), self.last)

    def end(self) -> None:
        if self.num_tokens > self.num_first:
            self.job.observe_time_per_token((self.last - self.first) / (self.num_tokens - self.num_first))
