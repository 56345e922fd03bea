"""GET /v1/logs and /v1/logs/{id}."""

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
from octavo.core.log_entry import LogEntry
from octavo.errors import LogEntryNotFound
from octavo.store.prompt_log import LogQuery, PromptLog

_PAGE = 10
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
        rows, has_more = await _rows(kept_log(context.prompt_log), wire)
        return _json({"object": "list", "data": [log_row(entry) for entry in rows], "has_more": has_more})

    @app.get(
        "/v1/logs/{id}",
        summary="Show a row of the prompt log",
        response_model=LogRow,
        responses=error_responses(400, 404, 422, 503),
    )
    async def get_log(id: str) -> Response:
        return _json(log_row(await kept_log(context.prompt_log).entry(id)))


async def _rows(log: PromptLog, wire: LogListRequest) -> tuple[list[LogEntry], bool]:
    """The rows that are asked for, or as many of them as one answer may hold; and whether there are more."""
    rows: list[LogEntry] = []
    num_bytes = 0
    while True:
        wanted = min(_PAGE, wire.limit - len(rows))
        try:
            page = await log.entries(_query(wire, wanted + 1, rows[-1].id if rows else wire.before))
        except LogEntryNotFound as error:
            if rows:  # the last of them has just been deleted, as all older ones had been
                return rows, False
            raise LogEntryNotFound(error.message, param="before") from error
        rows += page[:wanted]
        num_bytes += sum(len(entry.request) + len(entry.answer) + sum(map(len, entry.prompts)) for entry in page)
        has_more = len(page) > wanted
        if not has_more or len(rows) == wire.limit or num_bytes >= _MAX_BYTES:
            return rows, has_more


def _query(wire: LogListRequest, limit: int, before: str) -> LogQuery:
    return LogQuery(limit, before, wire.key, wire.user, wire.model, wire.since, wire.until)


def _json(data: WireData) -> Response:
    return Response(msgspec.json.encode(data), media_type="application/json")
