"""Where an answer ends because of its text."""

from collections.abc import Sequence

from octavo.streaming.prefixes import root_of


class StopStrings:
    """Ends a text at its earliest stop string, however the text arrives in pieces.

    Of several stop strings in the text, the one that starts first counts, so their order never matters. A match is
    decided only once no stop string that started before it can still complete: with stops "bcd" and "c", the text "abc"
    waits, "abcx" ends as "ab" and "abcd" as "a". The decision falls at the same character for any chunking.

    included: whether the stop string stays in the text; of several that start at the same place, the shortest.

    Time is linear in the text, whatever the stop strings.
    """

    def __init__(self, stop: Sequence[str], *, included: bool = False) -> None:
        self._root = root_of(tuple(stop))
        self._included = included
        self._prefix = self._root
        self._held = ""  # the text of self._prefix: the longest end of the text that begins a stop string
        self._match: tuple[int, int] | None = None  # where in self._held the earliest complete stop string is
        self.is_cut = False

    def push(self, text: str) -> tuple[str, str]:
        """The text that is now certain to stay, and, once a stop string was found, the text behind the end."""
        if self.is_cut:
            return "", text
        if not self._held and self._root.is_absent_from(text):
            return text, ""
        return self._scan(self._held + text, begin=len(self._held))

    def _scan(self, pending: str, begin: int) -> tuple[str, str]:
        match, prefix = self._match, self._prefix
        for end, character in enumerate(pending[begin:], begin + 1):
            prefix = prefix.then(character)
            if prefix.match_length:
                start = end - prefix.match_length
                match = (start, end) if match is None or start < match[0] else match
            if match is not None and match[0] <= end - prefix.length:
                return self._cut(pending, match)
        certain = len(pending) - prefix.length
        self._prefix, self._held = prefix, pending[certain:]
        self._match = None if match is None else (match[0] - certain, match[1] - certain)
        return pending[:certain], ""

    def flush(self) -> tuple[str, str]:
        """As push, for the text still held, when none follows it. A match that waited is decided."""
        held, self._held, self._prefix = self._held, "", self._root
        return (held, "") if self._match is None else self._cut(held, self._match)

    def _cut(self, pending: str, match: tuple[int, int]) -> tuple[str, str]:
        self.is_cut = True
        self._held, self._match = "", None
        end = match[1] if self._included else match[0]
        return pending[:end], pending[end:]
