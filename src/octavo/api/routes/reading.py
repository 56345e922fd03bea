"""The first steps of every request with a body: parse, validate, remember what is ignored."""

import asyncio
from typing import TypeVar

from starlette.requests import Request

from octavo.api.body import check_structure, read_object
from octavo.api.context import ApiContext
from octavo.api.record import record_of
from octavo.api.schemas.common import WireRequest
from octavo.api.validate import read_wire, unknown_fields

_SHORT = 64 * 2**10
"""Bytes of a body that is read in no more than some milliseconds, whatever is in it; a thread would wait longer where
the processors are busy."""

Wire = TypeVar("Wire", bound=WireRequest)


async def read_request(request: Request, schema: type[Wire], context: ApiContext) -> Wire:
    """The request's body as `schema`. Raises InvalidRequest, BodyTooLarge and ClientDisconnect."""
    limits = context.limits
    body = await request.body()
    await check_structure(body, max_depth=limits.max_json_depth, max_items=limits.max_json_items)

    def read() -> tuple[Wire, tuple[str, ...]]:
        wire = read_wire(schema, read_object(body))
        return wire, unknown_fields(wire, is_strict=context.is_strict)

    if len(body) <= _SHORT:
        wire, ignored = read()
    else:
        wire, ignored = await asyncio.get_running_loop().run_in_executor(context.body_thread, read)
    record_of(request).ignored_fields = ignored
    return wire
