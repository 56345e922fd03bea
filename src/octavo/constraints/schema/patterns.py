"""Regular expressions of ECMA 262, as `pattern` has them, in the spelling that JSON strings have for what they match.

A code point has one spelling in what a grammar generates: itself, or a short escape. So a pattern's complement among
spelled strings is the spelling of its complement.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import regex  # type: ignore[import-untyped]

from octavo.constraints.schema.pattern_nodes import CHARACTER, Alternation, Concatenation, Edge, Node
from octavo.constraints.schema.pattern_parser import Parser


@dataclass(frozen=True, slots=True)
class Pattern:
    """In two readings, where dialects disagree: what matches in all of them, and what does in any.

    matched: what it matches anywhere in a text, in Python's `regex`. spelled: the whole body of a JSON string.
    """

    matched: str
    spelled: str
    matched_widely: str
    spelled_widely: str

    def matches(self, text: str) -> bool:
        return bool(regex.search(self.matched, text, regex.V1))

    def may_match(self, text: str) -> bool:
        return bool(regex.search(self.matched_widely, text, regex.V1))


@lru_cache(1024)
def parsed(source: str) -> Pattern:
    """Raises PatternError."""
    return Pattern(*_read(source, is_wide=False), *_read(source, is_wide=True))


def whole(source: str) -> Pattern:
    """What must match from end to end."""
    return parsed(f"^(?:{source})$")


def _read(source: str, *, is_wide: bool) -> tuple[str, str]:
    """What matches, and what its spelling is."""
    node = Parser(source, is_wide=is_wide).whole()
    return node.matched(), f"(?:{'|'.join(map(_spelled_branch, _branches(node)))})"


def _branches(node: Node) -> Sequence[Concatenation]:
    """The alternatives, of which only the first and last parts may be edges."""
    if isinstance(node, Alternation):
        return [branch for option in node.options for branch in _branches(option)]
    parts = node.parts if isinstance(node, Concatenation) else (node,)
    if len(parts) == 1 and isinstance(parts[0], Concatenation | Alternation):
        return _branches(parts[0])
    for index in {0, len(parts) - 1} if parts else ():
        if isinstance(parts[index], Concatenation | Alternation) and _has_edge(parts[index]):
            inner = _branches(parts[index])
            spread = [Concatenation((*parts[:index], *branch.parts, *parts[index + 1 :])) for branch in inner]
            return [branch for one in spread for branch in _branches(one)]
    return [Concatenation(tuple(parts))]


def _has_edge(node: Node) -> bool:
    match node:
        case Edge():
            return True
        case Concatenation(parts) | Alternation(parts):
            return any(map(_has_edge, parts))
    return False


def _spelled_branch(branch: Concatenation) -> str:
    parts = list(branch.parts)
    starts = ends = False
    while parts and parts[0] == Edge("^"):
        starts, parts = True, parts[1:]
    while parts and parts[-1] == Edge("$"):
        ends, parts = True, parts[:-1]
    body = Concatenation(tuple(parts)).spelled()
    return f"{'' if starts else CHARACTER + '*'}{body}{'' if ends else CHARACTER + '*'}"
