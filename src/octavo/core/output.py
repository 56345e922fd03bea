"""What comes back from an engine, as tokens, and what the streaming layer makes of it, as text.

What is made for every token is a msgspec structure: a frozen dataclass takes several times as long to make and to read
from a frame. None of it can be part of a reference cycle, so the garbage collector need not look at it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

import msgspec

from octavo.core.tools import ToolCallDelta

_PART = 128
"""Log-probabilities, each other token's included: their texts are made in half a millisecond."""


class FinishReason(StrEnum):
    """Why a choice ended, in the wire's words."""

    STOP = "stop"
    LENGTH = "length"
    TOOL_CALLS = "tool_calls"
    CONTENT_FILTER = "content_filter"
    FUNCTION_CALL = "function_call"
    CANCELLED = "cancelled"


class TokenLogprob(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """How probable the model found a token: natural logarithms of its own softmax, before anything of the sampler.

    top: (token id, log-probability) of the most probable tokens in its place, most probable first, ties by id; as many
        as were asked for, whether the token itself is among them or not.
    """

    token: int
    logprob: float
    top: tuple[tuple[int, float], ...] = ()


class TokenChunk(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """New tokens of one sequence, in order. The last chunk of a sequence, and only that one, has a finish_reason.

    tokens: with the end-of-generation or stop token that ended the sequence.
    logprobs: one for each of `tokens` where the request asks for them, else none.
    prompt_logprobs: the next ones of the prompt, where the request asks for them. All of the prompt's tokens but the
        first have come, in order, when the first new token comes.
    num_cached: prompt tokens that were found computed; said once, with the first new token.
    queue_seconds: until the sequence first had a slot; said once, with the first new token.
    """

    tokens: tuple[int, ...]
    finish_reason: FinishReason | None = None
    logprobs: tuple[TokenLogprob, ...] = ()
    prompt_logprobs: tuple[TokenLogprob, ...] = ()
    num_cached: int = 0
    queue_seconds: float = 0.0

    def parts(self) -> Iterator["TokenChunk"]:
        """The same as several chunks, none with many log-probabilities of the prompt."""
        scored = self.prompt_logprobs
        if scored:
            size = max(1, _PART // (1 + len(scored[0].top)))
            while len(scored) > size:
                yield TokenChunk((), prompt_logprobs=scored[:size])
                scored = scored[size:]
        yield msgspec.structs.replace(self, prompt_logprobs=scored) if scored else self

    @classmethod
    def joined(cls, chunks: Sequence["TokenChunk"]) -> "TokenChunk":
        """Some chunks of a sequence, in order, as one."""
        return cls(
            tokens=tuple([token for chunk in chunks for token in chunk.tokens]),
            finish_reason=chunks[-1].finish_reason,
            logprobs=tuple([logprob for chunk in chunks for logprob in chunk.logprobs]),
            prompt_logprobs=tuple([logprob for chunk in chunks for logprob in chunk.prompt_logprobs]),
            num_cached=sum([chunk.num_cached for chunk in chunks]),
            queue_seconds=sum([chunk.queue_seconds for chunk in chunks]),
        )


class Alternative(msgspec.Struct, frozen=True, gc=False):
    """A token that could have stood in a place. token, bytes: as in LogprobEntry."""

    token: str
    bytes: bytes | None
    logprob: float


class LogprobEntry(msgspec.Struct, frozen=True, gc=False):
    r"""A token as a reader sees it, with its log-probability.

    token: its text; bytes that are no UTF-8 by themselves are written as in \xe2\x80, and a token without text of its
        own (an end-of-generation token) by its name.
    bytes: what it adds to the text, None where it adds nothing. The bytes of a choice's entries, joined, are those of
        its text. Of a token that a stop string cuts in two, token and bytes are what is kept.
    logprob: None for the first token of a prompt, which has none.
    offset: of its first character in the choice's text; None for a prompt token that is not part of that text.
    """

    token: str
    bytes: bytes | None
    logprob: float | None
    top: tuple[Alternative, ...] = ()
    offset: int | None = None


class TextEvent(msgspec.Struct, frozen=True, gc=False):
    """New text of one choice. The last event of a choice, and only that one, has a finish_reason.

    text: whole characters; the texts of a choice's events, joined, are its answer. May be empty in the last event.
    num_tokens: tokens generated since the choice's previous event, also those whose text is held back or cut.
    reasoning: what the model thought before or between; never part of text.
    entries: of the tokens of `text`, where they are asked for; held back as long as their text is.
    num_cached: prompt tokens that were found computed, said once per choice.
    logprob_sum: of the log-probabilities of the num_tokens tokens; 0 where none are asked for.
    tool_calls: what the choice's calls have got; no part of text.
    """

    index: int
    text: str
    num_tokens: int
    finish_reason: FinishReason | None = None
    reasoning: str = ""
    entries: tuple[LogprobEntry, ...] = ()
    num_cached: int = 0
    logprob_sum: float = 0.0
    tool_calls: tuple[ToolCallDelta, ...] = ()

    @property
    def is_only_text(self) -> bool:
        """Whether there is text and, but for counts, nothing else."""
        return bool(self.text) and not (self.finish_reason or self.reasoning or self.entries or self.tool_calls)

    @classmethod
    def joined(cls, events: Sequence["TextEvent"]) -> "TextEvent":
        """All events of a choice as one."""
        return cls(
            index=events[-1].index,
            text="".join(event.text for event in events),
            num_tokens=sum(event.num_tokens for event in events),
            finish_reason=events[-1].finish_reason,
            reasoning="".join(event.reasoning for event in events),
            entries=tuple(entry for event in events for entry in event.entries),
            num_cached=sum(event.num_cached for event in events),
            logprob_sum=sum(event.logprob_sum for event in events),
            tool_calls=tuple(delta for event in events for delta in event.tool_calls),
        )


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts of an answer; prompts shared by several samples count once."""

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens
