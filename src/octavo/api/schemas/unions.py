"""Unions whose members are told apart by what a value looks like."""

from collections.abc import Callable
from typing import Any

from pydantic import Discriminator, Tag

_MARK = "|"
"""No field's name begins with it: so in a fault's path, where pydantic puts both, members are told from fields."""


def member(kind: str) -> Tag:
    """Makes a type the union's member for values of a kind."""
    return Tag(_MARK + kind)


def told_by(kind_of: Callable[[Any], str | None], *, error_type: str, message: str) -> Discriminator:
    """Makes a union of members. kind_of: the kind of a value, None where it can be of no member.

    error_type, message: of the error that a value gets which is of no member's kind.
    """

    def tag_of(value: Any) -> str | None:
        kind = kind_of(value)
        return None if kind is None else _MARK + kind

    return Discriminator(tag_of, custom_error_type=error_type, custom_error_message=message)


def type_of(value: Any) -> str | None:
    """The kind of an object that names its own."""
    kind = value.get("type") if isinstance(value, dict) else None
    return kind if isinstance(kind, str) else None


def is_member(step: str | int) -> bool:
    """Whether a step of a fault's path is a member, which the client's JSON does not show."""
    return isinstance(step, str) and step.startswith(_MARK)
