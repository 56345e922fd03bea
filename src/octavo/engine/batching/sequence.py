"""One request on its way through the batching engine."""

import numpy as np
from numpy.typing import NDArray

from octavo.core.images import ImageSpan
from octavo.core.output import FinishReason
from octavo.core.request import GenerationRequest
from octavo.engine.batching.grammars import GrammarState


class Sequence:
    """The known tokens of a request, and how many of them the model has computed.

    A sequence is behind while tokens are pending; whether those are a prompt, one sampled token or, after a preemption,
    both, makes no difference to the scheduler.

    num_scored: prompt tokens, from the first on, that have their log-probability or need none.
    num_cached: prompt tokens that were found computed when the sequence got its slot.
    num_charged: tokens, from the first on, that its owner has been charged for or got for nothing.
    arrived: when it joined the queue. queue_seconds: until it first had a slot, None before that.
    grammar: how far the output has come in what it must be; None where it may be anything.
    last_turn: the step that last computed something of it, or by which it had come, where sequences take turns.
    """

    def __init__(
        self,
        request: GenerationRequest,
        context_length: int,
        eog_tokens: frozenset[int] = frozenset(),
        grammar: GrammarState | None = None,
    ) -> None:
        self.request = request
        self.grammar = grammar
        self.num_prompt_tokens = len(request.prompt_tokens)
        self.num_tokens = self.num_prompt_tokens
        self.num_computed = 0
        self.num_scored = 1 if request.logprobs.of_prompt else self.num_prompt_tokens
        self.num_cached = 0
        self.num_charged = 0
        self.arrived = 0.0
        self.queue_seconds: float | None = None
        self.last_turn = 0
        self.slot: int | None = None
        self.finish_reason: FinishReason | None = None
        self._ending = request.stop_tokens if request.ignore_eos else request.stop_tokens | eog_tokens
        # Where an end token is not an end, a grammar would still take it for one.
        self._never_wanted = eog_tokens if request.ignore_eos and grammar is not None else frozenset[int]()
        self._max_length = min(self.num_prompt_tokens + request.max_tokens, context_length)
        self._tokens = np.empty(self.num_prompt_tokens + min(request.max_tokens, 256), np.int32)
        self._tokens[: self.num_prompt_tokens] = request.prompt_tokens

    @property
    def id(self) -> str:
        return self.request.id

    @property
    def owner(self) -> tuple[str, ...]:
        return self.request.owner

    @property
    def cache_key(self) -> tuple[str, str]:
        """Computed tokens may be shared with sequences that have the same one."""
        return self.request.adapter, self.request.cache_key

    @property
    def tokens(self) -> NDArray[np.int32]:
        """Prompt and output, shape (num_tokens,); negative where the prompt has images."""
        return self._tokens[: self.num_tokens]

    @property
    def output(self) -> NDArray[np.int32]:
        return self._tokens[self.num_prompt_tokens : self.num_tokens]

    @property
    def num_generated(self) -> int:
        return self.num_tokens - self.num_prompt_tokens

    @property
    def generates(self) -> bool:
        return self.request.max_tokens > 0

    @property
    def num_pending(self) -> int:
        """Tokens still to compute. The last one is needed only for a token after it."""
        if self.generates:
            return self.num_tokens - self.num_computed
        return self.num_tokens - 1 - self.num_computed if self._has_unscored else 0

    @property
    def span_ahead(self) -> ImageSpan | None:
        """The part of an image that the next pending token is in."""
        return next((span for span in self.request.images if span.start <= self.num_computed < span.end), None)

    @property
    def sees_whole(self) -> bool:
        """Whether what is next is an image's part that is computed in one step."""
        span = self.span_ahead
        return span is not None and span.is_whole

    @property
    def num_computable(self) -> int:
        """Most of the pending tokens that can be computed in one step: those of texts and of images cannot."""
        edges = (edge for span in self.request.images for edge in (span.start, span.end))
        edge = next((edge for edge in edges if edge > self.num_computed), self.num_tokens)
        return min(self.num_pending, edge - self.num_computed)

    @property
    def max_draft(self) -> int:
        """Tokens that may be drafted behind the known ones: the last one of a sequence is not worth a guess."""
        can_draft = self.generates and not self._has_unscored
        return self._max_length - self.num_tokens - 1 if can_draft else 0

    @property
    def num_reusable(self) -> int:
        """Most tokens whose computation somewhere else would do: not those whose logits are needed."""
        return (self.num_scored if self._has_unscored else self.num_tokens) - 1

    @property
    def is_finished(self) -> bool:
        return self.finish_reason is not None

    @property
    def barred_tokens(self) -> list[int]:
        """What may not be drawn now, because it would end the sequence before its min_tokens, or at all."""
        too_early = self._ending if self.num_generated < self.request.min_tokens else frozenset[int]()
        return sorted(too_early | self._never_wanted)

    def without_torn_images(self, length: int) -> int:
        """Of the first `length` tokens those before an image's part that they hold only the beginning of."""
        torn = (span.start for span in self.request.images if span.start < length < span.end)
        return next(torn, length)

    def draws_after(self, num_tokens: int) -> bool:
        """Whether the next token can be drawn once so many of the pending ones are computed."""
        return self.generates and num_tokens == self.num_pending

    def num_logits(self, num_tokens: int) -> int:
        """How many of the next num_tokens pending tokens' logits are needed, counted from the last of them.

        The logits of a token say how probable the next one is: a prompt token to be scored, or the token to be drawn.
        Where an image is, only those of its last token say something.
        """
        end = self.num_computed + num_tokens
        if not self._has_unscored:
            return int(num_tokens == self.num_pending)
        if (span := self.span_ahead) is not None:
            return int(end == span.end and self.num_scored <= end)
        return max(end - max(self.num_computed, self.num_scored - 1), 0)

    def max_span(self, max_logits: int) -> int:
        """Most pending tokens that can be computed in one step with so many rows of logits."""
        if not self._has_unscored or self.span_ahead is not None:
            return self.num_computable
        return min(self.num_computable, max(self.num_scored - 1 - self.num_computed, 0) + max_logits)

    def reuse(self, length: int) -> None:
        """The first `length` tokens were found computed."""
        self.num_computed = length
        self.num_charged = max(self.num_charged, length)
        if self.num_generated == 0:
            self.num_cached = length

    def advance(self, num_tokens: int) -> NDArray[np.int32]:
        """Count computed tokens. Returns the prompt tokens that their logits score, negative where images are."""
        draws = self.draws_after(num_tokens)
        num_scores = self.num_logits(num_tokens) - int(draws)
        self.num_computed += num_tokens
        end = self.num_computed + 1 - int(draws)
        scored = self._tokens[end - num_scores : end]
        self.num_scored = max(self.num_scored, min(end, self.num_prompt_tokens))
        if not self.generates and self.num_pending == 0:
            self.finish_reason = FinishReason.LENGTH
        return scored

    def accept(self, drafted: int) -> bool:
        """Count a token that was computed before it was drawn. False where another one was drawn, or the last one."""
        if self.is_finished or self._tokens[self.num_tokens - 1] != drafted:
            return False
        self.num_computed += 1
        return True

    def append(self, token: int) -> None:
        """Add a sampled token and settle whether it was the last."""
        if self.num_tokens == len(self._tokens):
            self._tokens = np.resize(self._tokens, 2 * self.num_tokens)
        self._tokens[self.num_tokens] = token
        self.num_tokens += 1
        if self.grammar is not None:
            self.grammar.accept(token)
        if token in self._ending or (self.grammar is not None and self.grammar.is_finished):
            self.finish_reason = FinishReason.STOP
        elif self.num_tokens >= self._max_length:
            self.finish_reason = FinishReason.LENGTH

    @property
    def _has_unscored(self) -> bool:
        return self.num_scored < self.num_prompt_tokens
