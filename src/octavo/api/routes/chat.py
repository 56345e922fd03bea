"""POST /v1/chat/completions."""

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from octavo.api.assemble import ChatShape
from octavo.api.calls import FunctionCallForm, ToolCallsForm
from octavo.api.context import ApiContext
from octavo.api.convert import chat_job, check_limits
from octavo.api.logprobs import chat_logprobs, no_logprobs
from octavo.api.openapi import documented, generation_responses
from octavo.api.routes.generation import answer, new_id
from octavo.api.routes.reading import read_request
from octavo.api.schemas.chat import ChatCompletionChunk, ChatCompletionRequest, ChatCompletionResponse


def add_chat(app: FastAPI, context: ApiContext) -> None:
    @app.post(
        "/v1/chat/completions",
        summary="Answer a conversation",
        responses=generation_responses(ChatCompletionResponse, ChatCompletionChunk),
        openapi_extra=documented(ChatCompletionRequest),
    )
    async def create_chat_completion(request: Request) -> Response:
        wire = await read_request(request, ChatCompletionRequest, context)
        check_limits(wire, context.limits)
        shape = ChatShape(
            chat_logprobs if wire.shows_logprobs else no_logprobs,
            FunctionCallForm() if wire.has_older_form else ToolCallsForm(),
        )
        model = context.models.get(wire.model, wire.peft)
        job = await chat_job(new_id(shape), wire, model, context.grammars, context.images)
        return await answer(request, wire, job, shape, context)
