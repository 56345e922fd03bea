"""Which work may have ended the engine's process, and which has."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

MEMORY = 3600.0
"""Seconds for which work is remembered."""
MAX_REMEMBERED = 4096
OUTLIVED = 16
"""Tokens more than at its deaths with which work has outlived them: some had come then that were not heard of."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Suspicion:
    """num_deaths: at which it was computed. num_tokens: that it had by then, at the most."""

    num_deaths: int
    num_tokens: int


class Suspects:
    """Work by its digest. It has no clock: `now` is a time in seconds that never falls.

    What was computed when a process died is suspect. Only so many suspects are computed together as there is `room`:
    half of those of the last death. So each death halves them, until one is computed, and nothing beside it: the death
    of that one's process says that it ends processes, and it is quarantined.
    """

    def __init__(self) -> None:
        self._suspects = _Remembered[Suspicion]()
        self._quarantined = _Remembered[None]()
        self._room = 1

    @property
    def is_empty(self) -> bool:
        return self._suspects.is_empty and self._quarantined.is_empty

    @property
    def room(self) -> int:
        """Suspects that may be computed together; where it is one, nothing else should be."""
        return self._room

    def is_suspect(self, digest: str, now: float) -> bool:
        return self._suspects.has(digest, now)

    def is_quarantined(self, digest: str, now: float) -> bool:
        return self._quarantined.has(digest, now)

    def num_deaths(self, digest: str) -> int:
        """At which it was computed while it was suspect; 0 where it is none."""
        suspicion = self._suspects.get(digest)
        return suspicion.num_deaths if suspicion is not None else 0

    def is_outlived(self, digest: str, num_tokens: int) -> bool:
        """Whether what has so many tokens now has come further than where the processes died."""
        suspicion = self._suspects.get(digest)
        return suspicion is None or num_tokens > suspicion.num_tokens + OUTLIVED

    def accuse(self, computed: Mapping[str, int], now: float) -> str | None:
        """A process died while these were computed, which had so many tokens. Returns the one that is quarantined now.

        Where suspects were among them, it was one of those: everybody else is cleared.
        """
        known = {digest: num_tokens for digest, num_tokens in computed.items() if self.is_suspect(digest, now)}
        if len(known) == len(computed) == 1:
            [guilty] = known
            self._suspects.clear()
            self._quarantined.add(guilty, None, now)
            return guilty
        suspicions = {digest: self._after(digest, num_tokens) for digest, num_tokens in (known or computed).items()}
        if known:
            self._suspects.clear()
        for digest, suspicion in suspicions.items():
            self._suspects.add(digest, suspicion, now)
        self._room = max(1, len(suspicions) // 2)
        return None

    def clear(self, digest: str) -> None:
        """It was computed further than before, and the process lives."""
        self._suspects.remove(digest)

    def _after(self, digest: str, num_tokens: int) -> Suspicion:
        before = self._suspects.get(digest) or Suspicion(0, 0)
        return Suspicion(before.num_deaths + 1, max(before.num_tokens, num_tokens))


class _Remembered(Generic[T]):
    """Something by digest, what was added last, until it is too old."""

    def __init__(self) -> None:
        self._added: dict[str, tuple[float, T]] = {}  # oldest first

    def get(self, digest: str) -> T | None:
        return self._added[digest][1] if digest in self._added else None

    @property
    def is_empty(self) -> bool:
        return not self._added

    def has(self, digest: str, now: float) -> bool:
        self._forget_old(now)
        return digest in self._added

    def add(self, digest: str, value: T, now: float) -> None:
        self.remove(digest)
        self._added[digest] = now, value
        if len(self._added) > MAX_REMEMBERED:
            self.remove(next(iter(self._added)))

    def remove(self, digest: str) -> None:
        self._added.pop(digest, None)

    def clear(self) -> None:
        self._added = {}

    def _forget_old(self, now: float) -> None:
        while self._added and now - self._added[oldest := next(iter(self._added))][0] >= MEMORY:
            self.remove(oldest)
