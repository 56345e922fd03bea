"""What comes back from an engine, as tokens, and what the streaming layer makes of it, as text."""

from dataclasses import dataclass
from enum import StrEnum


class FinishReason(StrEnum):
    """Why a choice ended, in the wire's words."""

    STOP = "stop"
    LENGTH = "length"
    TOOL_CALLS = "tool_calls"
    CONTENT_FILTER = "content_filter"
    FUNCTION_CALL = "function_call"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class TokenChunk:
    """New tokens of one sequence, in order. The last chunk of a sequence, and only that one, has a finish_reason.

    An end-of-generation token that ended the sequence is among the tokens.
    """

    tokens: tuple[int, ...]
    finish_reason: FinishReason | None = None


@dataclass(frozen=True, slots=True)
class TextEvent:
    """New text of one choice. The last event of a choice, and only that one, has a finish_reason.

    text: whole characters; the texts of a choice's events, joined, are its answer. May be empty in the last event.
    num_tokens: tokens generated since the choice's previous event, also those whose text is held back or cut.
    """

    index: int
    text: str
    num_tokens: int
    finish_reason: FinishReason | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts of an answer; prompts shared by several samples count once."""

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens
