"""Reading a call while its text is still being written.

A format's reader is a generator that yields whenever it needs text that has not come yet; so it is written as if all
the text were there, and gives the same calls however the text is cut into pieces.
"""

import json
import re
from collections.abc import Collection, Generator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")

Reading = Generator[None, None, T]
"""Yields when more text is needed, returns what was read, raises NotACall."""

MAX_DEPTH = 64
SPACE = re.compile(r"\s*")
_IN_STRING = {'"': re.compile(r'[^"\\]*'), "'": re.compile(r"[^'\\]*")}


@dataclass(frozen=True, slots=True)
class _Notation:
    """Of which characters values are made. scalar: of those with neither quotes nor brackets."""

    quotes: str
    closing: Mapping[str, str]
    scalar: re.Pattern[str]
    between_strings: re.Pattern[str]


_JSON = _Notation(
    quotes='"',
    closing={"{": "}", "[": "]"},
    scalar=re.compile(r"[0-9+\-.eEtrufalsn]*"),
    between_strings=re.compile(r"[\s:,0-9+\-.eEtrufalsn]*"),
)
_PYTHON = _Notation(
    quotes="\"'",
    closing={"{": "}", "[": "]", "(": ")"},
    scalar=re.compile(r"[\w+\-.]*"),
    between_strings=re.compile(r"[\s:,\w+\-.]*"),
)


class NotACall(Exception):
    """The text is not what the format says that a call is."""


class Reader:
    """The text of an answer from the start of a call on. Each character is read once, and never put back.

    text: what has been read since the beginning, or since it was drained.
    """

    def __init__(self) -> None:
        self._chunk = ""
        self._place = 0
        self._parts: list[str] = []
        self._has_ended = False

    def feed(self, text: str) -> None:
        """Text that goes on where the last one ended. All of that has been read."""
        self._chunk, self._place = text, 0

    def end(self) -> None:
        """No more text comes."""
        self._has_ended = True

    @property
    def text(self) -> str:
        return "".join(self._parts)

    @property
    def rest(self) -> str:
        """What has come and was not read."""
        return self._chunk[self._place :]

    def drain(self) -> str:
        """The text, which then begins anew."""
        text = self.text
        self._parts.clear()
        return text

    def peek(self) -> Reading[str]:
        """The next character, which is not read by that; an empty string at the end of the text."""
        while self._place == len(self._chunk):
            if self._has_ended:
                return ""
            yield
        return self._chunk[self._place]

    def take(self, pattern: re.Pattern[str]) -> Reading[str]:
        """All that follows of a run that the pattern describes: of each of its parts, as of the whole, it is a match,
        and it matches the empty text."""
        taken = []
        while (yield from self.peek()):
            match = pattern.match(self._chunk, self._place)
            assert match is not None
            taken.append(self._advance(match.end()))
            if self._place < len(self._chunk):
                break
        return "".join(taken)

    def space(self) -> Reading[str]:
        return self.take(SPACE)

    def literal(self, text: str) -> Reading[None]:
        """Raises NotACall where the text is another one."""
        for character in text:
            if (yield from self.peek()) != character:
                raise NotACall
            self._advance(self._place + 1)

    def one_of(self, texts: Collection[str]) -> Reading[str]:
        """The longest of the texts that follows. Raises NotACall where none does, and where one that goes on as a
        longer one does is not it."""
        read = ""
        while any(text.startswith(read) and text != read for text in texts):
            longer = read + (yield from self.peek())
            if longer == read or not any(text.startswith(longer) for text in texts):
                break
            self._advance(self._place + 1)
            read = longer
        if read not in texts:
            raise NotACall
        return read

    def optional(self, *texts: str) -> Reading[str]:
        """The longest of the texts that follows; empty where the next character begins none of them. Raises NotACall
        where it does and none follows, but not where the text ends within one."""
        if (yield from self.peek()) not in {text[0] for text in texts}:
            return ""
        try:
            return (yield from self.one_of(texts))
        except NotACall:
            if (yield from self.peek()):
                raise
            return ""

    def until(self, *ends: str) -> Reading[tuple[str, str]]:
        """The text before the first of the ends, and that end. Raises NotACall where the text ends before it.

        None of the ends is part of another one.
        """
        first = re.compile("[^" + "".join({re.escape(end[0]) for end in ends}) + "]*")
        taken: list[str] = []
        read = ""  # the longest end of the text that begins one of the ends
        while read not in ends:
            if not read:
                taken.append((yield from self.take(first)))
            read += yield from self._next()
            place = next(at for at in range(len(read) + 1) if any(end.startswith(read[at:]) for end in ends))
            taken.append(read[:place])
            read = read[place:]
        return "".join(taken), read

    def _next(self) -> Reading[str]:
        """The next character. Raises NotACall at the end of the text."""
        if not (yield from self.peek()):
            raise NotACall
        return self._advance(self._place + 1)

    def json(self) -> Reading[Any]:
        """The JSON value that follows, of at most MAX_DEPTH levels. Raises NotACall where it is none.

        A number at the end of the text is taken as complete. Strings may run over lines and hold tabs.
        """
        start = len(self._parts)
        yield from self.skip_json()
        try:
            return json.loads("".join(self._parts[start:]), parse_constant=_refuse, strict=False)
        except ValueError as error:
            raise NotACall from error

    def python(self) -> Reading[str]:
        """The text of the Python literal that follows, as far as its brackets and quotes tell. Otherwise as json."""
        start = len(self._parts)
        yield from self._skip(_PYTHON)
        return "".join(self._parts[start:])

    def skip_json(self) -> Reading[None]:
        """Read up to the end of what may be a JSON value. Raises NotACall where it certainly is none."""
        return self._skip(_JSON)

    def _skip(self, notation: _Notation) -> Reading[None]:
        open_brackets: list[str] = []
        while True:
            character = yield from self.peek()
            if character and character in notation.quotes:
                yield from self._string(character)
            elif character in notation.closing:
                open_brackets.append(notation.closing[character])
                self._advance(self._place + 1)
                if len(open_brackets) > MAX_DEPTH:
                    raise NotACall
            elif open_brackets and character == open_brackets[-1]:
                open_brackets.pop()
                self._advance(self._place + 1)
            elif not (yield from self.take(notation.between_strings if open_brackets else notation.scalar)):
                raise NotACall
            if not open_brackets:
                return

    def _string(self, quote: str) -> Reading[None]:
        self._advance(self._place + 1)
        while True:
            yield from self.take(_IN_STRING[quote])
            character = yield from self.peek()
            if not character:
                raise NotACall
            self._advance(self._place + 1)
            if character == quote:
                return
            if not (yield from self.peek()):  # what a backslash escapes
                raise NotACall
            self._advance(self._place + 1)

    def _advance(self, place: int) -> str:
        read = self._chunk[self._place : place]
        self._place = place
        self._parts.append(read)
        return read


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")
