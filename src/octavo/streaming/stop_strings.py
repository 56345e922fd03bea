"""Where an answer ends because of its text."""

from collections.abc import Sequence
from functools import lru_cache


class StopStrings:
    """Cuts a text before its earliest stop string, however the text arrives in pieces.

    Of several stop strings in the text, the one that starts first counts, so their order never matters. A match is
    decided only once no stop string that started before it can still complete: with stops "bcd" and "c", the text "abc"
    waits, "abcx" ends as "ab" and "abcd" as "a". The decision falls at the same character for any chunking.

    Time is linear in the text, whatever the stop strings (Aho and Corasick, Efficient String Matching, 1975).
    """

    def __init__(self, stop: Sequence[str]) -> None:
        self._prefix = _root_of(tuple(stop))
        self._held = ""  # the text of self._prefix: the longest end of the text that begins a stop string
        self._match: int | None = None  # where in self._held the earliest complete stop string starts
        self.is_stopped = False

    def push(self, text: str) -> str:
        """The text that is now certain to come before any stop string; nothing after one was found."""
        if self.is_stopped:
            return ""
        pending, begin = self._held + text, len(self._held)
        match = self._match
        prefix = self._prefix
        for end, character in enumerate(text, begin + 1):
            prefix = prefix.then(character)
            if prefix.match_length:
                start = end - prefix.match_length
                match = start if match is None else min(match, start)
            if match is not None and match <= end - prefix.length:
                return self._stop(pending[:match])
        certain = len(pending) - prefix.length
        self._prefix, self._held = prefix, pending[certain:]
        self._match = None if match is None else match - certain
        return pending[:certain]

    def flush(self) -> str:
        """The text still held, at the end of the generation. A match that waited is decided: see `is_stopped`."""
        if self._match is not None:
            return self._stop(self._held[: self._match])
        held, self._held = self._held, ""
        return held

    def _stop(self, text: str) -> str:
        self.is_stopped = True
        self._held, self._match = "", None
        return text


class _Prefix:
    """A beginning of at least one stop string.

    length: its characters. match_length: length of the longest stop string that it ends with, or 0.
    fallback: its longest proper end that is a prefix too; None for the empty prefix.
    """

    __slots__ = ("_next", "fallback", "length", "match_length")

    def __init__(self, length: int) -> None:
        self.length = length
        self.match_length = 0
        self.fallback: _Prefix | None = None
        self._next: dict[str, _Prefix] = {}

    def then(self, character: str) -> "_Prefix":
        """The longest end of this prefix's text and the character that is a prefix."""
        prefix = self
        while (longer := prefix._next.get(character)) is None:
            if prefix.fallback is None:
                return prefix
            prefix = prefix.fallback
        return longer

    def extended(self, character: str) -> "_Prefix":
        return self._next.setdefault(character, _Prefix(self.length + 1))

    def link(self, fallback: "_Prefix") -> None:
        self.fallback = fallback
        self.match_length = max(self.match_length, fallback.match_length)

    @property
    def extensions(self) -> list[tuple[str, "_Prefix"]]:
        return list(self._next.items())


@lru_cache(maxsize=16)  # the choices of a request share their stop strings
def _root_of(stop: tuple[str, ...]) -> _Prefix:
    """The empty prefix, from which all prefixes of the stop strings are reached."""
    root = _Prefix(0)
    for string in stop:
        prefix = root
        for character in string:
            prefix = prefix.extended(character)
        prefix.match_length = prefix.length
    _link_fallbacks(root)
    return root


def _link_fallbacks(root: _Prefix) -> None:
    """By length, because a prefix's fallback is shorter and must be linked before it."""
    shortest = [prefix for _, prefix in root.extensions]
    for prefix in shortest:
        prefix.link(root)
    queue = shortest
    for prefix in queue:
        assert prefix.fallback is not None
        for character, longer in prefix.extensions:
            longer.link(prefix.fallback.then(character))
            queue.append(longer)
