"""Texts with sentinels in them that templates take for the texts without them."""

from typing import Any, Self


class MarkedText(str):
    """Shown with its sentinels; compared, measured and searched without them: templates look for keys and values."""

    __slots__ = ("_plain",)
    _plain: str

    @classmethod
    def of(cls, plain: str, marked: str) -> str:
        return plain if plain == marked else cls(plain, marked)

    def __new__(cls, plain: str, marked: str) -> Self:
        text = super().__new__(cls, marked)
        text._plain = plain
        return text

    def __eq__(self, other: object) -> bool:
        return bool(self._plain == plain_of(other))

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __lt__(self, other: str) -> bool:
        return bool(self._plain < plain_of(other))

    def __le__(self, other: str) -> bool:
        return bool(self._plain <= plain_of(other))

    def __gt__(self, other: str) -> bool:
        return bool(self._plain > plain_of(other))

    def __ge__(self, other: str) -> bool:
        return bool(self._plain >= plain_of(other))

    def __str__(self) -> str:
        return self

    def __hash__(self) -> int:
        return hash(self._plain)

    def __len__(self) -> int:
        return len(self._plain)

    def __contains__(self, part: object) -> bool:
        return plain_of(part) in self._plain

    def startswith(self, *arguments: Any) -> bool:
        return self._plain.startswith(*map(plain_of, arguments))

    def endswith(self, *arguments: Any) -> bool:
        return self._plain.endswith(*map(plain_of, arguments))

    def lower(self) -> str:
        return MarkedText.of(self._plain.lower(), super().lower())

    def upper(self) -> str:
        return MarkedText.of(self._plain.upper(), super().upper())


class MarkedJson(MarkedText):
    """JSON text beside what it says, which is marked on its own: a sentinel between strings would be no JSON."""

    __slots__ = ("value",)
    value: object

    @classmethod
    def saying(cls, value: object, plain: str, marked: str) -> Self:
        text = cls(plain, marked)
        text.value = value
        return text


def plain_of(value: Any) -> Any:
    """A marked text as the client wrote it, and any other value as it is."""
    return value._plain if isinstance(value, MarkedText) else value
