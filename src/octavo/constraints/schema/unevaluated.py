"""`unevaluatedProperties` and `unevaluatedItems`, of what a case is known to have evaluated."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from octavo.constraints.schema.facts import ANYTHING, Case, Goal, Items, Members, case, of_type
from octavo.constraints.schema.paths import Path


def with_unevaluated(path: Path, schema: Mapping[str, Any], one: Case) -> Case:
    """Such a case. A value's members and items that no fact speaks of must be valid under these keywords."""
    if "unevaluatedProperties" in schema:
        one &= _members(one, Goal((*path, "unevaluatedProperties")))
    if "unevaluatedItems" in schema:
        one &= _items(one, Goal((*path, "unevaluatedItems")))
    return one


def without_annotations(one: Case) -> Case:
    """The same values, of which nothing counts as evaluated."""
    facts = (
        replace(fact, evaluates=False) if isinstance(fact, Members | Items) else fact  # the others never do
        for fact in one.facts
    )
    return Case(one.kinds, tuple(facts))


def _members(one: Case, goal: Goal) -> Case:
    known = [members for members in of_type(one.facts, Members) if members.evaluates]
    if any(members.is_complete for members in known):
        return case()
    named = dict.fromkeys(name for members in known for name, _ in members.named)
    matching = dict.fromkeys(pattern for members in known for pattern, _ in members.matching)
    return case(
        Members(
            tuple((name, ANYTHING) for name in named),
            tuple((pattern, ANYTHING) for pattern in matching),
            (goal,),
            is_complete=True,
        )
    )


def _items(one: Case, goal: Goal) -> Case:
    known = [items for items in of_type(one.facts, Items) if items.evaluates]
    if any(items.is_complete for items in known):
        return case()
    count = max((len(items.first) for items in known), default=0)
    return case(Items((ANYTHING,) * count, (goal,), is_complete=True))
