"""The automaton that looks for several strings at once (Aho and Corasick, Efficient String Matching, 1975)."""

from functools import lru_cache


class Prefix:
    """A beginning of at least one string.

    length: its characters. match_length: length of the longest string that it ends with, or 0.
    fallback: its longest proper end that is a prefix too; None for the empty prefix.
    """

    __slots__ = ("_next", "fallback", "length", "match_length")

    def __init__(self, length: int) -> None:
        self.length = length
        self.match_length = 0
        self.fallback: Prefix | None = None
        self._next: dict[str, Prefix] = {}

    def then(self, character: str) -> "Prefix":
        """The longest end of this prefix's text and the character that is a prefix."""
        prefix = self
        while (longer := prefix._next.get(character)) is None:
            if prefix.fallback is None:
                return prefix
            prefix = prefix.fallback
        return longer

    def is_absent_from(self, text: str) -> bool:
        """Whether no character of the text continues this prefix."""
        return self._next.keys().isdisjoint(text)

    @property
    def extensions(self) -> list[tuple[str, "Prefix"]]:
        return list(self._next.items())

    def _extended(self, character: str) -> "Prefix":
        return self._next.setdefault(character, Prefix(self.length + 1))

    def _link(self, fallback: "Prefix") -> None:
        self.fallback = fallback
        self.match_length = max(self.match_length, fallback.match_length)


@lru_cache(maxsize=32)  # the choices of a request share their strings
def root_of(strings: tuple[str, ...]) -> Prefix:
    """The empty prefix, from which all prefixes of the strings are reached."""
    root = Prefix(0)
    for string in strings:
        prefix = root
        for character in string:
            prefix = prefix._extended(character)
        prefix.match_length = prefix.length
    _link_fallbacks(root)
    return root


def _link_fallbacks(root: Prefix) -> None:
    """By length, because a prefix's fallback is shorter and must be linked before it."""
    shortest = [prefix for _, prefix in root.extensions]
    for prefix in shortest:
        prefix._link(root)
    queue = shortest
    for prefix in queue:
        assert prefix.fallback is not None
        for character, longer in prefix.extensions:
            longer._link(prefix.fallback.then(character))
            queue.append(longer)
