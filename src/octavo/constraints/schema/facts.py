"""What a value must be, in parts of which each speaks of one kind of value."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from typing import Any, TypeVar

from octavo.constraints.schema.paths import Path, spelled_path
from octavo.constraints.schema.patterns import Pattern
from octavo.constraints.schema.values import KINDS


class Relation(Enum):
    """Of a value to what stands at a place of the document: a schema, or for the last two, a constant."""

    VALID = 0
    INVALID = 1
    EQUAL = 2
    UNEQUAL = 3
    NEVER = 4


@dataclass(frozen=True, slots=True)
class Goal:
    path: Path
    relation: Relation = Relation.VALID


Goals = tuple[Goal, ...]
"""What holds together of one value. Of none, anything holds. Equal ones are in the same order."""

ANYTHING: Goals = ()
NOTHING: Goals = (Goal((), Relation.NEVER),)


def together(parts: Iterable[Goals]) -> Goals:
    goals = {goal for part in parts for goal in part}
    if len(goals) < 2:
        return tuple(goals)
    if NOTHING[0] in goals:
        return NOTHING
    return tuple(sorted(goals, key=lambda goal: (spelled_path(goal.path), goal.relation.value)))


@dataclass(frozen=True, slots=True)
class Among:
    """Of scalars. keys: what `key_of` says of the values."""

    kind: str
    values: tuple[Any, ...]
    keys: frozenset[Any]


@dataclass(frozen=True, slots=True)
class Except:
    kind: str
    keys: frozenset[Any]


@dataclass(frozen=True, slots=True)
class Whole:
    """Whether a number has no fraction."""

    holds: bool = True
    kind: str = "number"


@dataclass(frozen=True, slots=True)
class Bound:
    """A number's least value, or its greatest one."""

    value: Decimal
    is_lower: bool
    is_exclusive: bool
    kind: str = "number"


@dataclass(frozen=True, slots=True)
class Multiple:
    of: Decimal
    kind: str = "number"


@dataclass(frozen=True, slots=True)
class Size:
    """How many code points, items or members; maximum None means any number."""

    kind: str
    minimum: int
    maximum: int | None


@dataclass(frozen=True, slots=True)
class Matching:
    pattern: Pattern
    holds: bool = True
    kind: str = "string"


@dataclass(frozen=True, slots=True)
class Items:
    """evaluates: whether `unevaluatedItems` beside it knows the first ones, and all where is_complete."""

    first: tuple[Goals, ...]
    others: Goals
    evaluates: bool = True
    is_complete: bool = False
    kind: str = "array"


@dataclass(frozen=True, slots=True)
class Contains:
    """How many items are valid under a schema."""

    goal: Goal
    minimum: int
    maximum: int | None
    kind: str = "array"


@dataclass(frozen=True, slots=True)
class Unique:
    kind: str = "array"


@dataclass(frozen=True, slots=True)
class Members:
    """additional: of those that neither `named` nor `matching` speaks of."""

    named: tuple[tuple[str, Goals], ...] = ()
    matching: tuple[tuple[Pattern, Goals], ...] = ()
    additional: Goals = ANYTHING
    evaluates: bool = True
    is_complete: bool = False
    kind: str = "object"
    _by_name: Mapping[str, Goals] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_name", dict(self.named))

    def of(self, name: str) -> Goals:
        """Where dialects disagree whether a pattern matches the name, what holds in either case."""
        found = [self._by_name[name]] if name in self._by_name else []
        found += [goals for pattern, goals in self.matching if pattern.matches(name)]
        is_known = bool(found)
        found += [goals for pattern, goals in self.matching if pattern.may_match(name)]
        return together(found if is_known else [*found, self.additional])


@dataclass(frozen=True, slots=True)
class Required:
    name: str
    kind: str = "object"


@dataclass(frozen=True, slots=True)
class Names:
    """What every member's name is."""

    goals: Goals
    kind: str = "object"


Fact = (
    Among | Except | Whole | Bound | Multiple | Size | Matching | Items | Contains | Unique | Members | Required | Names
)
_F = TypeVar("_F")


def of_type(facts: Iterable[Fact], type_: type[_F]) -> list[_F]:
    return [fact for fact in facts if isinstance(fact, type_)]


def size_of(facts: Iterable[Fact]) -> tuple[int, int | None]:
    """The bounds of all `Size`s together."""
    sizes = of_type(facts, Size)
    maxima = [size.maximum for size in sizes if size.maximum is not None]
    return max((size.minimum for size in sizes), default=0), min(maxima, default=None)


@dataclass(frozen=True, slots=True)
class Case:
    """Values of some kinds for which all facts of their kind hold."""

    kinds: frozenset[str] = frozenset(KINDS)
    facts: tuple[Fact, ...] = ()

    def of_kind(self, kind: str) -> tuple[Fact, ...]:
        return tuple(fact for fact in self.facts if fact.kind == kind)

    def __and__(self, other: "Case") -> "Case":
        kinds = self.kinds & other.kinds
        facts = dict.fromkeys(fact for fact in (*self.facts, *other.facts) if fact.kind in kinds)
        return Case(kinds, tuple(facts))


def case(*facts: Fact, only: bool = False) -> Case:
    """only: values of other kinds are excluded."""
    return Case(frozenset(fact.kind for fact in facts), facts) if only else Case(facts=facts)
