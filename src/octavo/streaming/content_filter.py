"""Where an answer ends because an operator does not want it to go on."""

from collections.abc import Callable, Sequence
from functools import lru_cache

from octavo.streaming.growing_pattern import GrowingPattern, Match

MAX_HELD = 2048
"""Characters of the longest match that is found, and of the most text that is held back."""
MAX_LOOK_BEHIND = 256
"""Characters that a pattern sees before the place where it is tried."""

_WINDOW = MAX_HELD + MAX_LOOK_BEHIND
_AT_LIMIT = {Match.OPEN: Match.NONE, Match.AT_END: Match.INSIDE}
_MAX_CACHED = 2**14

PatternsBegun = Callable[[str, str], Sequence[GrowingPattern]]


class ContentFilter:
    r"""Patterns of what no answer may contain: regular expressions of PyPI `regex`, whose matches have at least one
    character. Letters are told from capitals unless a pattern begins with (?i), and parts of words match unless it says
    \b.

    Raises ValueError for a bad pattern, naming it.
    """

    def __init__(self, patterns: Sequence[str]) -> None:
        self._patterns = tuple(map(GrowingPattern, patterns))
        self._begun: PatternsBegun = lru_cache(maxsize=_MAX_CACHED)(self._begun_by)

    def new_text(self) -> "FilteredText":
        return FilteredText(self._begun)

    def _begun_by(self, before: str, character: str) -> tuple[GrowingPattern, ...]:
        """The patterns of which a match may begin with a character behind another."""
        return tuple(pattern for pattern in self._patterns if pattern.may_begin_with(character, before))


class FilteredText:
    r"""Ends a text before the earliest match of any pattern, however it arrives in pieces, and gives out nothing of it.

    The text is decided character by character, so the decision is the same for any chunking. A match counts once a
    character follows its end, for that character may undo it (as in `bad\b`), or when no text follows. As with stop
    strings, it waits while a match that started before it may still complete.

    A match of more than MAX_HELD characters is found only if a part of it is one. Where a pattern takes too long, the
    text ends before the place where it was tried.
    """

    def __init__(self, begun_by: PatternsBegun) -> None:
        self._begun_by = begun_by
        self._text = ""  # the end of the text: what is held, and what patterns may look back at
        self._length = 0  # of the whole text; places are counted from its beginning
        self._num_given = 0
        self._open: dict[GrowingPattern, int] = {}  # where the earliest match starts that each may still have
        self._match: int | None = None  # where the earliest match starts that counts
        self.is_cut = False

    def push(self, text: str) -> tuple[str, str]:
        """The text that is now certain to stay, and, once a match was found, the text behind the end."""
        if self.is_cut:
            return "", text
        self._text += text
        self._length += len(text)
        for end in range(len(self._text) - len(text) + 1, len(self._text) + 1):
            if self._is_decided(end):
                return self._cut()
        return self._give(self._first_open), ""

    def flush(self) -> tuple[str, str]:
        """As push, for the text still held, when none follows it in this part of the answer.

        Should more come after all, behind an interruption, a match that began before it is still found.
        """
        if self.is_cut:
            return "", ""
        before = self._length - len(self._text)
        for pattern, start in self._open.items():
            starts = range(start, self._length)
            self._note(next((place for place in starts if pattern.is_at(self._text, place - before)), None))
        return self._cut() if self._match is not None else (self._give(self._length), "")

    @property
    def _first_open(self) -> int:
        """Where the earliest match starts that may still come, or the end of the text."""
        return min(self._open.values(), default=self._length)

    def _is_decided(self, end: int) -> bool:
        """Let the patterns see one more character; whether the earliest match is known then.

        end: the characters of self._text that they see.
        """
        length = self._length - len(self._text) + end
        for pattern in self._begun_by(self._text[max(end - 2, 0) : end - 1], self._text[end - 1]):
            self._open.setdefault(pattern, length - 1)
        if self._open:
            self._advance(self._text[max(end - _WINDOW, 0) : end], length)
        return self._match is not None and self._match <= min(self._open.values(), default=length)

    def _advance(self, text: str, length: int) -> None:
        """text: the end of a text so long."""
        for pattern, start in list(self._open.items()):
            place, counts = _earliest(pattern, text, start, length)
            self._note(place if counts else None)
            self._open[pattern] = place
            if place == length:
                del self._open[pattern]

    def _note(self, start: int | None) -> None:
        if start is not None:
            self._match = start if self._match is None else min(self._match, start)

    def _give(self, end: int) -> str:
        text, _ = self._divided(end)
        self._num_given = max(self._num_given, end)
        self._text = self._text[-_WINDOW:]
        return text

    def _cut(self) -> tuple[str, str]:
        assert self._match is not None
        self.is_cut = True
        return self._divided(self._match)

    def _divided(self, end: int) -> tuple[str, str]:
        """What has not been given out yet, before and behind a place."""
        before = self._length - len(self._text)
        middle = max(end, self._num_given) - before
        return self._text[self._num_given - before : middle], self._text[middle:]


def _earliest(pattern: GrowingPattern, text: str, start: int, length: int) -> tuple[int, bool]:
    """Where, from a start on, the earliest match begins that there is or may be, or the length; whether it counts.

    text: the end of a text so long.
    """
    while start < length:
        match = pattern.match_at(text, start - length + len(text))
        if length - start >= MAX_HELD:
            match = _AT_LIMIT.get(match, match)
        if match is not Match.NONE:
            return start, match is Match.INSIDE
        start += 1
    return start, False
