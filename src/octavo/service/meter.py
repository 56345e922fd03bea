"""How long a job's tokens take."""

from dataclasses import dataclass
from time import perf_counter

from octavo.service.job import GenerationJob
from octavo.telemetry.metrics import Metrics


class JobMeter:
    """Tells the metrics of one job: prompt tokens when it starts, generated tokens as they come from the engine,
    time to the first token of any choice, and each choice's time per output token when it ends, whatever ended it."""

    def __init__(self, metrics: Metrics, job: GenerationJob) -> None:
        self._metrics = metrics
        self._model = job.model.id
        self._started = perf_counter()
        self._has_token = False
        metrics.count_prompt_tokens(self._model, job.num_prompt_tokens)

    def choice(self) -> "ChoiceMeter":
        return ChoiceMeter(self)

    def count(self, num_tokens: int, now: float) -> None:
        self._metrics.count_generation_tokens(self._model, num_tokens)
        if not self._has_token:
            self._has_token = True
            self._metrics.observe_time_to_first_token(self._model, now - self._started)

    def observe_time_per_token(self, seconds: float) -> None:
        self._metrics.observe_time_per_output_token(self._model, seconds)


@dataclass(slots=True)
class ChoiceMeter:
    """The token times of one choice, in seconds of one clock."""

    job: JobMeter
    first: float = 0.0
    last: float = 0.0
    num_tokens: int = 0

    def count(self, num_tokens: int) -> None:
        """Tokens have just come."""
        if num_tokens == 0:
            return
        self.last = perf_counter()
        if self.num_tokens == 0:
            self.first = self.last
        self.num_tokens += num_tokens
        self.job.count(num_tokens, self.last)

    def end(self) -> None:
        if self.num_tokens > 1:
            self.job.observe_time_per_token((self.last - self.first) / (self.num_tokens - 1))
