"""GET /metrics, for Prometheus."""

from fastapi import FastAPI
from starlette.responses import PlainTextResponse, Response

from octavo.api.context import ApiContext
from octavo.telemetry.metrics import Metrics


def add_metrics(app: FastAPI, context: ApiContext) -> None:
    @app.get("/metrics", summary="Numbers for Prometheus", response_class=PlainTextResponse)
    async def get_metrics() -> Response:
        for model in context.models:
            health = model.engine.health()
            num_adapters = sum(adapter.base is model for adapter in context.models.adapters)
            context.metrics.observe_adapters(model.id, num_adapters)
            context.metrics.observe_engine(
                model.id,
                num_running=health.num_running,
                num_waiting=health.num_waiting,
                batch_size=health.batch_size,
                num_restarts=health.num_restarts,
            )
        return Response(context.metrics.render(), headers={"content-type": Metrics.content_type})
