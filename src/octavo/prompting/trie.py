"""A regular expression for many literals, fast however many there are."""

import re
from collections.abc import Iterable


def longest_of(literals: Iterable[str]) -> str:
    """Pattern that matches the longest of the literals at a place, and on backtracking the shorter ones.

    A plain alternation would try thousands of tokens at each `<` of a text; this one branches letter by letter.
    """
    return _pattern(sorted(set(literals)))


def _pattern(literals: list[str]) -> str:
    """literals: sorted, not empty."""
    prefix = _common_prefix(literals[0], literals[-1])
    rests = [literal[len(prefix) :] for literal in literals]
    can_end_here = rests[0] == ""
    branches = [_pattern(group) for group in _by_first_letter(rests[can_end_here:])]
    if not branches:
        return re.escape(prefix)
    return f"{re.escape(prefix)}(?:{'|'.join(branches)}){'?' if can_end_here else ''}"


def _by_first_letter(literals: list[str]) -> Iterable[list[str]]:
    groups: dict[str, list[str]] = {}
    for literal in literals:
        groups.setdefault(literal[0], []).append(literal)
    return groups.values()


def _common_prefix(first: str, last: str) -> str:
    """Of two strings, and so of all that sort between them."""
    length = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
    return first[:length]
