"""The step loop of the batching engine: schedule, run, sample. One thread owns it; no I/O, no clock."""

from collections.abc import Sequence as Sequence_

import numpy as np
from numpy.typing import NDArray

from octavo.core.output import FinishReason, TokenChunk
from octavo.core.request import GenerationRequest
from octavo.engine.batching.runner import ForwardBatch, KvCacheFull, ModelRunner
from octavo.engine.batching.sampler import sample
from octavo.engine.batching.scheduler import ScheduledSequence, Scheduler
from octavo.engine.batching.sequence import Sequence
from octavo.errors import EngineError

Output = tuple[str, TokenChunk | EngineError]
"""A request's id, and its new tokens or the error that ended it."""


class EngineCore:
    """Holds every request from `submit` until its last chunk was returned by `step`, or until `cancel`."""

    def __init__(self, runner: ModelRunner, *, eog_tokens: frozenset[int]) -> None:
        limits = runner.limits
        self._runner = runner
        self._eog_tokens = eog_tokens
        self._scheduler = Scheduler(num_slots=limits.num_slots, token_budget=limits.max_batch_tokens)
        self._sequences: dict[str, Sequence] = {}
        self.batch_size = 0

    @property
    def num_running(self) -> int:
        return self._scheduler.num_running

    @property
    def num_waiting(self) -> int:
        return self._scheduler.num_waiting

    @property
    def has_work(self) -> bool:
        return self._scheduler.has_work

    def submit(self, request: GenerationRequest) -> list[Output]:
        """Queue a request; one that asks for no tokens is answered at once."""
        if request.max_tokens == 0:
            return [(request.id, TokenChunk((), FinishReason.LENGTH))]
        sequence = Sequence(request, self._runner.limits.context_length)
        self._sequences[request.id] = sequence
        self._scheduler.add(sequence)
        return []

    def cancel(self, request_id: str) -> None:
        """Forget a request; one that has ended meanwhile is not an error."""
        if request_id in self._sequences:
            self._remove(self._sequences[request_id])

    def step(self) -> list[Output]:
        """One batch through the model. Raises RunnerFailed when the model's state is lost."""
        scheduled = self._scheduler.schedule()
        self.batch_size = len(scheduled)
        try:
            logits = self._forward(scheduled)
        except KvCacheFull:
            return self._make_room()
        for item in scheduled:
            item.sequence.num_computed += item.num_tokens
        return self._advance(logits, [item.sequence for item in scheduled if item.sequence.num_pending == 0])

    def _forward(self, scheduled: Sequence_[ScheduledSequence]) -> NDArray[np.float32]:
        spans = []
        for item in scheduled:
            sequence, start = item.sequence, item.sequence.num_computed
            assert sequence.slot is not None
            tokens = sequence.tokens[start : start + item.num_tokens]
            spans.append((sequence.slot, start, tokens, item.reaches_end))
        return self._runner.forward(ForwardBatch.build(spans))

    def _make_room(self) -> list[Output]:
        sequence = self._scheduler.last_admitted
        if self._scheduler.num_running > 1:
            self._forget_computed(sequence)
            self._scheduler.preempt_last()
            return []
        self._remove(sequence)
        return [(sequence.id, EngineError("The KV cache has no room for this request, even alone."))]

    def _advance(self, logits: NDArray[np.float32], sequences: Sequence_[Sequence]) -> list[Output]:
        if not sequences:
            return []
        outputs: list[Output] = []
        for sequence, token in zip(sequences, sample(logits, sequences).tolist(), strict=True):
            sequence.append(token, ends_generation=token in self._eog_tokens)
            if sequence.is_finished:
                self._remove(sequence)
            outputs.append((sequence.id, TokenChunk((token,), sequence.finish_reason)))
        return outputs

    def _remove(self, sequence: Sequence) -> None:
        self._forget_computed(sequence)
        self._scheduler.remove(sequence)
        del self._sequences[sequence.id]

    def _forget_computed(self, sequence: Sequence) -> None:
        # At once, not when the slot is used again: others may need the room.
        if sequence.slot is not None:
            self._runner.truncate(sequence.slot, 0)
