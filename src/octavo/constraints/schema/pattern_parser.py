"""Regular expressions of ECMA 262, as they are written.

Dialects differ: a space (U+FEFF, U+001C), a digit or a letter (of other scripts) is not the same in all of them, the
dot matches U+2028 or does not, and the end of a text may be before its last line break.
"""

import regex  # type: ignore[import-untyped]

from octavo.constraints.schema.pattern_nodes import (
    Alternation,
    Characters,
    Concatenation,
    Edge,
    Node,
    PatternError,
    Repeat,
    quoted,
)

MAX_REPEATS = 4096
_NARROW = {"d": "0-9", "w": "A-Za-z0-9_", "s": r"\t\n\v\f\r "}
_WIDE = {"d": r"\d", "w": r"\w\p{N}", "s": r"\s\x1c-\x1f\uFEFF"}
"""Insides of classes: what all dialects take for such a character, and what any does."""
_CONTROLS = {"t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r", "0": "\0"}


class Parser:
    """is_wide: what any dialect matches is wanted, and not what all of them do. Raises PatternError."""

    def __init__(self, source: str, *, is_wide: bool) -> None:
        self._source = source
        self._is_wide = is_wide
        self._at = 0

    def whole(self) -> Node:
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

    def _either(self) -> Node:
        options = [self._sequence()]
        while self._take("|"):
            options.append(self._sequence())
        return options[0] if len(options) == 1 else Alternation(tuple(options))

    def _sequence(self) -> Concatenation:
        parts: list[Node] = []
        while self._at < len(self._source) and not self._peek("|") and not self._peek(")"):
            parts.append(self._repeated(self._atom()))
        return Concatenation(tuple(parts))

    def _repeated(self, atom: Node) -> Node:
        found = regex.compile(r"[*+?]|\{(\d+)(?:,(\d*))?\}").match(self._source, self._at)
        if found is None:
            return atom
        if isinstance(atom, Edge):
            raise PatternError("nothing to repeat.")
        self._at = found.end()
        self._take("?")
        if any(int(count) > MAX_REPEATS for count in found.groups() if count):
            raise PatternError(f"at most {MAX_REPEATS} repetitions are supported.")
        return Repeat(atom, found[0])

    def _atom(self) -> Node:
        code = self._next()
        match code:
            case "^":
                return Edge(code)
            case "$":
                return Concatenation((Repeat(Characters(r"\n"), "?"), Edge(code))) if self._is_wide else Edge(code)
            case "(":
                return self._group()
            case "[":
                return self._class()
            case ".":
                return Characters(r"[^\n]" if self._is_wide else r"[^\n\r\u2028\u2029]")
            case "\\":
                return Characters(f"[{self._escaped(in_class=False)}]")
            case "*" | "+" | "?":
                raise PatternError("nothing to repeat.")
        return Characters(quoted(code))

    def _group(self) -> Node:
        if self._take("?") and not self._take(":"):
            named = regex.compile(r"P?<[A-Za-z_]\w*>").match(self._source, self._at)
            if named is None:
                raise PatternError("look-around and flags are not supported.")
            self._at = named.end()
        node = self._either()
        if not self._take(")"):
            raise PatternError("a ( without its ).")
        return node

    def _class(self) -> Characters:
        if not self._take("^"):
            return Characters(f"[{self._members()}]")
        # What is surely not in a class is what no dialect has in it.
        self._is_wide = not self._is_wide
        members = self._members()
        self._is_wide = not self._is_wide
        return Characters(f"[^{members}]")

    def _members(self) -> str:
        members: list[str] = []
        while not self._take("]"):
            members.append(self._range())
        if not members:
            raise PatternError("an empty class.")
        return "".join(members)

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
        return self._escaped(in_class=True) if code == "\\" else quoted(code)

    def _escaped(self, *, in_class: bool) -> str:
        """The inside of a class."""
        code = self._next()
        if code in _NARROW:
            return (_WIDE if self._is_wide else _NARROW)[code]
        if code in "DWS":
            return f"[^{(_NARROW if self._is_wide else _WIDE)[code.lower()]}]"
        if code in "pP":
            return self._property(code)
        if code in _CONTROLS:
            return quoted(_CONTROLS[code])
        if code in "xuc":
            return quoted(self._coded(code))
        if code == "b" and in_class:
            return quoted("\b")
        if code.isalnum():
            raise PatternError(rf"\{code} is not supported.")
        return quoted(code)

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


def _is_ascending(first: str, last: str) -> bool:
    """Of two members of a class, whether both are single code points and the first comes first."""
    codes = [regex.sub(r"^\\x(..)$", lambda found: chr(int(found[1], 16)), member) for member in (first, last)]
    if any(regex.fullmatch(r"(?s)\\[^a-zA-Z]|[^\\]", code) is None for code in codes):
        return False
    return bool(codes[0][-1] <= codes[1][-1])
