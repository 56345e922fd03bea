"""The step loop of the batching engine: schedule, run, score and sample. One thread owns it; no I/O, no clock."""

import logging
from collections.abc import Iterator, Mapping
from collections.abc import Sequence as Sequence_
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from octavo.core.output import FinishReason, TokenChunk, TokenLogprob
from octavo.core.request import GenerationRequest
from octavo.engine.batching.composer import Composer, ScheduledSequence
from octavo.engine.batching.grammars import Allowed, GrammarState, MaskComputer
from octavo.engine.batching.logprobs import score
from octavo.engine.batching.runner import ForwardBatch, KvCacheFull, ModelRunner
from octavo.engine.batching.sampler import sample
from octavo.engine.batching.scheduler import Admission, Scheduler
from octavo.engine.batching.sequence import Sequence
from octavo.errors import EngineError

Output = tuple[str, TokenChunk | EngineError]
"""A request's id, and its new tokens or the error that ended it."""

Logits = NDArray[np.float32]
"""Shape (rows, vocabulary)."""

_Drawn = tuple[tuple[int, ...], tuple[TokenLogprob, ...]]
"""A new token, and its log-probability where it is asked for."""

NOTHING: _Drawn = ((), ())

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Computed:
    """What a step found out about a sequence. samples: whether `row` is there to draw its next token from."""

    sequence: Sequence
    prompt_logprobs: tuple[TokenLogprob, ...]
    row: int
    samples: bool


class EngineCore:
    """Holds every request from `submit` until its last chunk was returned by `step`, or until `cancel`."""

    def __init__(self, runner: ModelRunner, composer: Composer, *, eog_tokens: frozenset[int]) -> None:
        self._runner = runner
        self._eog_tokens = eog_tokens
        self._scheduler = Scheduler(runner.limits.num_slots, composer)
        self._sequences: dict[str, Sequence] = {}
        self._masks = MaskComputer(runner.limits.vocabulary_size)
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

    def submit(self, request: GenerationRequest, grammar: GrammarState | None = None) -> list[Output]:
        """Queue a request; one that needs nothing of the model is answered at once.

        grammar: the state before the first token of the request's grammar, where that is not free.
        """
        sequence = Sequence(request, self._runner.limits.context_length, self._eog_tokens, grammar)
        if sequence.num_pending == 0:
            return [(request.id, TokenChunk((), FinishReason.LENGTH))]
        self._sequences[request.id] = sequence
        self._scheduler.add(sequence)
        return []

    def cancel(self, request_id: str) -> None:
        """Forget a request; one that has ended meanwhile is not an error."""
        if request_id in self._sequences:
            self._remove(self._sequences[request_id])

    def step(self) -> list[Output]:
        """One batch through the model. Raises RunnerFailed when the model's state is lost."""
        step = self._scheduler.schedule()
        self.batch_size = len(step.batch)
        for admission in step.admissions:
            self._prepare_slot(admission)
        constrained = [each.sequence for each in step.batch if _is_constrained(each)]
        masks = self._masks.begin([sequence.grammar for sequence in constrained if sequence.grammar is not None])
        try:
            logits = self._forward(step.batch)
        except KvCacheFull:
            masks.result()
            return self._make_room()
        allowed = dict(zip([sequence.id for sequence in constrained], masks.result(), strict=True))
        return list(self._advance(logits, step.batch, allowed))

    def close(self) -> None:
        self._masks.close()

    def _prepare_slot(self, admission: Admission) -> None:
        prefix = admission.prefix
        if prefix is not None and prefix.slot != admission.slot:
            self._runner.copy(prefix.slot, admission.slot)
        self._runner.truncate(admission.slot, prefix.length if prefix else 0)

    def _forward(self, batch: Sequence_[ScheduledSequence]) -> Logits:
        spans = []
        for item in batch:
            sequence, start = item.sequence, item.sequence.num_computed
            assert sequence.slot is not None
            tokens = sequence.tokens[start : start + item.num_tokens]
            spans.append((sequence.slot, start, tokens, sequence.num_logits(item.num_tokens)))
        return self._runner.forward(ForwardBatch.build(spans))

    def _make_room(self) -> list[Output]:
        """What is only cached goes first, then the sequence that came last."""
        if leftovers := self._scheduler.forget_leftovers():
            for slot in leftovers:
                self._runner.truncate(slot, 0)
            return []
        if self._scheduler.num_running > 1:
            self._runner.truncate(self._scheduler.preempt_last(), 0)
            return []
        sequence = self._scheduler.last_admitted
        self._remove(sequence)
        return [(sequence.id, EngineError("The KV cache has no room for this request, even alone."))]

    def _advance(
        self, logits: Logits, batch: Sequence_[ScheduledSequence], allowed: Mapping[str, Allowed]
    ) -> Iterator[Output]:
        """Score prompts before anything is drawn: drawing uses the logits as work space."""
        computed = list(self._score_prompts(logits, batch))
        drawn = dict(self._draw(logits, [item for item in computed if item.samples], allowed))
        for item in computed:
            sequence = item.sequence
            if failure := sequence.grammar.failure if sequence.grammar is not None else "":
                log.warning("a grammar could not be followed: %s", failure)
                self._remove(sequence)
                yield sequence.id, EngineError("The answer's grammar became too complex to be followed.")
                continue
            tokens, logprobs = drawn.get(sequence.id, NOTHING)
            num_cached = sequence.num_cached if sequence.num_generated == 1 else 0
            if sequence.is_finished:
                self._remove(sequence)
            if tokens or item.prompt_logprobs:
                chunk = TokenChunk(tokens, sequence.finish_reason, logprobs, item.prompt_logprobs, num_cached)
                yield sequence.id, chunk

    def _score_prompts(self, logits: Logits, batch: Sequence_[ScheduledSequence]) -> Iterator[_Computed]:
        start = 0
        for item in batch:
            sequence = item.sequence
            end = start + sequence.num_logits(item.num_tokens)
            samples = sequence.draws_after(item.num_tokens)
            scored = sequence.advance(item.num_tokens).tolist()
            rows = logits[start : start + len(scored)]
            prompt_logprobs = score(rows, scored, sequence.request.logprobs.num_top)
            yield _Computed(sequence, prompt_logprobs, end - 1, samples)
            start = end

    def _draw(
        self, logits: Logits, drawing: Sequence_[_Computed], allowed: Mapping[str, Allowed]
    ) -> Iterator[tuple[str, _Drawn]]:
        if not drawing:
            return
        sequences = [item.sequence for item in drawing]
        rows = logits if len(drawing) == len(logits) else logits[[item.row for item in drawing]]
        wanted = [i for i, sequence in enumerate(sequences) if sequence.request.logprobs.of_output]
        untouched = dict(zip(wanted, rows[wanted], strict=True)) if wanted else {}
        for i, token in enumerate(sample(rows, sequences, allowed).tolist()):
            sequence = sequences[i]
            sequence.append(token)
            num_top = sequence.request.logprobs.num_top
            yield sequence.id, ((token,), score(untouched[i][None], (token,), num_top) if i in untouched else ())

    def _remove(self, sequence: Sequence) -> None:
        self._scheduler.remove(sequence)
        del self._sequences[sequence.id]


def _is_constrained(item: ScheduledSequence) -> bool:
    """Whether a token will be drawn for it that a grammar has a say in."""
    return item.sequence.grammar is not None and item.sequence.draws_after(item.num_tokens)
