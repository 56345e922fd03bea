"""How many tokens a job has, and how long they take."""

from dataclasses import dataclass
from time import perf_counter
from types import TracebackType
from typing import Self

from octavo.core.output import TokenChunk
from octavo.core.request import Choice
from octavo.service.job import GenerationJob
from octavo.telemetry.choice_metrics import CLOSED, FAILED, ChoicePhases, EndedChoice
from octavo.telemetry.contained import contained
from octavo.telemetry.metrics import Metrics

_INTERVAL = 1.0
"""Seconds in which generated tokens are told together: metrics are read less often, and telling costs as much as all
else that is done for a token."""


class JobMeter:
    """Tells the metrics of one job, and the job's own progress, which runs as long as its `with` block.

    Prompt tokens are told when it starts, generated tokens soon after they come from the engine and the last ones when
    it ends, time to the first token of any choice, and what each choice took when it ends, whatever ended it. When the
    job ends it is told how many prompt tokens were found computed, and how many not, of the prompts that had a token:
    of each as for the sample for which the fewest were found, because the others find what that one has just computed.
    A fault of the metrics ends nothing.
    """

    def __init__(self, metrics: Metrics, job: GenerationJob) -> None:
        self.metrics = metrics
        self.started = job.progress.admitted = perf_counter()
        self._job = job
        self._progress = job.progress
        self._num_told = 0
        self._num_untold = 0
        self._told = self.started
        self._num_cached: dict[int, int] = {}
        self._num_begun: dict[int, int] = {}
        with contained():
            metrics.count_prompt_tokens(self.model, job.num_prompt_tokens)

    @property
    def model(self) -> str:
        return self._job.model.id

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.ended = perf_counter()
        self._progress.num_cached = sum(self._num_cached.values())
        self._tell_tokens()
        with contained():
            self._tell_end()

    def choice(self, choice: Choice) -> "ChoiceMeter":
        prompt_index = choice.index // self._job.best_of
        return ChoiceMeter(self, prompt_index, len(choice.request.prompt_tokens), opened=perf_counter())

    def begin(self, prompt_index: int, num_prompt_tokens: int, chunk: TokenChunk, now: float) -> None:
        """The first token of a choice has just come."""
        self._num_begun[prompt_index] = num_prompt_tokens
        self._num_cached[prompt_index] = min(chunk.num_cached, self._num_cached.get(prompt_index, chunk.num_cached))
        if self._progress.first_token is None:
            self._progress.first_token, self._progress.queue_seconds = now, chunk.queue_seconds
            with contained():
                self.metrics.observe_time_to_first_token(self.model, now - self.started)

    def count(self, num_tokens: int, now: float) -> None:
        self._num_untold += num_tokens
        if now - self._told >= _INTERVAL:
            self._tell_tokens()
            self._told = now

    def _tell_tokens(self) -> None:
        with contained():
            self.metrics.count_generation_tokens(self.model, self._num_untold)
        self._num_told, self._num_untold = self._num_told + self._num_untold, 0

    def _tell_end(self) -> None:
        job, num_cached = self._job, self._progress.num_cached
        self.metrics.count_cached_prompt_tokens(self.model, num_cached)
        self.metrics.count_computed_prompt_tokens(self.model, max(0, sum(self._num_begun.values()) - num_cached))
        self.metrics.count_usage(
            job.caller.key_id,
            job.user or "",
            num_prompt_tokens=job.num_prompt_tokens,
            num_generation_tokens=self._num_told,
        )


@dataclass(slots=True)
class ChoiceMeter:
    """The tokens of one choice, which runs as long as its `with` block, and their times in seconds of one clock.

    num_first: those that came at `first`. finish_reason: set before the block ends, unless something else ends it.
    """

    job: JobMeter
    prompt_index: int
    num_prompt_tokens: int
    opened: float
    first: float = 0.0
    last: float = 0.0
    num_first: int = 0
    num_tokens: int = 0
    queue_seconds: float = 0.0
    finish_reason: str = CLOSED

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, Exception):  # a stream that is closed has none
            self.finish_reason = FAILED
        with contained():
            self._tell()

    def count(self, chunk: TokenChunk) -> None:
        """A chunk has just come."""
        if not chunk.tokens:
            return
        self.last = perf_counter()
        if self.num_tokens == 0:
            self.first, self.num_first, self.queue_seconds = self.last, len(chunk.tokens), chunk.queue_seconds
            self.job.begin(self.prompt_index, self.num_prompt_tokens, chunk, self.last)
        self.num_tokens += len(chunk.tokens)
        self.job.count(len(chunk.tokens), self.last)

    def _tell(self) -> None:
        metrics, model = self.job.metrics, self.job.model
        if self.num_tokens > self.num_first:
            seconds = (self.last - self.first) / (self.num_tokens - self.num_first)
            metrics.observe_time_per_output_token(model, seconds)
        if self.num_tokens:
            metrics.observe_phases(model, self._phases)
        seconds = perf_counter() - self.job.started
        metrics.observe_choice(model, EndedChoice(self.finish_reason, self.num_prompt_tokens, self.num_tokens, seconds))

    @property
    def _phases(self) -> ChoicePhases:
        prefill = max(0.0, self.first - self.opened - self.queue_seconds)
        return ChoicePhases(self.queue_seconds, prefill, self.last - self.first)
