"""/v1/adapters: list, load and delete."""

from fastapi import FastAPI
from starlette.requests import Request

from octavo.api.context import ApiContext
from octavo.api.openapi import BODY_ERRORS, documented, error_responses
from octavo.api.record import record_of
from octavo.api.routes.reading import read_request
from octavo.api.schemas.adapters import AdapterCard, AdapterDeletion, AdapterList, AdapterRequest
from octavo.service import AdapterOrder, ServedAdapter


def add_adapters(app: FastAPI, context: ApiContext) -> None:
    @app.get("/v1/adapters", summary="List the served adapters")
    async def list_adapters() -> AdapterList:
        return AdapterList(data=[_card(adapter) for adapter in context.models.adapters])

    @app.post(
        "/v1/adapters",
        summary="Load an adapter",
        responses=error_responses(400, 404, 503, *BODY_ERRORS),
        openapi_extra=documented(AdapterRequest),
    )
    async def create_adapter(request: Request) -> AdapterCard:
        wire = await read_request(request, AdapterRequest, context)
        base = context.models.model(wire.model)
        record_of(request).model = base.id
        scale = 1.0 if wire.scale is None else wire.scale
        return _card(await context.adapters.load(AdapterOrder(wire.id, base, wire.path, scale)))

    @app.delete(
        "/v1/adapters/{id:path}",
        summary="Delete an adapter, once its last request is over",
        responses=error_responses(404, 422),
    )
    async def delete_adapter(id: str) -> AdapterDeletion:
        await context.adapters.unload(id)
        return AdapterDeletion(id=id)


def _card(adapter: ServedAdapter) -> AdapterCard:
    return AdapterCard(
        id=adapter.id,
        model=adapter.base.id,
        scale=adapter.adapter.scale,
        created=adapter.created,
        num_running=adapter.num_running,
    )
