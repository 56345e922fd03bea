"""Where in a text the markers are."""

from collections.abc import Sequence

from octavo.streaming.prefixes import Prefix, root_of

Piece = tuple[str, bool]
"""Text, and whether it is a marker."""


class MarkerSearch:
    """Cuts a text into markers and what is between them, however it arrives.

    The earliest marker counts, and of those that start at the same place the longest. The decision falls at the same
    character for any chunking: as soon as no other marker that starts there or before can still complete.
    """

    def __init__(self, markers: Sequence[str]) -> None:
        self._root = root_of(tuple(markers))
        self._prefix = self._root
        self._held = ""  # the text of self._prefix: the longest end of the text that begins a marker
        self._match: tuple[int, int] | None = None  # where in self._held the earliest complete marker is

    def push(self, text: str) -> list[Piece]:
        """The text that is decided by now, in order. Pieces may be empty."""
        if not self._held and self._root.is_absent_from(text):
            return [(text, False)]
        pieces: list[Piece] = []
        pending, decided, end = self._held + text, 0, len(self._held)
        while (marker := self._next(pending, end)) is not None:
            # What was read beyond the marker may begin the next one.
            pieces += [(pending[decided : marker[0]], False), (pending[marker[0] : marker[1]], True)]
            decided = end = marker[1]
        return [*pieces, (self._hold(pending)[decided:], False)]

    def find(self, text: str, *, is_last: bool = False) -> tuple[str, str, str]:
        """The text before the first marker, the marker, and what is behind it, which is forgotten. Where no marker is
        decided by now, all text that is none, and two empty texts.

        is_last: no text follows.
        """
        pending = self._held + text
        marker = self._next(pending, len(self._held)) or (self._match if is_last else None)
        if marker is not None:
            self._reset()
            return pending[: marker[0]], pending[marker[0] : marker[1]], pending[marker[1] :]
        before = self._hold(pending)
        return before + self._reset() if is_last else before, "", ""

    def flush(self) -> list[Piece]:
        """The text still held, when none follows it."""
        pieces: list[Piece] = []
        while self._match is not None:
            start, end = self._match
            held = self._reset()
            pieces += [(held[:start], False), (held[start:end], True), *self.push(held[end:])]
        return [*pieces, (self._reset(), False)]

    def _reset(self) -> str:
        held, self._held = self._held, ""
        self._prefix, self._match = self._root, None
        return held

    def _hold(self, pending: str) -> str:
        """Hold what may begin a marker; the text before it is certain to hold none that is not decided."""
        certain = len(pending) - self._prefix.length
        self._held = pending[certain:]
        if self._match is not None:
            self._match = self._match[0] - certain, self._match[1] - certain
        return pending[:certain]

    def _next(self, pending: str, end: int) -> tuple[int, int] | None:
        """Where the next marker is, once it is decided. end: how much of the pending text has been read."""
        match, prefix = self._match, self._prefix
        while end < len(pending):
            prefix, end = prefix.then(pending[end]), end + 1
            if prefix.match_length and (match is None or end - prefix.match_length <= match[0]):
                match = (end - prefix.match_length, end)
            if match is not None and _is_certain(match, end, prefix):
                self._match, self._prefix = None, self._root
                return match
        self._match, self._prefix = match, prefix
        return None


def _is_certain(match: tuple[int, int], end: int, prefix: Prefix) -> bool:
    """Whether the prefix that the text ends with can become no marker at or before the match's place."""
    start = end - prefix.length
    return start > match[0] or (start == match[0] and not prefix.extensions)
