"""The step loop of the batching engine: schedule, run, score and sample. One thread owns it; no I/O."""

import logging
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Sequence as Sequence_
from contextlib import suppress
from dataclasses import dataclass, field, replace
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from octavo.core.adapters import Adapter
from octavo.core.images import ImageSpan
from octavo.core.output import FinishReason, TokenChunk, TokenLogprob
from octavo.core.request import GenerationRequest
from octavo.engine.base import CacheUse
from octavo.engine.batching.cache_mover import CacheMover
from octavo.engine.batching.composer import Composer, ScheduledSequence
from octavo.engine.batching.drafts import NO_TOKENS
from octavo.engine.batching.grammars import Allowed, GrammarState, MaskComputer
from octavo.engine.batching.logprobs import score
from octavo.engine.batching.radix_tree import Tokens
from octavo.engine.batching.runner import ForwardBatch, KvCacheFull, ModelRunner
from octavo.engine.batching.sampler import sample
from octavo.engine.batching.scheduler import Scheduler
from octavo.engine.batching.sequence import Sequence
from octavo.engine.batching.sight import EmbeddingsOf, Sight, is_at
from octavo.engine.batching.speculation import MAX_DRAFT
from octavo.errors import EngineError

Output = tuple[str, TokenChunk | EngineError]
"""A request's id, and its new tokens or the error that ended it."""

Logits = NDArray[np.float32]
"""Shape (rows, vocabulary)."""

NOT_NUMBERS = "The model gave logits that are not numbers."

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Computed:
    """What a step found out about a sequence.

    row: of the logits from which its next token is drawn, where it `draws`; those behind it belong to the draft.
    tokens, logprobs: what was drawn, a token at least where it draws. failure: why nothing can be drawn any more.
    """

    sequence: Sequence
    prompt_logprobs: tuple[TokenLogprob, ...]
    row: int
    draws: bool
    draft: Tokens
    tokens: list[int] = field(default_factory=list)
    logprobs: list[TokenLogprob] = field(default_factory=list)
    failure: str = ""

    def accept(self) -> bool:
        """Whether the last token drawn was the drafted one, so that the logits behind it are right."""
        place = len(self.tokens) - 1
        return not self.failure and 0 <= place < len(self.draft) and self.sequence.accept(int(self.draft[place]))


