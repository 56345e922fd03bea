"""A `ModelRunner` with given logits, which also checks that its caller keeps the cache's rules."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from octavo.core.adapters import Adapter
from octavo.engine.batching.rows import Row, plain_exponentials
from octavo.engine.batching.runner import ForwardBatch, KvCacheFull, RunnerLimits, Snapshot

NextLogits = Callable[[tuple[int, ...]], NDArray[np.float32]]
"""From all tokens of a slot to the logits of the next one, shape (vocabulary,)."""


class ScriptedRunner:
    """Remembers tokens where a model would keep keys and values.

    cache_tokens: tokens that all slots together may hold; more is KvCacheFull. None: no such bound.
    """

    def __init__(self, limits: RunnerLimits, next_logits: NextLogits, *, cache_tokens: int | None = None) -> None:
        self._limits = limits
        self._next_logits = next_logits
        self._cache_tokens = cache_tokens
        self._cache: list[list[int]] = [[] for _ in range(limits.num_slots)]
        self._adapters = {""}
        self.batches: list[ForwardBatch] = []

    @property
    def limits(self) -> RunnerLimits:
        return self._limits

    def forward(self, batch: ForwardBatch) -> NDArray[np.float32]:
        assert 0 < len(batch.tokens) <= self._limits.max_batch_tokens
        assert batch.wants_logits.sum() <= self._limits.max_logits
        assert (np.diff(batch.slots) >= 0).all(), "a batch is sorted by slot"
        assert batch.adapter in self._adapters
        assert (batch.tokens < 0).all() == (batch.image is not None), "texts and images are computed apart"
        cached = sum(map(len, self._cache))
        if self._cache_tokens is not None and cached + len(batch.tokens) > self._cache_tokens:
            raise KvCacheFull
        self.batches.append(batch)
        rows = []
        for token, position, slot, wanted in zip(
            batch.tokens.tolist(),
            batch.positions.tolist(),
            batch.slots.tolist(),
            batch.wants_logits.tolist(),
            strict=True,
        ):
            held = self._cache[slot]
            assert position == len(held) < self._limits.context_length, "positions follow each other"
            held.append(token)
            if wanted:
                rows.append(self._next_logits(tuple(held)))
        return np.array(rows, np.float32).reshape(len(rows), self._limits.vocabulary_size)

    def save(self, slot: int) -> Snapshot:
        return Snapshot(np.array(self._cache[slot], np.int32).view(np.uint8))

    def restore(self, slot: int, snapshot: Snapshot) -> None:
        self._cache[slot] = snapshot.data.view(np.int32).tolist()

    def truncate(self, slot: int, length: int) -> None:
        assert length == 0 or self._limits.can_share
        del self._cache[slot][length:]

    def load_adapter(self, adapter: Adapter) -> None:
        self._adapters.add(adapter.key)

    def unload_adapter(self, key: str) -> None:
        self._adapters.discard(key)

    def exponentials(self, row: Row, highest: float) -> float:
        return plain_exponentials(row, highest)

    def close(self) -> None:
        self._cache = []
