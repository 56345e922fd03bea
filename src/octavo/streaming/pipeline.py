"""From a choice's generated text to what is given out of it."""

from collections.abc import Callable

from octavo.core.channels import Channel
from octavo.core.output import FinishReason
from octavo.core.request import Choice
from octavo.core.tools import ToolCallDelta
from octavo.core.vocabulary import Vocabulary
from octavo.streaming.channels import ChannelMachine, Channels, OneChannel
from octavo.streaming.content_filter import ContentFilter
from octavo.streaming.cuts import Cuts, SpareFirst
from octavo.streaming.pieces import marker_parts
from octavo.streaming.segment import Segment
from octavo.streaming.stop_strings import StopStrings
from octavo.streaming.tool_calls import CallLog, new_tool_machine

_FILTERED = (Channel.ANSWER, Channel.REASONING)


class Pipeline:
    """Channels, then stop strings, which see the answer alone, then the filter, which sees each channel by itself, then
    the calls, which are told to `emit_call`.

    Stop strings and filter come before the calls, so that they see what the model writes.
    """

    def __init__(
        self,
        choice: Choice,
        vocabulary: Vocabulary,
        content_filter: ContentFilter | None,
        emit_call: Callable[[ToolCallDelta], None],
    ) -> None:
        self._channels = _channel_machine(choice, vocabulary)
        self._stops = Cuts(
            {Channel.ANSWER: StopStrings(choice.stop, included=choice.includes_stop)} if choice.stop else {}
        )
        self._unspared_stops = SpareFirst(self._stops, choice.request.min_tokens)
        self._filter = Cuts({channel: content_filter.new_text() for channel in _FILTERED} if content_filter else {})
        self._calls = new_tool_machine(choice.tools, CallLog(choice.request.id, emit_call))

    def push(self, text: str) -> list[Segment]:
        """What is settled by the text of the next token: all of it, sooner or later, in order."""
        self._unspared_stops.count(text)
        return self._calls.push(self._filter.push(self._unspared_stops.push(self._channels.push(text))))

    def flush(self, text: str) -> list[Segment]:
        """All that is held, before and with the last text."""
        segments = self._unspared_stops.push([*self._channels.push(text), *self._channels.flush()])
        filtered = self._filter.push([*segments, *self._unspared_stops.flush()]) + self._filter.flush()
        return self._calls.push(filtered) + self._calls.flush()

    @property
    def cut_reason(self) -> FinishReason | None:
        """Why the choice ends where its text was cut. The filter comes last, and so cuts before a stop string."""
        if self._filter.is_cut:
            return FinishReason.CONTENT_FILTER
        return FinishReason.STOP if self._stops.is_cut or self._calls.is_cut else None


def _channel_machine(choice: Choice, vocabulary: Vocabulary) -> ChannelMachine:
    format = choice.channels
    return Channels(format, marker_parts(choice, vocabulary).values()) if format.markers else OneChannel(format.initial)
