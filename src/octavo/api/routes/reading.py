"""The first steps of every request with a body: parse, validate, remember what is ignored."""

from typing import TypeVar

from starlette.requests import Request

from octavo.api.body import read_json
from octavo.api.context import ApiContext
from octavo.api.record import record_of
from octavo.api.schemas.common import WireRequest
from octavo.api.validate import read_wire, unknown_fields

Wire = TypeVar("Wire", bound=WireRequest)


async def read_request(request: Request, schema: type[Wire], context: ApiContext) -> Wire:
    """The request's body as `schema`. Raises InvalidRequest, BodyTooLarge and ClientDisconnect."""
    limits = context.limits
    data = await read_json(request, max_depth=limits.max_json_depth, max_items=limits.max_json_items)
    wire = read_wire(schema, data)
    record_of(request).ignored_fields = unknown_fields(wire, is_strict=context.is_strict)
    return wire
