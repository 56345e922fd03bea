"""GET /health (the server lives) and /ready (it can serve)."""

from fastapi import FastAPI
from starlette.responses import Response

from octavo.api.context import ApiContext
from octavo.api.errors import error_response
from octavo.api.schemas.errors import HealthResponse, ModelState, NotReadyResponse, ReadyResponse
from octavo.errors import EngineUnavailable
from octavo.service import ServedModel
from octavo.store.prompt_log import PromptLog


def add_health(app: FastAPI, context: ApiContext) -> None:
    @app.head("/health", include_in_schema=False)
    @app.get("/health", summary="Whether the server lives")
    async def get_health() -> HealthResponse:
        return HealthResponse()

    @app.head("/ready", include_in_schema=False, response_model=None)
    @app.get(
        "/ready",
        summary="Whether every model can serve, with the adapters it was given",
        response_model=ReadyResponse,
        responses={503: {"model": NotReadyResponse}},
    )
    async def get_ready() -> ReadyResponse | Response:
        states = [_state(model) for model in context.models]
        waiting = [*(model.id for model in context.models if not model.is_ready), *context.models.awaited]
        return _not_ready(waiting, states) if waiting else _ready(states, context.prompt_log)


def _state(model: ServedModel) -> ModelState:
    health = model.engine.health()
    return ModelState(id=model.id, state=health.state, progress=health.progress, message=health.message)


def _ready(states: list[ModelState], log: PromptLog | None) -> ReadyResponse:
    if log is None or not log.status.is_degraded:
        return ReadyResponse(models=states)
    return ReadyResponse(status="degraded", prompt_log=log.status.message, models=states)


def _not_ready(waiting: list[str], states: list[ModelState]) -> Response:
    """The one error body, and beside it how far each model is."""
    error = EngineUnavailable(f"Not ready: {', '.join(waiting)}.")
    return error_response(error, models=[state.model_dump() for state in states])
