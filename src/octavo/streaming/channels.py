"""Which part of an answer a text belongs to."""

from collections.abc import Iterable
from itertools import takewhile
from typing import Protocol

from octavo.core.channels import Channel, ChannelFormat
from octavo.streaming.markers import MarkerSearch
from octavo.streaming.segment import Segment


class ChannelMachine(Protocol):
    """Gives each character its channel."""

    def push(self, text: str) -> list[Segment]: ...

    def flush(self) -> list[Segment]: ...


class OneChannel:
    """The channel machine of a format without markers."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def push(self, text: str) -> list[Segment]:
        return [(self._channel, text)]

    def flush(self) -> list[Segment]:
        return []


class Channels:
    """Follows the markers of a format through a text, wherever its pieces end.

    Markers and the white space around them are HIDDEN: so white space waits for what follows it. A format that begins
    in another channel than the answer begins behind a marker, which the prompt ends with.

    parts: texts that are hidden as markers are, but leave the channel as it is. A marker that begins with one is
        preferred to it.
    """

    def __init__(self, format: ChannelFormat, parts: Iterable[str] = ()) -> None:
        silent = tuple(parts)
        self._channel_of = dict[str, Channel | None].fromkeys(silent) | dict(format.markers)
        self._quotable = format.quotable.difference(silent)
        self._headers = format.headers
        self._ends_in_answer = format.ends_in_answer
        self._search = MarkerSearch(tuple(self._channel_of))
        self._channel = format.initial
        self._is_behind_marker = format.initial is not Channel.ANSWER
        self._is_at_head = True  # nothing but white space since the beginning or the last marker
        self._is_addressed = False  # more than that in HIDDEN since the marker that led there
        self._space: list[str] = []  # that the text ends with

    def push(self, text: str) -> list[Segment]:
        return self._segments(self._search.push(text))

    def flush(self) -> list[Segment]:
        """All that is held. A marker that the text ends within is hidden where it begins with one of the parts."""
        pieces = self._search.flush()
        whole = list(takewhile(lambda piece: not (piece[1] and self._channel_of[piece[0]] is None), pieces))
        settled = self._segments(whole)
        cut = "".join([text for text, _ in pieces[len(whole) :]])
        return [*settled, (Channel.HIDDEN if cut else self._channel, self._taken_space() + cut)]

    def _segments(self, pieces: Iterable[tuple[str, bool]]) -> list[Segment]:
        segments: list[Segment] = []
        for text, is_marker in pieces:
            segments += self._marker(text) if is_marker and self._is_in_place(text) else self._text(text)
        return [*segments, (self._channel, "")]

    def _is_in_place(self, marker: str) -> bool:
        if marker in self._headers and self._is_addressed:
            return False
        if self._ends_in_answer and self._channel is Channel.ANSWER and not self._is_at_head:
            return False
        if marker not in self._quotable:
            return True
        begins_reasoning = self._channel_of[marker] is Channel.REASONING
        return self._is_at_head if begins_reasoning else self._channel is Channel.REASONING

    def _marker(self, marker: str) -> list[Segment]:
        if (channel := self._channel_of[marker]) is not None:
            self._channel, self._is_addressed = channel, False
        self._is_behind_marker = self._is_at_head = True
        return [(Channel.HIDDEN, self._taken_space() + marker)]

    def _text(self, text: str) -> list[Segment]:
        if not self._is_behind_marker:
            return self._inner_text(text)
        body = text.lstrip()
        self._is_behind_marker = not body
        space = text[: len(text) - len(body)]
        return [*([(Channel.HIDDEN, space)] if space else []), *self._inner_text(body)]

    def _inner_text(self, text: str) -> list[Segment]:
        body = text.rstrip()
        space = self._taken_space() if body else ""
        self._space.append(text[len(body) :])
        self._is_at_head = self._is_at_head and not body
        self._is_addressed = self._is_addressed or (bool(body) and self._channel is Channel.HIDDEN)
        return [(self._channel, space + body)] if body else []

    def _taken_space(self) -> str:
        space = "".join(self._space)
        self._space.clear()
        return space
