"""Regular expressions of ECMA 262, as `pattern` has them, in the spelling that JSON strings have for what they match.

A code point has one spelling in what a grammar generates: itself, or a short escape. So a pattern's complement among
spelled strings is the spelling of its complement.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import regex  # type: ignore[import-untyped]

ESCAPES = {"\b": "b", "\t": "t", "\n": "n", "\f": "f", "\r": "r", '"': '"', "\\": "\\"}
CHARACTER = r'(?:[^"\\\x00-\x1f\x7f]|\\["\\bfnrt])'
"""A regular expression for one code point of a string, as it is spelled."""

MAX_REPEATS = 4096
_UNPRINTED = [chr(code) for code in (*range(0x20), 0x22, 0x5C, 0x7F)]
_PLAIN = r'[^"\\\x00-\x1f\x7f]'
_POSITIVE = {"d": "0-9", "w": "A-Za-z0-9_", "s": r"\t\n\v\f\r "}
_CONTROLS = {"t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r", "0": "\0"}
_DOT = r"[^\n\r\u2028\u2029]"


class PatternError(ValueError):
    """What is wrong with a pattern, or not supported of it."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """matched: what it matches anywhere in a text, in Python's `regex`. spelled: the whole body of a JSON string."""

    matched: str
    spelled: str

    def matches(self, text: str) -> bool:
        return bool(regex.search(self.matched, text))


def parsed(source: str) -> Pattern:
    """Raises PatternError."""
    node = _Parser(source).whole()
    branches = [_spelled_branch(branch) for branch in _branches(node)]
    return Pattern(node.matched(), f"(?:{'|'.join(branches)})")


def whole(source: str) -> Pattern:
    """What must match from end to end."""
    return parsed(f"^(?:{source})$")


@dataclass(frozen=True, slots=True)
class _Characters:
    """One code point of a class, in the notation that Rust's `regex` and Python's share."""

    text: str

    def matched(self) -> str:
        return self.text

    def spelled(self) -> str:
        unprinted = [code for code in _UNPRINTED if regex.fullmatch(self.text, code)]
        plain = f"[{self.text}&&{_PLAIN}]" if unprinted else self.text
        return (
            "(?:" + "|".join([plain, *(rf"\\{_quoted(ESCAPES[code])}" for code in unprinted if code in ESCAPES)]) + ")"
        )


@dataclass(frozen=True, slots=True)
class _Edge:
    text: str

    def matched(self) -> str:
        return r"\A" if self.text == "^" else r"\Z"

    def spelled(self) -> NoReturn:
        raise PatternError(f"{self.text} is supported at the ends of a pattern only.")


@dataclass(frozen=True, slots=True)
class _Sequence:
    parts: tuple[Any, ...]

    def matched(self) -> str:
        return "".join(part.matched() for part in self.parts)

    def spelled(self) -> str:
        return "".join(part.spelled() for part in self.parts)


@dataclass(frozen=True, slots=True)
class _Either:
    options: tuple[Any, ...]

    def matched(self) -> str:
        return f"(?:{'|'.join(option.matched() for option in self.options)})"

    def spelled(self) -> str:
        return f"(?:{'|'.join(option.spelled() for option in self.options)})"


@dataclass(frozen=True, slots=True)
class _Repeat:
    part: Any
    count: str

    def matched(self) -> str:
        return f"(?:{self.part.matched()}){self.count}"

    def spelled(self) -> str:
        return f"(?:{self.part.spelled()}){self.count}"


