"""A regular expression for a text of which only a beginning is known."""

from enum import Enum, auto

import regex  # type: ignore[import-untyped]

TIMEOUT = 0.05
"""Seconds of processor time that one try to match may take."""

_TOKEN = regex.compile(r"\(\?#[^)]*\)|\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]|\(\?<[=!]|\\.|\$", regex.DOTALL)
_LOOKBEHIND = regex.compile(r"\(\?<[=!]|\\[GK]")
_PAUSE = r"(?=(?s:.)?)"
_END = r"(?!(?s:.))"
_LOOKING_AHEAD = {
    "$": rf"(?:(?=\n?{_END})|$)",
    r"\Z": _END,
    r"\z": _END,
    r"\b": r"(?:(?!\w)(?<=\w)|(?=\w)(?<!\w))",
    r"\B": r"(?:(?=\w)(?<=\w)|(?!\w)(?<!\w))",
    r"\m": r"(?:(?=\w)(?<!\w))",
    r"\M": r"(?:(?!\w)(?<=\w))",
    "(?<=": f"{_PAUSE}(?<=",
    "(?<!": f"{_PAUSE}(?<!",
}


class Match(Enum):
    """What begins at a place of a text that may grow.

    OPEN: what only more text can complete. AT_END: a match that ends with the text, and that more text may undo or
    extend. INSIDE: a match that characters follow.
    """

    NONE = auto()
    OPEN = auto()
    AT_END = auto()
    INSIDE = auto()


class GrowingPattern:
    """Tells where a pattern matches, or may match once more text has come.

    The library knows of a match that the end of the text interrupts, in whatever may consume or look at a character.
    What only asks for the place of the text's end or a word's border it takes for decided there, though the next
    character may change it; and it overlooks the end where a lazy repeat meets a look-behind. So the pattern is
    compiled with all these looking ahead.

    A match has at least one character: where a pattern could match none, what else it can match is looked for.

    Raises ValueError for a pattern that cannot be compiled or that searches backwards.
    """

    def __init__(self, pattern: str) -> None:
        try:
            flags = regex.compile(pattern).flags
            self._compiled = regex.compile(_growing(pattern, is_verbose=bool(flags & regex.VERBOSE)))
        except regex.error as error:
            raise ValueError(f"{pattern!r} is no regular expression: {error}.") from error
        if flags & regex.REVERSE:
            raise ValueError(f"{pattern!r} searches backwards, which is not possible in a text that grows.")
        self._looks_back = _LOOKBEHIND.search(pattern) is not None

    def may_begin_with(self, character: str, before: str) -> bool:
        """Whether a match may begin with the character, whatever follows it. before: the one before it, or nothing."""
        return self._looks_back or self.match_at(before + character, len(before)) is not Match.NONE

    def match_at(self, text: str, place: int) -> Match:
        """What begins at the place. What takes too long to tell is taken for a match."""
        try:
            match = self._compiled.match(text, place, partial=True, timeout=TIMEOUT)
        except TimeoutError:
            return Match.INSIDE
        if match is None:
            return Match.NONE
        if match.partial:
            return Match.OPEN
        return Match.INSIDE if match.end() < len(text) else Match.AT_END

    def is_at(self, text: str, place: int) -> bool:
        """Whether a match begins at the place of a text that ends here. What takes too long to tell is one."""
        try:
            return self._compiled.match(text, place, timeout=TIMEOUT) is not None
        except TimeoutError:
            return True


def _growing(pattern: str, *, is_verbose: bool) -> str:
    r"""The pattern with look-aheads for what asks about the next character, and not ending where it began (\G)."""
    looking_ahead = _TOKEN.sub(lambda token: _LOOKING_AHEAD.get(token[0], token[0]), pattern)
    comment_end = "\n" if is_verbose else ""
    return rf"(?:{looking_ahead}{comment_end})(?!\G)"
