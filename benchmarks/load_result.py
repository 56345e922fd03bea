"""What a load took."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import msgspec
import psutil

from benchmarks.completion_stream import Completion


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Milliseconds."""

    median: float
    p99: float

    @classmethod
    def of_seconds(cls, values: list[float]) -> Self | None:
        """The median and the nearest-rank 99th percentile; None of nothing."""
        if not values:
            return None
        rank = math.ceil(0.99 * len(values)) - 1
        return cls(1000 * statistics.median(values), 1000 * sorted(values)[rank])


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadResult:
    """What a load took. Tokens are those of the requests that were answered whole; `_ms` are milliseconds.

    What only a stream shows is None (and the gap 0) where the tokens did not come as a stream.
    joint_tokens_per_second: while every stream was being answered, so without the prefill before.
    """

    model: str
    num_streams: int
    num_requests: int
    num_completed: int
    wall_seconds: float
    prompt_tokens: int | None
    completion_tokens: int
    are_token_counts_exact: bool
    time_to_first_token_ms: Percentiles | None
    time_per_output_token_ms: Percentiles | None
    largest_gap_ms: float
    joint_tokens_per_second: float | None
    errors: dict[str, int]
    load_cpu_seconds: float

    @property
    def output_tokens_per_second(self) -> float:
        """Generated tokens by the time of the whole load, so prefill is included."""
        return self.completion_tokens / self.wall_seconds

    @property
    def load_cpu_percent(self) -> float:
        """The load generator's part of all processors' time."""
        return 100 * self.load_cpu_seconds / (self.wall_seconds * (psutil.cpu_count() or 1))

    def to_dict(self) -> dict[str, object]:
        """The fields and the rate, ready for JSON."""
        fields: dict[str, object] = msgspec.to_builtins(self)
        return {"output_tokens_per_second": self.output_tokens_per_second, **fields}


@dataclass(frozen=True, slots=True)
class Sent:
    """Requests that were sent, and what became of each: a completion, or the error in words. Times are seconds."""

    outcomes: list[Completion | str]
    wall: float
    cpu: float

    @property
    def completions(self) -> list[Completion]:
        return [outcome for outcome in self.outcomes if isinstance(outcome, Completion)]

    def summarize(self, model: str, num_streams: int) -> LoadResult:
        completions = self.completions
        usages = [completion.usage for completion in completions if completion.usage is not None]
        is_exact = len(usages) == len(completions)
        per_token = [value for completion in completions if (value := completion.time_per_output_token) is not None]
        return LoadResult(
            model=model,
            num_streams=num_streams,
            num_requests=len(self.outcomes),
            num_completed=len(completions),
            wall_seconds=self.wall,
            prompt_tokens=sum(usage.prompt_tokens for usage in usages) if is_exact else None,
            completion_tokens=sum(completion.num_tokens for completion in completions),
            are_token_counts_exact=is_exact,
            time_to_first_token_ms=Percentiles.of_seconds([c.time_to_first_token for c in completions]),
            time_per_output_token_ms=Percentiles.of_seconds(per_token),
            largest_gap_ms=1000 * max((completion.largest_gap for completion in completions), default=0.0),
            joint_tokens_per_second=joint_rate(completions),
            errors=dict(Counter(outcome for outcome in self.outcomes if isinstance(outcome, str))),
            load_cpu_seconds=self.cpu,
        )


def joint_rate(completions: Sequence[Completion]) -> float | None:
    """Tokens per second from when the last answer began to when the first one ended; None where they do not overlap."""
    if not completions:
        return None
    start = max(completion.text_times[0] for completion in completions)
    end = min(completion.text_times[-1] for completion in completions)
    if end <= start:
        return None
    return sum(completion.num_tokens_between(start, end) for completion in completions) / (end - start)


def format_result(result: LoadResult) -> str:
    """The result as lines for people."""

    def milliseconds(values: Percentiles | None) -> str:
        return f"median {values.median:.1f} ms, p99 {values.p99:.1f} ms" if values else "none"

    prompt_tokens = "unknown" if result.prompt_tokens is None else result.prompt_tokens
    source = "by the server's usage" if result.are_token_counts_exact else "counted in chunks"
    answered = f"{result.num_completed} of {result.num_requests} requests answered"
    lines = [
        f"{result.model}: {result.num_streams} streams, {answered}",
        f"output tokens/s      {result.output_tokens_per_second:.1f} (prefill included, {result.wall_seconds:.2f} s)",
        f"time to first token  {milliseconds(result.time_to_first_token_ms)}",
        f"time per token       {milliseconds(result.time_per_output_token_ms)}",
        f"largest gap          {result.largest_gap_ms:.1f} ms",
        f"tokens               {prompt_tokens} prompt, {result.completion_tokens} generated ({source})",
        f"load generator       {result.load_cpu_seconds:.2f} s of CPU, {result.load_cpu_percent:.1f} % of all",
        f"errors               {sum(result.errors.values())}",
    ]
    return "\n".join(lines + [f"  {count} × {error}" for error, count in result.errors.items()])
