"""JSON texts that a grammar allows, drawn at random and in moods that look for what it should not allow."""

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from support.json_spellings import escaped
from support.languages import END, Language, Writing

MAX_BYTES = 6000
MAX_ATTEMPTS = 100
_PRINTABLE = frozenset(range(0x20, 0x7F))


@dataclass(frozen=True, slots=True)
class Mood:
    """What a writer likes to write.

    wishes: texts that are begun wherever their first byte is allowed, and gone on with as long as they are.
    eagerness: how often one is begun, 0..1.
    patience: bytes after which everything is brought to an end as soon as it may be.
    """

    name: str
    wishes: tuple[bytes, ...] = ()
    eagerness: float = 0.5
    patience: int = 60


SURROGATES = (rb"\ud83d\ude00", rb"\ud800", rb"\udc00")
CHARACTERS = (
    rb"\u0000",
    rb"\u002e",
    rb"\"",
    rb"\/\b\f\n\r\t",
    "😀".encode(),
    "e\u0301ſ\u2028\x7f".encode(),
    "\u00a0\u3000²\u0663".encode(),
)
NUMBERS = tuple(
    b"-0 0.0 1.0 -1 1e2 1E+2 1e-2 1e400 -1e400 1e-400 0.1 0.30000000000000004 3.0000000000000001 9007199254740993 "
    b"123456789012345678901234567890 -99999999999999999999.5 1e308 0.0000000000000000000000001".split()
)
SPACE = (b" ", b"   ", b"\n\n\n\n", b"\t\t\r\n", b" " * 200)
MOODS = (
    Mood("short", patience=0),
    Mood("plain"),
    Mood("long", patience=400),
    Mood("surrogates", SURROGATES, eagerness=0.8),
    Mood("characters", CHARACTERS),
    Mood("numbers", NUMBERS, eagerness=0.8),
    Mood("space", SPACE, eagerness=0.9, patience=200),
)


def moods_for(schema: object) -> tuple[Mood, ...]:
    """All, and those that play with what is in the schema: strings as they are, and spelled so that they look like
    others; numbers, and what is so near to them that a double is the same."""
    words = sorted({value for value in _scalars(schema) if isinstance(value, str) and not value.startswith("http")})
    repeated = tuple(f'"{word}"'.encode("utf-8", "replace") for word in words)
    respelled = tuple(f'"{escaped(word)}"'.encode() for word in words)
    near = tuple(text.encode() for number in _integers(schema) for text in _near(number))
    own = (("words", repeated), ("respelled", respelled), ("near", near))
    return (*MOODS, *(Mood(name, wishes, eagerness=0.8, patience=120) for name, wishes in own if wishes))


def random_texts(language: Language, schema: object, seed: str, rounds: int = 1) -> Iterator[tuple[Mood, bytes]]:
    """Texts in each mood; the same ones for the same seed."""
    hints = pattern_pieces(schema)
    for number in range(rounds):
        for mood in moods_for(schema):
            yield mood, random_text(language, mood, hints, random.Random(f"{seed} {mood.name} {number}"))


def random_text(language: Language, mood: Mood, hints: Sequence[bytes], rng: random.Random) -> bytes:
    """One that begins anew where it gets too long: recursion without luck does."""
    for _ in range(MAX_ATTEMPTS):
        if text := Writer(language.begin(), mood, hints, rng).whole_text():
            return text
    raise AssertionError(f"no text in {MAX_ATTEMPTS} attempts ended within {MAX_BYTES} bytes")


def pattern_pieces(schema: object) -> tuple[bytes, ...]:
    """What strings may be made of that have to match a pattern of the schema's."""
    strings = (value for value in _scalars(schema) if isinstance(value, str))
    patterns = " ".join(string for string in strings if re.search(r"[\\^$\[(*+]", string))
    literal = re.findall(r"[^\\\[\](){}*+?.|^$]{2,}", patterns)
    return tuple(piece.encode() for piece in sorted({*literal, *re.findall(r"\w+", patterns), *patterns, *"0aA-"}))


class Writer:
    """Writes one text. hints: what helps where nothing can be closed yet."""

    def __init__(self, writing: Writing, mood: Mood, hints: Sequence[bytes], rng: random.Random) -> None:
        self._writing = writing
        self._mood = mood
        self._hints = hints
        self._rng = rng
        self._wish = b""
        self._is_in_string = False
        self._is_escaped = False

    def whole_text(self) -> bytes:
        """Empty where it got too long."""
        while not self._writing.is_whole and (byte := self._next(self._writing.next())) != END:
            self._writing.write(byte)
            self._note(byte)
            if len(self._writing.text) > MAX_BYTES:
                return b""
        return bytes(self._writing.text)

    @property
    def _is_late(self) -> bool:
        return len(self._writing.text) >= self._mood.patience

    def _next(self, allowed: Sequence[int]) -> int:
        if not self._wish or self._wish[0] not in allowed:
            self._wish = self._new_wish(allowed)
        if self._wish:
            byte, self._wish = self._wish[0], self._wish[1:]
            return byte
        return self._any(allowed)

    def _new_wish(self, allowed: Sequence[int]) -> bytes:
        wishes, eagerness = (self._hints, 0.8) if self._is_late else (self._mood.wishes, self._mood.eagerness)
        if (self._is_late and self._closing(allowed) is not None) or self._rng.random() >= eagerness:
            return b""
        possible = [wish for wish in wishes if wish[0] in allowed]
        return self._rng.choice(possible) if possible else b""

    def _any(self, allowed: Sequence[int]) -> int:
        """Ends are likely, and certain when it is late; then printable ASCII, then the rest."""
        closing = self._closing(allowed)
        if closing is not None and (self._is_late or self._rng.random() < 0.2):
            return closing
        printable = [byte for byte in allowed if byte in _PRINTABLE]
        return self._rng.choice(printable if printable and self._rng.random() < 0.9 else allowed)

    def _closing(self, allowed: Sequence[int]) -> int | None:
        """What ends the text, or the innermost string, object or array of it."""
        ends = b'"' if self._is_in_string else b"}]"
        return next((end for end in (END, *ends) if end in allowed), None)

    def _note(self, byte: int) -> None:
        if byte == ord('"') and not self._is_escaped:
            self._is_in_string = not self._is_in_string
        self._is_escaped = byte == ord("\\") and not self._is_escaped


def _integers(schema: object) -> list[int]:
    """What its numbers are near to."""
    numbers = (value for value in _scalars(schema) if isinstance(value, int | float) and not isinstance(value, bool))
    return sorted({int(number) for number in numbers})


def _near(number: int) -> tuple[str, ...]:
    sign, size = "-" if number < 0 else "", abs(number)
    below = f"{sign}{size - 1}.{'9' * 30}" if size else "0." + "0" * 30 + "1"
    return f"{number}", f"{number}.0", f"{number}e0", f"{sign}{size}.{'0' * 30}1", below


def _scalars(value: Any) -> Iterator[str | int | float | bool | None]:
    """Keys and values, wherever they are."""
    if isinstance(value, dict):
        yield from value
        yield from (scalar for each in value.values() for scalar in _scalars(each))
    elif isinstance(value, list):
        yield from (scalar for each in value for scalar in _scalars(each))
    else:
        yield value
