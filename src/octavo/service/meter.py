"""How many tokens a job has, and how long they take."""

from dataclasses import dataclass
from time import perf_counter
from typing import Self

from octavo.core.output import TokenChunk
from octavo.core.request import Choice
from octavo.service.job import GenerationJob
from octavo.telemetry.metrics import Metrics


class JobMeter:
    """Tells the metrics of one job, which runs as long as its `with` block.

    Prompt tokens are told when it starts, generated tokens as they come from the engine, time to the first token of any
    choice, and each choice's time per output token when it ends, whatever ended it. Prompt tokens that were found
    computed are told when the job ends: of each prompt as many as for the sample for which the fewest were, because the
    others find what that one has just computed.
    """

    def __init__(self, metrics: Metrics, job: GenerationJob) -> None:
        self._metrics = metrics
        self._model = job.model.id
        self._best_of = job.best_of
        self._started = perf_counter()
        self._has_token = False
        self._num_cached: dict[int, int] = {}
        metrics.count_prompt_tokens(self._model, job.num_prompt_tokens)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._metrics.count_cached_prompt_tokens(self._model, sum(self._num_cached.values()))

    def choice(self, choice: Choice) -> "ChoiceMeter":
        return ChoiceMeter(self, choice.index // self._best_of)

    def count_cached(self, prompt_index: int, num_tokens: int) -> None:
        self._num_cached[prompt_index] = min(num_tokens, self._num_cached.get(prompt_index, num_tokens))

    def count(self, num_tokens: int, now: float) -> None:
        self._metrics.count_generation_tokens(self._model, num_tokens)
        if not self._has_token:
            self._has_token = True
            self._metrics.observe_time_to_first_token(self._model, now - self._started)

    def observe_time_per_token(self, seconds: float) -> None:
        self._metrics.observe_time_per_output_token(self._model, seconds)


@dataclass(slots=True)
class ChoiceMeter:
    """The tokens of one choice, and their times in seconds of one clock."""

    job: JobMeter
    prompt_index: int
    first: float = 0.0
    last: float = 0.0
    num_tokens: int = 0

    def count(self, chunk: TokenChunk) -> None:
        """A chunk has just come."""
        if chunk.tokens:
            if self.num_tokens == 0:
                self.job.count_cached(self.prompt_index, chunk.num_cached)
            self._count_tokens(len(chunk.tokens))

    def end(self) -> None:
        if self.num_tokens > 1:
            self.job.observe_time_per_token((self.last - self.first) / (self.num_tokens - 1))

    def _count_tokens(self, number: int) -> None:
        self.last = perf_counter()
        if self.num_tokens == 0:
            self.first = self.last
        self.num_tokens += number
        self.job.count(number, self.last)
