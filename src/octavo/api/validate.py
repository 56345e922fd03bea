"""JSON data to a wire request, and what is done about fields that no schema knows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from octavo.api.body import JsonObject
from octavo.api.errors import InvalidFields, Problem
from octavo.api.schemas.common import WireRequest
from octavo.api.schemas.unions import is_member
from octavo.api.shown import shown, shown_name
from octavo.errors import UnknownField

_MAX_PROBLEMS = 20
_MAX_MESSAGE = 200
_MAX_UNKNOWN = 500
"""More than the header that names them has room for, whatever they are."""
_PLAIN = frozenset({type(None), bool, int, float, str, tuple})
"""Of values without fields: most are of these, and asking what is a model takes long."""
_MESSAGES = {
    "missing": "This field is required",
    "model_attributes_type": "Input should be an object",
    "model_type": "Input should be an object",
    "too_short": "Input should have at least 1 item",
}
"""Where the validator's own words speak of Python or repeat too much of the input."""

Wire = TypeVar("Wire", bound=WireRequest)


def read_wire(schema: type[Wire], data: JsonObject, *, place: str = "body") -> Wire:
    """The request that `data` describes. place: where that was found, as errors name it. Raises InvalidFields."""
    try:
        return schema.model_validate(data)
    except ValidationError as error:
        raise _invalid_fields(place, error.errors(include_url=False, include_context=False)) from error


def unknown_fields(wire: WireRequest, *, is_strict: bool) -> tuple[str, ...]:
    """Names of the given fields that no document names, each once, _MAX_UNKNOWN at most.

    Raises UnknownField for the first if strict.
    """
    names: dict[str, None] = {}
    for extra in _extras(wire):
        if is_strict:
            message = f"{extra.shown}: this field is not known, and this server is strict."
            raise UnknownField(message, param=extra.param)
        names[extra.shown] = None
        if len(names) == _MAX_UNKNOWN:
            break
    return tuple(names)


@dataclass(frozen=True, slots=True)
class _Extra:
    """A field that its schema does not declare. path: names of the fields that it is inside of."""

    path: tuple[str, ...]
    name: str

    @property
    def shown(self) -> str:
        return ".".join((*self.path, shown_name(self.name)))

    @property
    def param(self) -> str:
        return self.path[0] if self.path else shown_name(self.name)


def _extras(wire: BaseModel, path: tuple[str, ...] = ()) -> Iterator[_Extra]:
    """At any depth. null is as good as absent."""
    for name, value in (wire.model_extra or {}).items():
        if value is not None:
            yield _Extra(path, name)
    for name, value in vars(wire).items():  # of those that it does declare
        for part in value if isinstance(value, list) else (value,):
            if type(part) not in _PLAIN and isinstance(part, BaseModel):
                yield from _extras(part, (*path, name))


def _invalid_fields(place: str, errors: Sequence[ErrorDetails]) -> InvalidFields:
    problems = tuple(_problem(place, error) for error in errors[:_MAX_PROBLEMS])
    first = problems[0]
    others = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    param = first.loc[1] if len(first.loc) > 1 else None
    name = ".".join(map(str, first.loc[1:]))
    message = f"{name}: {first.msg}{others}" if name else f"{first.msg}{others}"
    return InvalidFields(message, param=None if param is None else str(param), problems=problems)


def _problem(place: str, error: ErrorDetails) -> Problem:
    path = (step for step in error["loc"] if not is_member(step))
    loc = tuple(shown_name(step) if isinstance(step, str) else step for step in path)
    message = _MESSAGES.get(error["type"], error["msg"][:_MAX_MESSAGE])
    given = "" if error["type"] == "missing" else f" (given {shown(error['input'])})"
    return Problem((place, *loc), message + given, error["type"])
