"""llama.cpp as a `ModelRunner`."""

from collections.abc import Sequence
from time import perf_counter, process_time

import numpy as np
from numpy.typing import NDArray

from octavo.core.adapters import Adapter
from octavo.engine.batching.rows import Row
from octavo.engine.batching.runner import LONE_CHUNK, ForwardBatch, KvCacheFull, RunnerFailed, RunnerLimits, Snapshot
from octavo.engine.batching.step_costs import StepCosts, StepTimer
from octavo.engine.runners.llama_cpp import binding
from octavo.engine.runners.llama_cpp.adapters import Adapters
from octavo.engine.runners.llama_cpp.cache_tiles import NO_TILES, CacheTiles
from octavo.engine.runners.llama_cpp.positions import Positions
from octavo.engine.runners.llama_cpp.thread_choice import ThreadChoice, choose_threads
from octavo.engine.runners.llama_cpp.threads import ThreadGovernor
from octavo.errors import ModelLoadError

DECODED = 0
NO_CACHE_SLOT = 1
FAILURES = {
    2: "llama.cpp was told to abort a step.",
    -1: "llama.cpp refused a batch as invalid.",
    -2: "llama.cpp could not allocate memory for a step.",
}
SELF_TEST_TOKENS = 64
LOGITS_BYTES = 32 * 2**20
"""Memory for the logits of a step, where the least that is needed does not take more."""


class LlamaRunner:
    """Owns a model and a context over it."""

    def __init__(self, model: binding.Model, context: binding.Context, limits: RunnerLimits) -> None:
        self._model = model
        self._context = context
        self._limits = limits
        self._tiles = CacheTiles(limits.num_slots, context.context_length)
        self._positions = Positions(limits.num_slots)
        self._adapters = Adapters(model, context)
        self._governor: ThreadGovernor | None = None

    @classmethod
    def create(cls, model: binding.Model, settings: binding.ContextSettings) -> "LlamaRunner":
        """Raises ModelLoadError when there is not enough memory."""
        try:
            context = binding.Context(model, settings)
        except OSError as error:
            size = f"{settings.num_slots} slots of {settings.context_length} tokens"
            raise ModelLoadError(f"{error} ({size}).") from error
        # llama.cpp rounds the context up, perhaps beyond what the model was trained on.
        context_length = min(settings.context_length, context.context_length)
        rows = LOGITS_BYTES // (np.dtype(np.float32).itemsize * model.vocabulary_size)
        limits = RunnerLimits(
            settings.num_slots,
            context_length,
            settings.max_batch_tokens,
            model.vocabulary_size,
            max_logits=max(settings.num_slots, min(max(rows, LONE_CHUNK), settings.max_batch_tokens)),
            can_share=model.has_attention_only,
        )
        return cls(model, context, limits)

    @property
    def limits(self) -> RunnerLimits:
        return self._limits

    def choose_threads(self, candidates: Sequence[int]) -> ThreadChoice:
        """By what steps take; the runner is idle. candidates: the largest first."""
        timer = StepTimer(self)

        def time_step(num_threads: int, num_tokens: int) -> tuple[float, float]:
            self.use_threads(num_threads)
            started = process_time()
            return timer.seconds(num_tokens), process_time() - started

        return choose_threads(candidates, time_step, timer.max_tokens)

    def use_threads(self, num_threads: int) -> None:
        self._context.use_threads(num_threads)

    def govern_threads(self, threads: ThreadChoice, costs: StepCosts) -> None:
        """From now on use fewer threads while fewer are faster. costs: of steps, as a ThreadGovernor wants them."""
        self._governor = ThreadGovernor(threads.at_first, threads.num_threads, costs)

    def forward(self, batch: ForwardBatch) -> NDArray[np.float32]:
        started, cpu_started = perf_counter(), process_time()
        self._adapters.use(batch.adapter)
        self._tiles.written(batch.slots, batch.positions)
        binding.use_tile_ids(self._tiles.ids)
        code = self._decode(batch)
        binding.use_tile_ids(NO_TILES)  # these are of this cache, and gone with it
        if code == DECODED:
            if self._governor is not None:
                self._govern(self._governor, batch, perf_counter() - started, process_time() - cpu_started)
            return self._context.logits(int(batch.wants_logits.sum()))
        if code == NO_CACHE_SLOT:
            raise KvCacheFull
        raise RunnerFailed(FAILURES.get(code, f"llama.cpp failed in the middle of a step (code {code})."))

    def _decode(self, batch: ForwardBatch) -> int:
        if batch.image is None:
            positions = self._positions.of_text(batch.slots, batch.positions)
            return self._context.decode(batch.tokens, positions, batch.slots, batch.wants_logits)
        embeddings, start, end = batch.image.embeddings, batch.image.start, batch.image.start + len(batch.tokens)
        return self._context.decode_embeddings(
            embeddings.values[start:end],
            self._positions.of_image(int(batch.slots[0]), int(batch.positions[0]), batch.image, len(batch.tokens)),
            batch.slots,
            batch.wants_logits,
            is_causal=not embeddings.is_whole,
        )

    def load_adapter(self, adapter: Adapter) -> None:
        self._adapters.load(adapter)

    def unload_adapter(self, key: str) -> None:
        self._adapters.unload(key)

    def _govern(self, governor: ThreadGovernor, batch: ForwardBatch, wall: float, cpu: float) -> None:
        before = governor.num_threads
        governor.observe(len(batch.tokens), wall, cpu, batch.num_graphs)
        if governor.num_threads != before:
            self.use_threads(governor.num_threads)

    def save(self, slot: int) -> Snapshot:
        return Snapshot(self._context.save(slot), self._tiles.of(slot), self._positions.of_slot(slot))

    def restore(self, slot: int, snapshot: Snapshot) -> None:
        if not self._context.restore(slot, snapshot.data):
            raise RunnerFailed("llama.cpp could not take back a part of its cache.")
        self._tiles.restored(slot, snapshot.tile_ids)
        self._positions.restored(slot, snapshot.shifts)

    def truncate(self, slot: int, length: int) -> None:
        if not self._context.remove(slot, self._positions.truncated(slot, length)):
            raise RunnerFailed("llama.cpp could not forget a part of its cache.")

    def exponentials(self, row: Row, highest: float) -> float:
        return binding.exponentials(row, highest)

    def self_test(self) -> None:
        """A prompt and one more token through every layer; a library that was built wrong dies here, not later.

        Raises ModelLoadError when what comes back are not numbers.
        """
        length = min(SELF_TEST_TOKENS, self._limits.max_batch_tokens, self._limits.context_length - 1)
        tokens = np.arange(length, dtype=np.int32) % self._limits.vocabulary_size
        for start, chunk in ((0, tokens), (length, tokens[:1])):
            logits = self.forward(ForwardBatch.build([(0, start, chunk, 1)]))
            if not np.isfinite(logits).all():
                raise ModelLoadError("The model's self-test gave logits that are not numbers.")
        self.truncate(0, 0)

    def close(self) -> None:
        self._adapters.close()
        self._context.close()
        self._model.close()
