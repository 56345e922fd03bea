"""The parts that a model's output may have."""

from dataclasses import dataclass
from enum import StrEnum


class Channel(StrEnum):
    """HIDDEN is what is for nobody: headers between the parts, and the markers themselves."""

    ANSWER = "answer"
    REASONING = "reasoning"
    HIDDEN = "hidden"


@dataclass(frozen=True, slots=True)
class ChannelFormat:
    """How a model family marks what it thinks and what it answers.

    markers: texts that the model writes, and the channel of what follows each. A marker may be the text of a control
        token, which otherwise is never shown. White space around a marker belongs to it.
    initial: the channel at the start of the answer.
    thought: what stands before and behind a reasoning that comes before the answer, as the model writes it.
    answer: what stands before the answer proper, behind the reasoning or at the start.
    quotable: those markers that are only text where they would be out of place, because an answer may speak of them:
        one that begins reasoning within a text, one that ends it outside reasoning. A control token is never text.
    headers: those markers that end the header of a message, and count only where nothing else is in it: a header that
        names a recipient is a call's, and all is HIDDEN up to the next marker that is no header.
    ends_in_answer: whether the answer, once it has begun, is all that follows, as it is where a grammar makes it: what
        spells a marker in it is text.
    """

    markers: tuple[tuple[str, Channel], ...] = ()
    initial: Channel = Channel.ANSWER
    quotable: frozenset[str] = frozenset()
    thought: tuple[str, str] = ("", "")
    answer: str = ""
    headers: frozenset[str] = frozenset()
    ends_in_answer: bool = False


PLAIN = ChannelFormat()
"""All is answer."""