class _Parser:
    def __init__(self, source: str) -> None:
        self._source = source
        self._at = 0

    def whole(self) -> Any:
        node = self._either()
        if self._at < len(self._source):
            raise PatternError("a ) too many.")
        return node

    def _peek(self, text: str) -> bool:
        return self._source.startswith(text, self._at)

    def _take(self, text: str) -> bool:
        if not self._peek(text):
            return False
        self._at += len(text)
        return True

    def _next(self) -> str:
        if self._at >= len(self._source):
            raise PatternError("it ends too early.")
        self._at += 1
        return self._source[self._at - 1]

    def _either(self) -> Any:
        options = [self._sequence()]
        while self._take("|"):
            options.append(self._sequence())
        return options[0] if len(options) == 1 else _Either(tuple(options))

    def _sequence(self) -> _Sequence:
        parts: list[Any] = []
        while self._at < len(self._source) and not self._peek("|") and not self._peek(")"):
            parts.append(self._repeated(self._atom()))
        return _Sequence(tuple(parts))

    def _repeated(self, atom: Any) -> Any:
        found = regex.compile(r"[*+?]|\{(\d+)(?:,(\d*))?\}").match(self._source, self._at)
        if found is None:
            return atom
        if isinstance(atom, _Edge):
            raise PatternError("nothing to repeat.")
        self._at = found.end()
        self._take("?")
        if any(int(count) > MAX_REPEATS for count in found.groups() if count):
            raise PatternError(f"at most {MAX_REPEATS} repetitions are supported.")
        return _Repeat(atom, found[0])

    def _atom(self) -> Any:
        code = self._next()
        match code:
            case "^" | "$":
                return _Edge(code)
            case "(":
                return self._group()
            case "[":
                return self._class()
            case ".":
                return _Characters(_DOT)
            case "\\":
                return _Characters(f"[{self._escaped(in_class=False)}]")
            case "*" | "+" | "?":
                raise PatternError("nothing to repeat.")
        return _Characters(_quoted(code))

    def _group(self) -> Any:
        if self._take("?") and not self._take(":"):
            named = regex.compile(r"P?<[A-Za-z_]\w*>").match(self._source, self._at)
            if named is None:
                raise PatternError("look-around and flags are not supported.")
            self._at = named.end()
        node = self._either()
        if not self._take(")"):
            raise PatternError("a ( without its ).")
        return node

    def _class(self) -> _Characters:
        opening = "[^" if self._take("^") else "["
        members: list[str] = []
        while not self._take("]"):
            members.append(self._range())
        if not members:
            raise PatternError("an empty class.")
        return _Characters(f"{opening}{''.join(members)}]")

    def _range(self) -> str:
        first = self._member()
        if not self._peek("-") or self._peek("-]"):
            return first
        self._take("-")
        last = self._member()
        if not _is_ascending(first, last):
            raise PatternError(f"{first}-{last} is no range.")
        return f"{first}-{last}"

    def _member(self) -> str:
        code = self._next()
        return self._escaped(in_class=True) if code == "\\" else _quoted(code)

    def _escaped(self, *, in_class: bool) -> str:
        """The inside of a class. Negated ones follow Unicode and the others ASCII: what all dialects agree on."""
        code = self._next()
        if code in _POSITIVE:
            return _POSITIVE[code]
        if code in "DWS":
            return f"\\{code}"
        if code in "pP":
            return self._property(code)
        if code in _CONTROLS:
            return _quoted(_CONTROLS[code])
        if code in "xuc":
            return _quoted(self._coded(code))
        if code == "b" and in_class:
            return _quoted("\b")
        if code.isalnum():
            raise PatternError(rf"\{code} is not supported.")
        return _quoted(code)

    def _property(self, code: str) -> str:
        found = regex.compile(r"\{[\w=]+\}").match(self._source, self._at)
        if found is None:
            raise PatternError(rf"\{code} without its property.")
        self._at = found.end()
        return f"\\{code}{found[0]}"

    def _coded(self, kind: str) -> str:
        forms = {"x": r"([0-9a-fA-F]{2})", "u": r"(?:([0-9a-fA-F]{4})|\{([0-9a-fA-F]{1,6})\})", "c": r"([A-Za-z])"}
        found = regex.compile(forms[kind]).match(self._source, self._at)
        if found is None:
            raise PatternError(rf"\{kind} without its code.")
        self._at = found.end()
        digits = next(filter(None, found.groups()))
        value = ord(digits) % 32 if kind == "c" else int(digits, 16)
        if value > 0x10FFFF or 0xD800 <= value < 0xE000:
            raise PatternError("no such code point.")
        return chr(value)


def _quoted(code: str) -> str:
    """Of a class and outside, for both dialects."""
    if code < " " or code == "\x7f":
        return f"\\x{ord(code):02x}"
    return code if code.isalnum() or code == "_" or code > "\x7f" or code in " \"'%,;:<>=@!`/" else f"\\{code}"


def _is_ascending(first: str, last: str) -> bool:
    """Of two members of a class, whether both are single code points and the first comes first."""
    codes = [regex.sub(r"^\\x(..)$", lambda found: chr(int(found[1], 16)), member) for member in (first, last)]
    if any(regex.fullmatch(r"(?s)\\[^a-zA-Z]|[^\\]", code) is None for code in codes):
        return False
    return bool(codes[0][-1] <= codes[1][-1])


def _branches(node: Any) -> Sequence[_Sequence]:
    """The alternatives, of which only the first and last parts may be edges."""
    if isinstance(node, _Either):
        return [branch for option in node.options for branch in _branches(option)]
    parts = node.parts if isinstance(node, _Sequence) else (node,)
    if len(parts) == 1 and isinstance(parts[0], _Sequence | _Either):
        return _branches(parts[0])
    for index in {0, len(parts) - 1} if parts else ():
        if isinstance(parts[index], _Sequence | _Either) and _has_edge(parts[index]):
            inner = _branches(parts[index])
            spread = [_Sequence((*parts[:index], *branch.parts, *parts[index + 1 :])) for branch in inner]
            return [branch for one in spread for branch in _branches(one)]
    return [_Sequence(tuple(parts))]


def _has_edge(node: Any) -> bool:
    match node:
        case _Edge():
            return True
        case _Sequence(parts) | _Either(parts):
            return any(map(_has_edge, parts))
    return False


def _spelled_branch(branch: _Sequence) -> str:
    parts = list(branch.parts)
    starts = ends = False
    while parts and parts[0] == _Edge("^"):
        starts, parts = True, parts[1:]
    while parts and parts[-1] == _Edge("$"):
        ends, parts = True, parts[:-1]
    body = _Sequence(tuple(parts)).spelled()
    return f"{'' if starts else CHARACTER + '*'}{body}{'' if ends else CHARACTER + '*'}"
