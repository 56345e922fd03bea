"""GET /metrics, for Prometheus."""

import asyncio

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
            context.metrics.observe_deaths(model.id, health.deaths, num_quarantined=health.num_quarantined)
            context.metrics.observe_readiness(model.id, is_ready=model.is_ready)
            context.metrics.observe_cache(
                model.id,
                num_tokens=health.cache.num_tokens,
                max_tokens=health.cache.max_tokens,
                num_saved_prefixes=health.cache.num_saved_prefixes,
                num_saved_tokens=health.cache.num_saved_tokens,
            )
        if context.prompt_log is not None:
            status = context.prompt_log.status
            context.metrics.observe_prompt_log(
                {"stored": status.num_stored, "set_aside": status.num_set_aside, "deleted": status.num_deleted},
                num_waiting=status.num_waiting,
                waiting_bytes=status.waiting_bytes,
                is_degraded=status.is_degraded,
            )
            context.metrics.observe_set_aside(status.set_aside.num_files, status.set_aside.num_bytes)
        page = await asyncio.to_thread(context.metrics.render)  # it is long, and streams go on meanwhile
        return Response(page, headers={"content-type": Metrics.content_type})
