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
        return self._scan(self._held + text, begin=len(self._held))

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

    def _scan(self, pending: str, begin: int) -> list[Piece]:
        pieces: list[Piece] = []
        match, prefix = self._match, self._prefix
        decided, end = 0, begin
        while end < len(pending):
            prefix, end = prefix.then(pending[end]), end + 1
            if prefix.match_length and (match is None or end - prefix.match_length <= match[0]):
                match = (end - prefix.match_length, end)
            if match is not None and _is_certain(match, end, prefix):
                pieces += [(pending[decided : match[0]], False), (pending[match[0] : match[1]], True)]
                # What was read beyond the marker may begin the next one.
                decided = end = match[1]
                match, prefix = None, self._root
        held = end - prefix.length
        self._prefix, self._held = prefix, pending[held:]
        self._match = None if match is None else (match[0] - held, match[1] - held)
        return [*pieces, (pending[decided:held], False)]


def _is_certain(match: tuple[int, int], end: int, prefix: Prefix) -> bool:
    """Whether the prefix that the text ends with can become no marker at or before the match's place."""
    start = end - prefix.length
    return start > match[0] or (start == match[0] and not prefix.extensions)
