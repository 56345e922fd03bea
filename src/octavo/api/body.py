"""A body's bytes to JSON data, strictly: RFC 8259, bounded structure, numbers that exist, strings that are Unicode."""

import json
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

from starlette.requests import Request

from octavo.api.json_structure import at_most, structures
from octavo.api.shown import shown_name
from octavo.errors import InvalidRequest

_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPED_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")

JsonObject = dict[str, Any]


async def read_json(request: Request, *, max_depth: int, max_items: int) -> JsonObject:
    """The object in a request's body. Raises InvalidRequest, with the field's name where a field is at fault."""
    return parse_json(await request.body(), max_depth=max_depth, max_items=max_items)


def parse_json(body: bytes, *, max_depth: int, max_items: int) -> JsonObject:
    """The object that `body` is the JSON text of. Raises InvalidRequest.

    max_items: lists, objects and their members together. They, not bytes, take the time in which nobody else is served:
    a body of 8 MiB of text is read in some milliseconds, one of 8 MiB of brackets in more than a second.
    """
    if not body.strip():
        raise InvalidRequest("The body is empty; it must be a JSON object.")
    _check_structure(body, max_depth, max_items)
    data = _decode(body)
    _check_text(body, data)
    return data


def _check_structure(body: bytes, max_depth: int, max_items: int) -> None:
    most = at_most(body)
    if most.depth <= max_depth and most.num_items <= max_items:
        return
    for structure in structures(body):
        if structure.depth > max_depth:
            raise InvalidRequest(f"The body is nested too deeply; at most {max_depth} levels are read.")
        if structure.num_items > max_items:
            raise InvalidRequest(f"The body has too many lists, objects and members; at most {max_items} are read.")


def _decode(body: bytes) -> JsonObject:
    numbers = _Numbers()
    try:
        data = json.loads(body.decode(), parse_float=numbers.real, parse_constant=numbers.real)
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"The body is not UTF-8 (byte {error.start}).") from error
    except json.JSONDecodeError as error:
        raise InvalidRequest(f"The body is not JSON: {error.msg} (character {error.pos}).") from error
    except ValueError:  # an integer with more digits than Python converts; as infinity it has a field to name
        data = json.loads(body.decode(), parse_float=numbers.real, parse_constant=numbers.real, parse_int=numbers.real)
    if not isinstance(data, dict):
        raise InvalidRequest("The body must be a JSON object.")
    if not numbers.are_finite:
        raise _fault(data, _is_infinite, "Input should be a finite number")
    return data


class _Numbers:
    """Notes what json.loads lets pass: NaN, Infinity and numbers beyond the range of a float."""

    def __init__(self) -> None:
        self.are_finite = True

    def real(self, text: str) -> float:
        value = float(text)
        self.are_finite = self.are_finite and math.isfinite(value)
        return value


def _check_text(body: bytes, data: JsonObject) -> None:
    """json.loads lets half surrogate pairs pass, which only an escape can make."""
    if _ESCAPED_SURROGATE.search(body) is None:
        return
    try:
        json.dumps(data, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise _fault(data, _is_broken, "Input should be Unicode text, without lone surrogates") from error


def _fault(data: JsonObject, is_fault: Callable[[Any], bool], message: str) -> InvalidRequest:
    """The error that names the field in which the fault is; none where the fault is in a field's own name."""
    for field, value in data.items():
        if not is_fault(field) and any(map(is_fault, _leaves(value))):
            name = shown_name(field)
            return InvalidRequest(f"{name}: {message}.", param=name)
    return InvalidRequest(f"{message}.")


def _is_infinite(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _is_broken(value: Any) -> bool:
    return isinstance(value, str) and _SURROGATE.search(value) is not None


def _leaves(value: Any) -> Iterator[Any]:
    pending = [value]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            pending.extend(part)
            pending.extend(part.values())
        elif isinstance(part, list):
            pending.extend(part)
        else:
            yield part
