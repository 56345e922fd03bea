"""GET /v1/logs and /v1/logs/{id}."""

import asyncio
from collections.abc import Callable

import msgspec
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from octavo.api.context import ApiContext
from octavo.api.log_recorder import kept_log
from octavo.api.log_rows import log_row
from octavo.api.openapi import documented_query, error_responses
from octavo.api.schemas.common import WireData
from octavo.api.schemas.logs import LogList, LogListRequest, LogRow
from octavo.api.validate import read_wire
from octavo.errors import LogEntryNotFound
from octavo.store.prompt_log import LogPage, LogQuery, PromptLog

_MAX_BYTES = 32 * 2**20
"""Of one answer. A row may be larger than a request's body; a list of a thousand such rows would fill the memory."""


def add_logs(app: FastAPI, context: ApiContext) -> None:
    @app.get(
        "/v1/logs",
        summary="List the rows of the prompt log",
        response_model=LogList,
        responses=error_responses(400, 404, 422, 503),
        openapi_extra=documented_query(LogListRequest),
    )
    async def list_logs(request: Request) -> Response:
        wire = read_wire(LogListRequest, dict(request.query_params), place="query")
        page = await _page(kept_log(context.prompt_log), wire)
        return await _json(lambda: _list(page))

    @app.get(
        "/v1/logs/{id}",
        summary="Show a row of the prompt log",
        response_model=LogRow,
        responses=error_responses(400, 404, 422, 503),
    )
    async def get_log(id: str) -> Response:
        entry = await kept_log(context.prompt_log).entry(id)
        return await _json(lambda: log_row(entry))


async def _page(log: PromptLog, wire: LogListRequest) -> LogPage:
    """The rows that are asked for, or as many of them as one answer may hold."""
    query = LogQuery(wire.limit, wire.before, wire.key, wire.user, wire.model, wire.since, wire.until)
    try:
        return await log.page(query, _MAX_BYTES)
    except LogEntryNotFound as error:
        raise LogEntryNotFound(error.message, param="before") from error


def _list(page: LogPage) -> WireData:
    return {"object": "list", "data": [log_row(entry) for entry in page.entries], "has_more": page.has_more}


async def _json(data: Callable[[], WireData]) -> Response:
    """In a thread: rows may be large, and streams go on meanwhile."""
    body = await asyncio.to_thread(lambda: msgspec.json.encode(data()))
    return Response(body, media_type="application/json")
