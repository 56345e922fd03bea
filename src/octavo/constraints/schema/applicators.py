"""The keywords whose schemas are about the same value, as cases of values for which they hold or do not hold."""

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any, Protocol

from octavo.constraints.schema.constants import among, is_scalar, none_of
from octavo.constraints.schema.facts import NOTHING, Case, Members, Relation, Required, case

Cases = list[Case]
ALL: Cases = [Case()]
_OPPOSITE = {Relation.VALID: Relation.INVALID, Relation.INVALID: Relation.VALID}


class Place(Protocol):
    """A schema of the document, and what its subschemas come to."""

    @property
    def schema(self) -> Mapping[str, Any]: ...

    def child(self, *steps: str | int, relation: Relation) -> Cases: ...

    def target(self, keyword: str, relation: Relation) -> Cases: ...

    def product(self, parts: Sequence[Cases]) -> Cases:
        """What is in one case of each part."""


def _all_of(place: Place, wanted: Relation) -> Cases:
    parts = _children(place, "allOf", wanted)
    return place.product(parts) if wanted is Relation.VALID else _joined(parts)


def _any_of(place: Place, wanted: Relation) -> Cases:
    parts = _children(place, "anyOf", wanted)
    return _joined(parts) if wanted is Relation.VALID else place.product(parts)


def _one_of(place: Place, wanted: Relation) -> Cases:
    options = _children(place, "oneOf", Relation.VALID)
    return _exactly_one(place, options) if wanted is Relation.VALID else _none_or_two(place, options)


def _exactly_one(place: Place, options: list[Cases]) -> Cases:
    """Each option, without what another one that it overlaps with allows too."""
    rivals: list[list[int]] = [[] for _ in options]
    for left, right in combinations(range(len(options)), 2):
        if place.product([options[left], options[right]]):
            rivals[left].append(right)
            rivals[right].append(left)
    found: Cases = []
    for option, others in zip(options, rivals, strict=True):
        refused = [place.child("oneOf", at, relation=Relation.INVALID) for at in others]
        found += place.product([option, *refused])
    return found


def _none_or_two(place: Place, options: list[Cases]) -> Cases:
    none = place.product(_children(place, "oneOf", Relation.INVALID))
    return [*none, *(one for pair in combinations(options, 2) for one in place.product(pair))]


def _not(place: Place, wanted: Relation) -> Cases:
    return place.child("not", relation=_OPPOSITE[wanted])


def _if(place: Place, wanted: Relation) -> Cases:
    if place.schema.keys().isdisjoint(("then", "else")):
        return ALL if wanted is Relation.VALID else []
    found: Cases = []
    for branch, condition in (("then", Relation.VALID), ("else", Relation.INVALID)):
        holds = place.child("if", relation=condition)
        found += place.product([holds, _branch(place, branch, wanted)])
    return found


def _branch(place: Place, keyword: str, wanted: Relation) -> Cases:
    if keyword in place.schema:
        return place.child(keyword, relation=wanted)
    return ALL if wanted is Relation.VALID else []


def _ref(place: Place, wanted: Relation) -> Cases:
    return place.target("$ref", wanted)


def _dynamic_ref(place: Place, wanted: Relation) -> Cases:
    return place.target("$dynamicRef", wanted)


def _dependents(keyword: str) -> "Rule":
    def cases(place: Place, wanted: Relation) -> Cases:
        return _if_present(place, keyword, wanted)

    return cases


def _if_present(place: Place, keyword: str, wanted: Relation) -> Cases:
    """What must hold of an object that has a certain member."""
    parts = []
    for name, demand in place.schema[keyword].items():
        if isinstance(demand, list):
            demanded = _required(demand, wanted)
        else:
            demanded = place.child(keyword, name, relation=wanted)
        present = place.product([[case(Required(name), only=True)], demanded])
        absent = [case(Members(((name, NOTHING),), evaluates=False))] if wanted is Relation.VALID else []
        parts.append([*absent, *present])
    return place.product(parts) if wanted is Relation.VALID else _joined(parts)


def _required(names: list[str], wanted: Relation) -> Cases:
    if wanted is Relation.VALID:
        return [case(*map(Required, names))]
    return [case(Members(((name, NOTHING),), evaluates=False)) for name in names]


def _const(place: Place, wanted: Relation) -> Cases:
    relation = Relation.EQUAL if wanted is Relation.VALID else Relation.UNEQUAL
    return place.child("const", relation=relation)


def _enum(place: Place, wanted: Relation) -> Cases:
    values = place.schema["enum"]
    scalars = [value for value in values if is_scalar(value)]
    others = [index for index, value in enumerate(values) if not is_scalar(value)]
    if wanted is Relation.VALID:
        return [*among(scalars), *_joined([place.child("enum", at, relation=Relation.EQUAL) for at in others])]
    unequal = [place.child("enum", at, relation=Relation.UNEQUAL) for at in others]
    return place.product([[none_of(scalars)], *unequal])


def _children(place: Place, keyword: str, relation: Relation) -> list[Cases]:
    return [place.child(keyword, index, relation=relation) for index in range(len(place.schema[keyword]))]


def _joined(parts: Sequence[Cases]) -> Cases:
    return [one for part in parts for one in part]


Rule = Callable[[Place, Relation], Cases]
RULES: dict[str, Rule] = {
    "const": _const,
    "enum": _enum,
    "$ref": _ref,
    "$dynamicRef": _dynamic_ref,
    "allOf": _all_of,
    "anyOf": _any_of,
    "oneOf": _one_of,
    "not": _not,
    "if": _if,
    "dependentRequired": _dependents("dependentRequired"),
    "dependentSchemas": _dependents("dependentSchemas"),
    "dependencies": _dependents("dependencies"),
}
"""By keyword, in the order in which they are applied."""
