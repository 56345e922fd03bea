"""Who uses how much: by key, and by end user."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector, CollectorRegistry

from octavo.telemetry.user_hash import user_hash

MAX_SHOWN = 500
"""Keys, and users, that have labels of their own; the others share one. Each costs memory, here and in Prometheus."""
OTHER = "other"


@dataclass(slots=True)
class Usage:
    num_requests: int = 0
    num_prompt_tokens: int = 0
    num_generation_tokens: int = 0

    def add(self, num_prompt_tokens: int, num_generation_tokens: int) -> None:
        self.num_requests += 1
        self.num_prompt_tokens += num_prompt_tokens
        self.num_generation_tokens += num_generation_tokens


class UsageMetrics(Collector):
    """Counts the requests that have been generated for, and their tokens, of whoever has a key or a user's name."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._keys: defaultdict[tuple[str, ...], Usage] = defaultdict(Usage)
        self._users: defaultdict[tuple[str, ...], Usage] = defaultdict(Usage)
        registry.register(self)

    def count(self, key_id: str, user: str, num_prompt_tokens: int, num_generation_tokens: int) -> None:
        """key_id, user: empty for none."""
        if key_id:
            labels = _shown(self._keys, (key_id,), (OTHER,))
            self._keys[labels].add(num_prompt_tokens, num_generation_tokens)
        if user:
            labels = _shown(self._users, (key_id, user_hash(user)), (OTHER, OTHER))
            self._users[labels].add(num_prompt_tokens, num_generation_tokens)

    def collect(self) -> Iterator[CounterMetricFamily]:
        yield from _families("octavo_key", "a key", ("key",), dict(self._keys))
        yield from _families("octavo_user", "an end user, by a hash of the name", ("key", "user"), dict(self._users))


def _shown(known: dict[tuple[str, ...], Usage], labels: tuple[str, ...], rest: tuple[str, ...]) -> tuple[str, ...]:
    return labels if labels in known or len(known) < MAX_SHOWN else rest


def _families(
    prefix: str, whose: str, names: tuple[str, ...], usages: dict[tuple[str, ...], Usage]
) -> Iterator[CounterMetricFamily]:
    requests = CounterMetricFamily(f"{prefix}_requests", f"Requests of {whose} that were generated for.", labels=names)
    tokens = CounterMetricFamily(f"{prefix}_tokens", f"Tokens of {whose}.", labels=(*names, "kind"))
    for labels, usage in usages.items():
        requests.add_metric(labels, usage.num_requests)
        tokens.add_metric((*labels, "prompt"), usage.num_prompt_tokens)
        tokens.add_metric((*labels, "generation"), usage.num_generation_tokens)
    yield requests
    yield tokens
