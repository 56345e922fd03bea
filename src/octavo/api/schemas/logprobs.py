"""Log-probabilities in answers."""

from octavo.api.schemas.common import WireResponse


class TopLogprob(WireResponse):
    """bytes: what the token adds to a text; null where that is nothing."""

    token: str
    logprob: float
    bytes: list[int] | None


class TokenLogprob(TopLogprob):
    top_logprobs: list[TopLogprob]


class ChatLogprobs(WireResponse):
    content: list[TokenLogprob]
    refusal: None


class CompletionLogprobs(WireResponse):
    """content: with the prompt's tokens but the first, where they are asked for. The other lists have an item for each
    token of the choice's text: null is the log-probability of a first token."""

    content: list[TokenLogprob]
    tokens: list[str]
    token_logprobs: list[float | None]
    top_logprobs: list[dict[str, float] | None]
    text_offset: list[int]
