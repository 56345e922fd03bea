"""How single choices went: how long, how much, and why they ended."""

from contextlib import suppress
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Histogram

_SECONDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
_TOKENS = (1, 4, 16, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072)

CLOSED, FAILED = "closed", "error"
"""Why a choice ended that has no finish reason: its client went away, or another choice's error ended it; an error."""


@dataclass(frozen=True, slots=True)
class EndedChoice:
    """finish_reason: the wire's, CLOSED or FAILED. seconds: from its request's admission."""

    finish_reason: str
    num_prompt_tokens: int
    num_tokens: int
    seconds: float


@dataclass(frozen=True, slots=True)
class ChoicePhases:
    """Seconds in the queue, from its end to the first token, and from there to the last one."""

    queue: float
    prefill: float
    decode: float


class ChoiceMetrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        def histogram(name: str, documentation: str, buckets: tuple[float, ...]) -> Histogram:
            return Histogram(name, documentation, ["model"], registry=registry, buckets=buckets)

        self._ended = Counter(
            "octavo_choices", "Choices that have ended.", ["model", "finish_reason"], registry=registry
        )
        self._duration = histogram(
            "octavo_choice_duration_seconds", "From a request's admission to the end of a choice.", _SECONDS
        )
        self._prompt = histogram("octavo_choice_prompt_tokens", "Prompt tokens of a choice.", _TOKENS)
        self._generation = histogram("octavo_choice_generation_tokens", "Tokens generated for a choice.", _TOKENS)
        self._queue = histogram("octavo_queue_time_seconds", "Until a sequence had a slot.", _SECONDS)
        self._prefill = histogram("octavo_prefill_time_seconds", "From a slot to the first token.", _SECONDS)
        self._decode = histogram("octavo_decode_time_seconds", "From the first token to the last one.", _SECONDS)

    def end(self, model: str, choice: EndedChoice) -> None:
        self._ended.labels(model, choice.finish_reason).inc()
        self._duration.labels(model).observe(choice.seconds)
        self._prompt.labels(model).observe(choice.num_prompt_tokens)
        self._generation.labels(model).observe(choice.num_tokens)

    def observe_phases(self, model: str, phases: ChoicePhases) -> None:
        self._queue.labels(model).observe(phases.queue)
        self._prefill.labels(model).observe(phases.prefill)
        self._decode.labels(model).observe(phases.decode)

    def forget(self, model: str) -> None:
        self._ended.remove_by_labels({"model": model})
        for metric in (self._duration, self._prompt, self._generation, self._queue, self._prefill, self._decode):
            with suppress(KeyError):  # it has none of these
                metric.remove(model)
