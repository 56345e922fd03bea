"""What both generation endpoints do with a job."""

import asyncio
import time
from contextlib import aclosing
from uuid import uuid4

from starlette.requests import Request
from starlette.responses import Response

from octavo.api.assemble import AnswerAssembler, AnswerHead, AnswerShape, ChunkAssembler
from octavo.api.context import ApiContext
from octavo.api.disconnect import until_disconnect
from octavo.api.log_recorder import LogRecorder
from octavo.api.record import RequestRecord, record_of
from octavo.api.schemas.generation import GenerationFields
from octavo.api.sse import StreamedAnswer, TextEvents
from octavo.api.usage import UsageCounter
from octavo.service import GenerationJob
from octavo.store.prompt_log import Reservation

_NOTED = (
    *("max_tokens", "temperature", "top_p", "top_k", "frequency_penalty", "presence_penalty"),
    *("seed", "n", "stream"),
)
"""Numbers and switches of a request by which an operator can tell why it took what it took."""

_MAX_AT_ONCE = 2**18
"""Bytes of an answer that is made on the event loop; a larger one is made beside it, and streams go on meanwhile."""


def new_id(shape: AnswerShape) -> str:
    return f"{shape.id_prefix}{uuid4().hex}"


async def answer(
    request: Request,
    wire: GenerationFields,
    job: GenerationJob,
    shape: AnswerShape,
    room: Reservation | None,
    context: ApiContext,
) -> Response:
    """Generate, and answer with events or with one body. room: in the prompt log, where the request is to be logged.

    Raises what GenerationService.stream raises.
    """
    record = record_of(request)
    _note(record, wire, job)
    head = AnswerHead(job.id, int(time.time()), wire.model, job.model.info.fingerprint)
    whole = AnswerAssembler(head, shape, _counter(job))
    events = context.service.stream(job, waited=record.seconds)
    if room is not None:
        events = LogRecorder(request, wire, job, whole, room, context).recorded(_pushed(events, whole))
    elif not wire.stream:
        events = _pushed(events, whole)
    if wire.stream:
        chunks = ChunkAssembler(head, shape, _counter(job), includes_usage=wire.includes_usage)
        return StreamedAnswer(events, chunks, record)
    body = await until_disconnect(request.receive, _folded(events, whole, record))
    return Response(body, media_type="application/json")


def _note(record: RequestRecord, wire: GenerationFields, job: GenerationJob) -> None:
    record.model, record.prompt_tokens = job.model.id, job.num_prompt_tokens
    record.user, record.requested_model, record.answer_id = job.user or "", wire.model, job.id
    record.parameters = {name: value for name in _NOTED if (value := getattr(wire, name)) is not None}
    record.progress = job.progress


def _counter(job: GenerationJob) -> UsageCounter:
    return UsageCounter(num_prompt_tokens=job.num_prompt_tokens, n=job.n)


async def _pushed(events: TextEvents, assembler: AnswerAssembler) -> TextEvents:
    """The same events, which the assembler sees first."""
    async with aclosing(events):
        async for event in events:
            assembler.push(event)
            yield event


async def _folded(events: TextEvents, assembler: AnswerAssembler, record: RequestRecord) -> bytes:
    async with aclosing(events):
        async for event in events:
            record.count(event)
    is_large = assembler.size > _MAX_AT_ONCE
    return (await asyncio.to_thread(assembler.flush) if is_large else assembler.flush()).body
