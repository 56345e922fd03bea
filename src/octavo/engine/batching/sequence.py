"""One request on its way through the batching engine."""

import numpy as np
from numpy.typing import NDArray

from octavo.core.output import FinishReason
from octavo.core.request import GenerationRequest


class Sequence:
    """The known tokens of a request, and how many of them the model has computed.

    A sequence is behind while `num_computed` < `num_tokens`; whether the missing tokens are a prompt, one sampled
    token or, after a preemption, both, makes no difference to the scheduler.
    """

    def __init__(self, request: GenerationRequest, context_length: int) -> None:
        self.request = request
        self.num_prompt_tokens = len(request.prompt_tokens)
        self.num_tokens = self.num_prompt_tokens
        self.num_computed = 0
        self.slot: int | None = None
        self.finish_reason: FinishReason | None = None
        self._max_length = min(self.num_prompt_tokens + request.max_tokens, context_length)
        self._tokens = np.empty(self.num_prompt_tokens + min(request.max_tokens, 256), np.int32)
        self._tokens[: self.num_prompt_tokens] = request.prompt_tokens

    @property
    def id(self) -> str:
        return self.request.id

    @property
    def tokens(self) -> NDArray[np.int32]:
        """Prompt and output, shape (num_tokens,)."""
        return self._tokens[: self.num_tokens]

    @property
    def output(self) -> NDArray[np.int32]:
        return self._tokens[self.num_prompt_tokens : self.num_tokens]

    @property
    def num_generated(self) -> int:
        return self.num_tokens - self.num_prompt_tokens

    @property
    def num_pending(self) -> int:
        return self.num_tokens - self.num_computed

    @property
    def is_finished(self) -> bool:
        return self.finish_reason is not None

    def append(self, token: int, *, ends_generation: bool) -> None:
        """Add a sampled token and settle whether it was the last."""
        if self.num_tokens == len(self._tokens):
            self._tokens = np.resize(self._tokens, 2 * self.num_tokens)
        self._tokens[self.num_tokens] = token
        self.num_tokens += 1
        if ends_generation and not self.request.ignore_eos:
            self.finish_reason = FinishReason.STOP
        elif self.num_tokens >= self._max_length:
            self.finish_reason = FinishReason.LENGTH
