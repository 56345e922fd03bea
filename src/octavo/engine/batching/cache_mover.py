"""Carries out what the scheduler decides about keys and values."""

from collections.abc import Iterable

from octavo.engine.batching.cache_moves import CacheMove, Copy, Discard, Exchange, Move, Restore, Save, Truncate
from octavo.engine.batching.runner import ModelRunner, Snapshot


class CacheMover:
    """Owns the snapshots. Between two slots, too, keys and values go through one."""

    def __init__(self, runner: ModelRunner) -> None:
        self._runner = runner
        self._snapshots: dict[int, Snapshot] = {}

    def carry_out(self, moves: Iterable[CacheMove]) -> None:
        read: dict[int, Snapshot] = {}  # many samples of a prompt are copies of one slot, which is read once
        for move in moves:
            match move:
                case Truncate(slot, length):
                    self._runner.truncate(slot, length)
                    read.pop(slot, None)
                case Copy(source, target, length):
                    if source not in read:
                        read[source] = self._runner.save(source)
                    self._write(target, read[source], length)
                    read.pop(target, None)
                case Move(source, target):
                    self._runner.restore(target, self._runner.save(source))
                    self._runner.truncate(source, 0)
                    read.clear()
                case Exchange(a, b):
                    from_a, from_b = self._runner.save(a), self._runner.save(b)
                    self._runner.restore(a, from_b)
                    self._runner.restore(b, from_a)
                    read.clear()
                case Save(slot, snapshot):
                    self._snapshots[snapshot] = self._runner.save(slot)
                case Restore(snapshot, slot, length):
                    self._write(slot, self._snapshots[snapshot], length)
                    read.pop(slot, None)
                case Discard(snapshot):
                    del self._snapshots[snapshot]

    def _write(self, slot: int, snapshot: Snapshot, length: int) -> None:
        self._runner.restore(slot, snapshot)
        self._runner.truncate(slot, length)
