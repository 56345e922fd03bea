"""A body's bytes to JSON data, strictly: RFC 8259, bounded structure, numbers that exist, strings that are Unicode."""

import asyncio
import json
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from octavo.api.json_structure import PIECE, at_most, structures
from octavo.api.shown import shown_name
from octavo.errors import InvalidRequest

_SURROGATE = re.compile("[\ud800-\udfff]")

_read = msgspec.json.Decoder().decode

JsonObject = dict[str, Any]


async def check_structure(body: bytes, *, max_depth: int, max_items: int) -> None:
    """Raises InvalidRequest for a body in which is too much. Others are served while a large one is looked through.

    max_items: lists, objects and their members together. They, not bytes, take the time in which nobody else is served:
    a body of 8 MiB of text is read in some milliseconds, one of 8 MiB of brackets in more than a second.
    """
    depth = num_items = 0
    for start in range(0, len(body), PIECE):
        if start > 0:
            await asyncio.sleep(0)
        most = at_most(body[start : start + PIECE])
        depth, num_items = depth + most.depth, num_items + most.num_items
    if depth <= max_depth and num_items <= max_items:
        return
    for structure in structures(body):
        if structure.depth > max_depth:
            raise InvalidRequest(f"The body is nested too deeply; at most {max_depth} levels are read.")
        if structure.num_items > max_items:
            raise InvalidRequest(f"The body has too many lists, objects and members; at most {max_items} are read.")
        if len(body) > PIECE:
            await asyncio.sleep(0)


def read_object(body: bytes) -> JsonObject:
    """The object that `body` is the JSON text of. Raises InvalidRequest, which names the field that is at fault."""
    if not body or body.isspace():
        raise InvalidRequest("The body is empty; it must be a JSON object.")
    try:
        return _object(_read(body))
    except msgspec.MsgspecError:
        return _read_with_reasons(body)


def _object(data: Any) -> JsonObject:
    if not isinstance(data, dict):
        raise InvalidRequest("The body must be a JSON object.")
    return data


def _read_with_reasons(body: bytes) -> JsonObject:
    """As `_read`, slowly: where that finds a fault, this names the place in characters, or the field."""
    numbers = _Numbers()
    try:
        data = _object(json.loads(body.decode(), parse_float=numbers.real, parse_constant=numbers.real))
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"The body is not UTF-8 (byte {error.start}).") from error
    except json.JSONDecodeError as error:
        raise InvalidRequest(f"The body is not JSON: {error.msg} (character {error.pos}).") from error
    except ValueError:  # an integer with more digits than Python converts; as infinity it has a field to name
        real = numbers.real
        data = _object(json.loads(body.decode(), parse_float=real, parse_constant=real, parse_int=real))
    if not numbers.are_finite:
        raise _fault(data, _is_infinite, "Input should be a finite number")
    if any(map(_is_broken, _leaves(data))):  # json.loads lets half surrogate pairs pass
        raise _fault(data, _is_broken, "Input should be Unicode text, without lone surrogates")
    return data


class _Numbers:
    """Notes what json.loads lets pass: NaN, Infinity and numbers beyond the range of a float."""

    def __init__(self) -> None:
        self.are_finite = True

    def real(self, text: str) -> float:
        value = float(text)
        self.are_finite = self.are_finite and math.isfinite(value)
        return value


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
