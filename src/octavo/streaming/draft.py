"""An event in the making."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from octavo.core.channels import Channel
from octavo.core.output import FinishReason, LogprobEntry, TextEvent
from octavo.core.tools import ToolCallDelta
from octavo.streaming.segment import Segment


@dataclass(slots=True)
class Draft:
    """What a choice has got since its last event; the fields as in TextEvent."""

    index: int
    texts: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    entries: list[LogprobEntry] = field(default_factory=list)
    num_tokens: int = 0
    num_cached: int = 0
    logprob_sum: float = 0.0
    tool_calls: list[ToolCallDelta] = field(default_factory=list)
    has_called: bool = False  # ever, not only since the last event

    def add(self, segments: Iterable[Segment]) -> None:
        for channel, text in segments:
            if channel is Channel.ANSWER:
                self.add_text(text)
            elif channel is Channel.REASONING and text:
                self.reasoning.append(text)

    def add_text(self, text: str) -> None:
        if text:
            self.texts.append(text)

    def add_call(self, delta: ToolCallDelta) -> None:
        self.tool_calls.append(delta)
        self.has_called = True

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to tell yet; counts alone can wait."""
        return not (self.texts or self.reasoning or self.entries or self.tool_calls)

    def taken(self, finish_reason: FinishReason | None = None) -> TextEvent:
        """The event, and a clean sheet."""
        event = TextEvent(
            self.index,
            "".join(self.texts),
            self.num_tokens,
            finish_reason,
            "".join(self.reasoning),
            tuple(self.entries),
            self.num_cached,
            self.logprob_sum,
            tuple(self.tool_calls),
        )
        self.texts, self.reasoning, self.entries, self.tool_calls = [], [], [], []
        self.num_tokens, self.num_cached, self.logprob_sum = 0, 0, 0.0
        return event
