"""POST /v1/chat/completions."""

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from octavo.api.assemble import ChatShape
from octavo.api.calls import FunctionCallForm, ToolCallsForm
from octavo.api.context import ApiContext
from octavo.api.convert import chat_images, chat_job, check_limits
from octavo.api.holds import hold
from octavo.api.identity import caller_of
from octavo.api.log_recorder import reserve_room
from octavo.api.logprobs import chat_logprobs, no_logprobs
from octavo.api.openapi import documented, generation_responses
from octavo.api.routes.generation import answer, new_id
from octavo.api.routes.reading import read_request
from octavo.api.schemas.chat import ChatCompletionChunk, ChatCompletionRequest, ChatCompletionResponse
from octavo.service import GenerationJob, ServedModel


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
        room = await reserve_room(request, wire, context)
        shape = ChatShape(
            chat_logprobs if wire.shows_logprobs else no_logprobs,
            FunctionCallForm() if wire.has_older_form else ToolCallsForm(),
        )
        model = context.models.get(wire.model, wire.peft)
        job = await _job(request, new_id(shape), wire, model, context)
        return await answer(request, wire, job, shape, room, context)


async def _job(
    request: Request, id: str, wire: ChatCompletionRequest, model: ServedModel, context: ApiContext
) -> GenerationJob:
    """The engine holds the images from before it reads them until the answer is over, so that it is sent them once."""
    links = chat_images(wire, model)
    caller = caller_of(request)
    if not links:
        return await chat_job(id, wire, model, context.grammars, caller=caller)
    async with context.service.preparing(model, (caller.key_id, wire.user or "")):
        images = await context.images.images(links, model=model.base.id)
        different = {image.digest: image for image in images.values()}
        hold(request, model.engine.hold_images(list(different.values())))
        return await chat_job(id, wire, model, context.grammars, caller=caller, images=images)
