"""A context-free grammar while it is made, and its text in llguidance's Lark."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from octavo.constraints.schema.probe import is_empty


@dataclass(frozen=True, slots=True)
class Repeat:
    symbols: tuple[str, ...]
    minimum: int = 0
    maximum: int | None = None


Symbol = str | Repeat
Alternative = tuple[Symbol, ...]


@dataclass(frozen=True, slots=True)
class Distinct:
    """Lists, separated by `separator`, of different ones of at most 63 symbols, in any order."""

    symbols: tuple[str, ...]
    separator: str
    minimum: int
    maximum: int


MAX_DISTINCT = 63
"""A rule's parameter has 64 bits, and they are counted in conditions below 64."""


class Rules:
    """Names of terminals are in upper case, of rules in lower case."""

    def __init__(self) -> None:
        self._terminals: dict[str, str | None] = {}
        self._rules: dict[str, list[Alternative]] = {}
        self._raw: dict[str, str] = {}
        self._distinct: dict[str, Distinct] = {}

    def fresh(self) -> str:
        """The name of a rule that is yet to be defined."""
        name = f"r{len(self._rules)}"
        self._rules[name] = []
        return name

    def define(self, name: str, alternatives: Iterable[Alternative]) -> str:
        self._rules[name] = list(dict.fromkeys(alternatives))
        return name

    def rule(self, alternatives: Iterable[Alternative]) -> str:
        return self.define(self.fresh(), alternatives)

    def raw(self, text: str) -> str:
        """A rule of which only its text is known: it allows something."""
        return self._raw.setdefault(text, f"j{len(self._raw)}")

    def distinct(self, lists: Distinct) -> str:
        name = self.fresh()
        self._distinct[name] = lists
        return name

    def terminal(self, expression: str) -> str | None:
        """None where it matches nothing."""
        if expression not in self._terminals:
            is_void = "&" in expression and is_empty(expression)
            self._terminals[expression] = None if is_void else f"T{len(self._terminals)}"
        return self._terminals[expression]

    def literal(self, *texts: str) -> str:
        """What is one of these texts."""
        name = self.terminal(" | ".join(json.dumps(text, ensure_ascii=False) for text in texts))
        assert name is not None, "a literal is never empty"
        return name

    def text(self, start: str) -> str | None:
        """The whole grammar. None where it allows nothing."""
        fertile = self._fertile()
        if start not in fertile:
            return None
        lines = [f"start: {start}"]
        for name in self._reachable(start, fertile):
            lines += self._lines(name, fertile)
        lines += [f"{name}: {text}" for text, name in self._raw.items()]
        return "\n".join([*lines, *(f"{name}: {expression}" for expression, name in self._terminals.items() if name)])

    def _fertile(self) -> set[str]:
        """Names of what allows something: a least fixed point."""
        users: dict[str, list[str]] = {}
        for name in self._rules:
            for symbol in self._symbols(name):
                users.setdefault(symbol, []).append(name)
        fertile = {name for name in self._terminals.values() if name} | set(self._raw.values())
        pending = list(self._rules)
        while pending:
            name = pending.pop()
            if name not in fertile and self._is_fertile(name, fertile):
                fertile.add(name)
                pending += users.get(name, [])
        return fertile

    def _symbols(self, name: str) -> Iterator[str]:
        if name in self._distinct:
            yield from self._distinct[name].symbols
        for alternative in self._rules[name]:
            for symbol in alternative:
                yield from symbol.symbols if isinstance(symbol, Repeat) else (symbol,)

    def _is_fertile(self, name: str, fertile: set[str]) -> bool:
        if name in self._distinct:
            lists = self._distinct[name]
            return sum(symbol in fertile for symbol in lists.symbols) >= lists.minimum
        return any(_holds(alternative, fertile) for alternative in self._rules[name])

    def _reachable(self, start: str, fertile: set[str]) -> list[str]:
        seen = {start: None}
        pending = [start]
        while pending:
            for symbol in self._symbols(pending.pop()):
                if symbol in self._rules and symbol in fertile and symbol not in seen:
                    seen[symbol] = None
                    pending.append(symbol)
        return list(seen)

    def _lines(self, name: str, fertile: set[str]) -> Iterator[str]:
        if name in self._distinct:
            yield from _distinct_lines(name, self._distinct[name], fertile)
            return
        kept = [alternative for alternative in self._rules[name] if _holds(alternative, fertile)]
        yield f"{name}: " + " | ".join(_spelled(alternative, fertile) for alternative in kept)


def _holds(alternative: Alternative, fertile: set[str]) -> bool:
    return all(_is_fertile(symbol, fertile) for symbol in alternative)


def _is_fertile(symbol: Symbol, fertile: set[str]) -> bool:
    if isinstance(symbol, Repeat):
        return symbol.minimum == 0 or fertile.issuperset(symbol.symbols)
    return symbol in fertile


def _spelled(alternative: Alternative, fertile: set[str]) -> str:
    spelled = " ".join(filter(None, (_spelled_symbol(symbol, fertile) for symbol in alternative)))
    return spelled or '""'


def _spelled_symbol(symbol: Symbol, fertile: set[str]) -> str:
    if isinstance(symbol, str):
        return symbol
    if symbol.maximum == 0 or not fertile.issuperset(symbol.symbols):
        return ""
    body = f"({' '.join(symbol.symbols)})"
    if symbol.maximum is None:
        return f"{body}*" if symbol.minimum == 0 else f"{body}{{{symbol.minimum},}}"
    return f"{body}{{{symbol.minimum},{symbol.maximum}}}"


def _distinct_lines(name: str, lists: Distinct, fertile: set[str]) -> Iterator[str]:
    """A bit of the rule's parameter for each symbol that has been used."""
    symbols = [symbol for symbol in lists.symbols if symbol in fertile]
    first = [f"{symbol} {name}_rest::{1 << bit:#x}" for bit, symbol in enumerate(symbols) if lists.maximum > 0]
    yield f"{name}: " + " | ".join([*(['""'] if lists.minimum == 0 else []), *first])
    yield f'{name}_rest::_: "" %if bit_count_ge(_, {lists.minimum})'
    for bit, symbol in enumerate(symbols):
        room = f"and(bit_clear({bit}), bit_count_lt(_, {lists.maximum}))"
        yield f"  | {lists.separator} {symbol} {name}_rest::set_bit({bit}) %if {room}"


def sequence_of(symbols: Sequence[str], separator: str) -> Alternative:
    """These symbols with separators between them."""
    return tuple(part for symbol in symbols for part in (separator, symbol))[1:]