class EngineCore:
    """Holds every request from `submit` until its last chunk was returned by `step`, or until `cancel`."""

    def __init__(
        self,
        runner: ModelRunner,
        composer: Composer,
        *,
        eog_tokens: frozenset[int],
        max_saved: int = 0,
        embeddings_of: EmbeddingsOf = lambda _: None,
    ) -> None:
        """max_saved: tokens whose keys and values may be kept in the host's memory."""
        self._runner = runner
        self._sight = Sight(embeddings_of)
        self._eog_tokens = eog_tokens
        self._scheduler = Scheduler(runner.limits.num_slots, composer, max_saved if runner.limits.can_share else 0)
        self._cache = CacheMover(runner)
        self._sequences: dict[str, Sequence] = {}
        self._composer = composer
        self._masks = MaskComputer(runner.limits.vocabulary_size)
        self._adapters = {""}
        self.batch_size = 0

    @property
    def num_running(self) -> int:
        return self._scheduler.num_running

    @property
    def running(self) -> frozenset[str]:
        """Ids of the requests that have slots; may be asked by any thread."""
        return frozenset(sequence.id for sequence in tuple(self._scheduler.running))

    @property
    def num_waiting(self) -> int:
        return self._scheduler.num_waiting

    @property
    def cache_use(self) -> CacheUse:
        """Now; may be asked by any thread."""
        limits = self._runner.limits
        return CacheUse(
            num_tokens=sum(sequence.num_computed for sequence in tuple(self._scheduler.running)),
            max_tokens=limits.num_slots * limits.context_length,
            num_saved_prefixes=self._scheduler.num_saved_prefixes,
            num_saved_tokens=self._scheduler.num_saved_tokens,
        )

    @property
    def has_work(self) -> bool:
        return self._scheduler.has_work

    def submit(self, request: GenerationRequest, grammar: GrammarState | None = None) -> list[Output]:
        """Queue a request; one that needs nothing of the model is answered at once.

        grammar: the state before the first token of the request's grammar, where that is not free.
        """
        if request.adapter not in self._adapters:
            return [(request.id, EngineError("The engine has lost the adapter of this request."))]
        sequence = Sequence(request, self._runner.limits.context_length, self._eog_tokens, grammar)
        if sequence.num_pending == 0:
            return [(request.id, TokenChunk((), FinishReason.LENGTH))]
        self._sequences[request.id] = sequence
        sequence.arrived = perf_counter()
        self._scheduler.add(sequence)
        return []

    def cancel(self, request_id: str) -> None:
        """Forget a request; one that has ended meanwhile is not an error."""
        if request_id in self._sequences:
            self._remove(self._sequences[request_id])

    def load_adapter(self, adapter: Adapter) -> None:
        """Raises AdapterRefused."""
        self._runner.load_adapter(adapter)
        self._adapters.add(adapter.key)

    def unload_adapter(self, key: str) -> None:
        """No request that is not over names it."""
        self._adapters.discard(key)
        self._cache.carry_out(self._scheduler.forget_adapter(key))
        self._runner.unload_adapter(key)

    @property
    def unseen_span(self) -> ImageSpan | None:
        """What must be encoded so that sequences can go on."""
        return self._sight.unseen(self._scheduler.running)

    def needs(self, span: ImageSpan) -> bool:
        """Whether a sequence cannot go on without that part of an image."""
        return any(is_at(sequence, span) for sequence in self._scheduler.running)

    def fail_image(self, span: ImageSpan, message: str) -> list[Output]:
        """End the requests that cannot go on without that part of an image."""
        failing = [sequence for sequence in self._scheduler.running if is_at(sequence, span)]
        for sequence in failing:
            self._remove(sequence)
        return [(sequence.id, EngineError(message)) for sequence in failing]

    def step(self) -> list[Output]:
        """One batch through the model, if any sequence can go on. Raises RunnerFailed when its state is lost."""
        num_running = self._scheduler.num_running
        step = self._scheduler.schedule(self._sight.is_clear)
        _end_waits(self._scheduler.running[num_running:])
        self._cache.carry_out(step.moves)
        if not step.batch:
            return []
        self.batch_size = len(step.batch)
        drawing = [item.sequence for item in step.batch if item.sequence.draws_after(item.num_tokens)]
        masks = self._masks.begin(_grammars(drawing))
        try:
            batch, logits = self._forward(step.batch)
        except KvCacheFull:
            masks.result()
            return self._make_room()
        return list(self._advance(logits, batch, masks.result()))

    def close(self) -> None:
        self._masks.close()
        self._composer.close()

    def _forward(self, batch: Sequence_[ScheduledSequence]) -> tuple[Sequence_[ScheduledSequence], Logits]:
        """The batch and its logits; without its drafts where the cache has no room for them. Raises KvCacheFull."""
        first = batch[0].sequence
        forward_batch = ForwardBatch.build(
            map(_span, batch), adapter=first.request.adapter, image=self._sight.piece(first)
        )
        started = perf_counter()
        try:
            logits = self._runner.forward(forward_batch)
        except KvCacheFull:
            if not any(len(item.draft) for item in batch):
                raise
            return self._forward([replace(item, draft=NO_TOKENS) for item in batch])
        self._composer.observe(forward_batch, perf_counter() - started)
        return batch, logits

    def _make_room(self) -> list[Output]:
        """What is only cached goes first, then the sequence that came last."""
        if leftovers := self._scheduler.forget_leftovers():
            self._cache.carry_out(leftovers)
            return []
        if self._scheduler.num_running > 1:
            self._cache.carry_out([self._scheduler.preempt_last()])
            return []
        sequence = self._scheduler.last_admitted
        self._remove(sequence)
        return [(sequence.id, EngineError("The KV cache has no room for this request, even alone."))]

    def _advance(
        self, logits: Logits, batch: Sequence_[ScheduledSequence], allowed: Mapping[str, Allowed]
    ) -> Iterator[Output]:
        """Score prompts before anything is drawn: drawing uses the logits as work space."""
        computed = list(self._score_prompts(logits, batch))
        self._draw(logits, [item for item in computed if item.draws], allowed)
        for item in computed:
            sequence = item.sequence
            if item.failure:
                self._expel(sequence)
                yield sequence.id, EngineError(item.failure)
                continue
            if failure := _grammar_failure(sequence):
                self._remove(sequence)
                yield sequence.id, EngineError(failure)
                continue
            is_first = item.draws and sequence.num_generated == len(item.tokens)
            if sequence.is_finished:
                self._remove(sequence)
            if item.tokens or item.prompt_logprobs or sequence.is_finished:
                yield (
                    sequence.id,
                    TokenChunk(
                        tuple(item.tokens),
                        sequence.finish_reason,
                        tuple(item.logprobs),
                        item.prompt_logprobs,
                        sequence.num_cached if is_first else 0,
                        sequence.queue_seconds or 0.0 if is_first else 0.0,
                    ),
                )

    def _score_prompts(self, logits: Logits, batch: Sequence_[ScheduledSequence]) -> Iterator[_Computed]:
        start = 0
        for item in batch:
            sequence = item.sequence
            end = start + item.num_logits
            draws = sequence.draws_after(item.num_tokens)
            scored = sequence.advance(item.num_tokens)
            rows = logits[start : start + len(scored)]
            if (scored < 0).any():  # an image's tokens are not said to be probable or not
                rows, scored = rows[scored >= 0], scored[scored >= 0]
            failure = "" if np.isfinite(rows.max(axis=1)).all() else NOT_NUMBERS
            num_top = sequence.request.logprobs.num_top
            prompt_logprobs = () if failure else score(rows, scored.tolist(), num_top, self._runner.exponentials)
            row = end - 1 - len(item.draft)
            yield _Computed(sequence, prompt_logprobs, row, draws and not failure, item.draft, failure=failure)
            start = end

    def _draw(self, logits: Logits, drawing: Sequence_[_Computed], allowed: Mapping[str, Allowed]) -> None:
        """A token for each, and one more for each drafted token that was the one drawn."""
        drafting = [item for item in drawing if len(item.draft)]
        while drawing:
            self._draw_once(logits, drawing, allowed)
            drawing = [item for item in drawing if item.accept()]
            allowed = self._masks.begin(_grammars(item.sequence for item in drawing)).result()
        for item in drafting:
            assert item.sequence.slot is not None
            self._runner.truncate(item.sequence.slot, item.sequence.num_computed)

    def _draw_once(self, logits: Logits, drawing: Sequence_[_Computed], allowed: Mapping[str, Allowed]) -> None:
        places = [item.row + len(item.tokens) for item in drawing]
        rows = logits if len(places) == len(logits) else logits[places]
        is_number = np.isfinite(rows.max(axis=1))
        if not is_number.all():
            for item in (item for item, is_one in zip(drawing, is_number, strict=True) if not is_one):
                item.failure = NOT_NUMBERS
            drawing, rows = [item for item in drawing if not item.failure], rows[is_number]
        sequences = [item.sequence for item in drawing]
        wanted = [i for i, sequence in enumerate(sequences) if sequence.request.logprobs.of_output]
        untouched = dict(zip(wanted, rows[wanted], strict=True)) if wanted else {}
        for i, token in enumerate(sample(rows, sequences, allowed, self._runner.exponentials).tolist()):
            item = drawing[i]
            item.sequence.append(token)
            item.tokens.append(token)
            if i in untouched:
                item.logprobs += score(
                    untouched[i][None], (token,), item.sequence.request.logprobs.num_top, self._runner.exponentials
                )

    def _expel(self, sequence: Sequence) -> None:
        """Remove a sequence whose keys and values may not be numbers.

        They are written over: whoever has the slot next multiplies what it does not attend to by 0, also that.
        """
        slot, length = sequence.slot, min(sequence.num_computed + MAX_DRAFT, self._runner.limits.context_length)
        assert slot is not None
        self._cache.carry_out([self._scheduler.expel(sequence)])
        del self._sequences[sequence.id]
        tokens, most = np.zeros(length, np.int32), self._runner.limits.max_batch_tokens
        with suppress(KvCacheFull):  # by others; what is not written over may spoil one more request, and no more
            for start in range(0, length, most):
                self._runner.forward(ForwardBatch.build([(slot, start, tokens[start : start + most], 0)]))
        self._runner.truncate(slot, 0)

    def _remove(self, sequence: Sequence) -> None:
        self._scheduler.remove(sequence)
        del self._sequences[sequence.id]


def _end_waits(admitted: Iterable[Sequence]) -> None:
    """They have slots now; those that were preempted had some before."""
    now = perf_counter()
    for sequence in admitted:
        if sequence.queue_seconds is None:
            sequence.queue_seconds = now - sequence.arrived


def _span(item: ScheduledSequence) -> tuple[int, int, Tokens, int]:
    sequence, start = item.sequence, item.sequence.num_computed
    assert sequence.slot is not None
    pending = sequence.tokens[start : start + item.num_tokens]
    return sequence.slot, start, np.concatenate([pending, item.draft]), item.num_logits


def _grammar_failure(sequence: Sequence) -> str:
    """Empty where the grammar can be followed on."""
    if sequence.grammar is None or not sequence.grammar.failure:
        return ""
    log.warning("a grammar could not be followed: %s", sequence.grammar.failure)
    return "The answer's grammar became too complex to be followed."


def _grammars(sequences: Iterable[Sequence]) -> dict[str, GrammarState]:
    return {sequence.id: sequence.grammar for sequence in sequences if sequence.grammar is not None}
