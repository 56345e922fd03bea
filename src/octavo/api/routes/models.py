"""GET /v1/models and /v1/models/{id}."""

from fastapi import FastAPI

from octavo.api.context import ApiContext
from octavo.api.openapi import error_responses
from octavo.api.schemas.models import ModelCard, ModelList
from octavo.errors import EngineUnavailable
from octavo.service import ServedModel


def add_models(app: FastAPI, context: ApiContext) -> None:
    @app.get("/v1/models", summary="List the served models and adapters")
    async def list_models() -> ModelList:
        return ModelList(data=[_card(model) for model in (*context.models, *context.models.adapters)])

    @app.get(
        "/v1/models/{model:path}",
        summary="Describe a served model or adapter",
        responses=error_responses(404, 422, 503),
    )
    async def get_model(model: str) -> ModelCard:
        return _card(context.models.get(model))


def _card(model: ServedModel) -> ModelCard:
    parent = None if model.base is model else model.base.id
    return ModelCard(id=model.id, created=model.created, context_length=_context_length(model), parent=parent)


def _context_length(model: ServedModel) -> int | None:
    try:
        return model.info.context_length
    except EngineUnavailable:
        return None
