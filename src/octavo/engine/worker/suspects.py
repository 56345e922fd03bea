"""Which work may have ended the engine's process, and which has."""

from collections.abc import Set

MEMORY = 3600.0
"""Seconds for which work is remembered."""
MAX_REMEMBERED = 4096


class Suspects:
    """Work by its digest. It has no clock: `now` is a time in seconds that never falls.

    What was computed when a process died is suspect. As long as no two suspects are computed at a time, a death with
    one of them says which one ends processes: that is quarantined.
    """

    def __init__(self) -> None:
        self._suspects = _Remembered()
        self._quarantined = _Remembered()

    @property
    def is_empty(self) -> bool:
        return self._suspects.is_empty and self._quarantined.is_empty

    def is_suspect(self, digest: str, now: float) -> bool:
        return self._suspects.has(digest, now)

    def is_quarantined(self, digest: str, now: float) -> bool:
        return self._quarantined.has(digest, now)

    def accuse(self, digests: Set[str], now: float) -> Set[str]:
        """These were computed when a process died. Returns those that are quarantined for it.

        The others are suspect also where one is quarantined: it might have been with them by chance.
        """
        guilty = {digest for digest in digests if self.is_suspect(digest, now)}
        for digest in digests - guilty:
            self._suspects.add(digest, now)
        for digest in guilty:
            self.clear(digest)
            self._quarantined.add(digest, now)
        return guilty

    def clear(self, digest: str) -> None:
        """It was computed to its end, and the process lives."""
        self._suspects.remove(digest)


class _Remembered:
    """Digests, the ones added last, until they are too old."""

    def __init__(self) -> None:
        self._added: dict[str, float] = {}  # oldest first

    @property
    def is_empty(self) -> bool:
        return not self._added

    def has(self, digest: str, now: float) -> bool:
        self._forget_old(now)
        return digest in self._added

    def add(self, digest: str, now: float) -> None:
        self.remove(digest)
        self._added[digest] = now
        if len(self._added) > MAX_REMEMBERED:
            self.remove(next(iter(self._added)))

    def remove(self, digest: str) -> None:
        self._added.pop(digest, None)

    def _forget_old(self, now: float) -> None:
        while self._added and now - self._added[oldest := next(iter(self._added))] >= MEMORY:
            self.remove(oldest)
