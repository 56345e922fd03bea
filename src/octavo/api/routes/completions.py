"""POST /v1/completions."""

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from octavo.api.assemble import CompletionShape
from octavo.api.context import ApiContext
from octavo.api.convert import check_limits, completion_job
from octavo.api.identity import caller_of
from octavo.api.log_recorder import reserve_room
from octavo.api.logprobs import completion_logprobs, no_logprobs
from octavo.api.openapi import documented, generation_responses
from octavo.api.routes.generation import answer, new_id
from octavo.api.routes.reading import read_request
from octavo.api.schemas.completions import CompletionRequest, CompletionResponse


def add_completions(app: FastAPI, context: ApiContext) -> None:
    @app.post(
        "/v1/completions",
        summary="Complete a text",
        responses=generation_responses(CompletionResponse, CompletionResponse),
        openapi_extra=documented(CompletionRequest),
    )
    async def create_completion(request: Request) -> Response:
        wire = await read_request(request, CompletionRequest, context)
        check_limits(wire, context.limits)
        room = await reserve_room(request, wire, context)
        shape = CompletionShape(completion_logprobs if wire.shows_logprobs else no_logprobs)
        model = context.models.get(wire.model, wire.peft)
        job = await completion_job(new_id(shape), wire, model, context.grammars, caller=caller_of(request))
        return await answer(request, wire, job, shape, room, context)
