"""What a regular expression is made of, as it matches a text and as it matches the spelling of one in JSON."""

from dataclasses import dataclass
from typing import NoReturn

import regex  # type: ignore[import-untyped]

ESCAPES = {"\b": "b", "\t": "t", "\n": "n", "\f": "f", "\r": "r", '"': '"', "\\": "\\"}
CHARACTER = r'(?:[^"\\\x00-\x1f\x7f]|\\["\\bfnrt])'
"""A regular expression for one code point of a string, as it is spelled."""

_UNPRINTED = [chr(code) for code in (*range(0x20), 0x22, 0x5C, 0x7F)]
_PLAIN = r'[^"\\\x00-\x1f\x7f]'


class PatternError(ValueError):
    """What is wrong with a pattern, or not supported of it."""


@dataclass(frozen=True, slots=True)
class Characters:
    """One code point of a class, in the notation that Rust's `regex` and Python's share."""

    text: str

    def matched(self) -> str:
        return self.text

    def spelled(self) -> str:
        unprinted = [code for code in _UNPRINTED if regex.fullmatch(self.text, code, regex.V1)]
        plain = f"[{self.text}&&{_PLAIN}]" if unprinted else self.text
        escapes = (rf"\\{quoted(ESCAPES[code])}" for code in unprinted if code in ESCAPES)
        return f"(?:{'|'.join([plain, *escapes])})"


@dataclass(frozen=True, slots=True)
class Edge:
    text: str

    def matched(self) -> str:
        return r"\A" if self.text == "^" else r"\Z"

    def spelled(self) -> NoReturn:
        raise PatternError(f"{self.text} is supported at the ends of a pattern only.")


@dataclass(frozen=True, slots=True)
class Concatenation:
    parts: "tuple[Node, ...]"

    def matched(self) -> str:
        return "".join(part.matched() for part in self.parts)

    def spelled(self) -> str:
        return "".join(part.spelled() for part in self.parts)


@dataclass(frozen=True, slots=True)
class Alternation:
    options: "tuple[Node, ...]"

    def matched(self) -> str:
        return f"(?:{'|'.join(option.matched() for option in self.options)})"

    def spelled(self) -> str:
        return f"(?:{'|'.join(option.spelled() for option in self.options)})"


@dataclass(frozen=True, slots=True)
class Repeat:
    part: "Node"
    count: str

    def matched(self) -> str:
        return f"(?:{self.part.matched()}){self.count}"

    def spelled(self) -> str:
        return f"(?:{self.part.spelled()}){self.count}"


Node = Characters | Edge | Concatenation | Alternation | Repeat


def quoted(code: str) -> str:
    """Of a class and outside, for both dialects."""
    if code < " " or code == "\x7f":
        return f"\\x{ord(code):02x}"
    return code if code.isalnum() or code == "_" or code > "\x7f" or code in " \"'%,;:<>=@!`/" else f"\\{code}"
