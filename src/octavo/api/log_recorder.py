"""The row that a request with log_prompt leaves in the prompt log."""

import asyncio
import logging
import time
from contextlib import aclosing

import msgspec
from starlette.requests import Request

from octavo.api.assemble import AnswerAssembler
from octavo.api.context import ApiContext
from octavo.api.convert import prompt_texts
from octavo.api.errors import error_body, internal_error, kind_of
from octavo.api.record import CLIENT_CLOSED, record_of
from octavo.api.schemas.common import WireData
from octavo.api.schemas.generation import GenerationFields
from octavo.api.sse import TextEvents
from octavo.core.log_entry import LogEntry
from octavo.errors import OctavoError, PromptLogOff, PromptLogUnavailable
from octavo.service import GenerationJob
from octavo.store.prompt_log import PromptLog

_MAX_SECONDS = 30.0
"""In which a row must be on disk; a disk that takes longer is one that fails."""

_logger = logging.getLogger(__name__)


def kept_log(log: PromptLog | None) -> PromptLog:
    """The server's log. Raises PromptLogOff where it has none."""
    if log is None:
        raise PromptLogOff("This server has no prompt log; leave log_prompt out.", param="log_prompt")
    return log


def check_can_record(wire: GenerationFields, context: ApiContext) -> None:
    """Raises PromptLogOff and PromptLogUnavailable for a request that is to be logged and cannot be."""
    if not wire.log_prompt:
        return
    try:
        kept_log(context.prompt_log).check()
    except PromptLogUnavailable:
        context.metrics.count_log_row("refused")
        raise


class LogRecorder:
    """Watches a request's events; answer, an assembler of its own, makes of them what the row shows."""

    def __init__(
        self, request: Request, wire: GenerationFields, job: GenerationJob, answer: AnswerAssembler, context: ApiContext
    ) -> None:
        """Raises PromptLogOff."""
        self._log = kept_log(context.prompt_log)
        self._metrics = context.metrics
        self._request = request
        self._record = record_of(request)
        self._is_streamed = bool(wire.stream)
        self._job = job
        self._answer = answer
        self._has_begun = False

    async def recorded(self, events: TextEvents) -> TextEvents:
        """The same events. Whatever ends them, the row is on disk before they have ended.

        A job that is not admitted leaves none. Raises PromptLogUnavailable, after the last event, where the row cannot
        be stored, beside what the events raise.
        """
        try:
            async with aclosing(events):
                async for event in events:
                    self._has_begun = True
                    self._answer.push(event)
                    yield event
        except Exception as error:
            known = error if isinstance(error, OctavoError) else internal_error()
            await self._leave(kind_of(known).status, known)
            raise
        except BaseException:  # who reads reads no more
            await self._leave(self._record.status if self._record.status >= 400 else CLIENT_CLOSED, None)
            raise
        await _finished(asyncio.create_task(self._store(200, None)))

    async def _leave(self, status: int, error: OctavoError | None) -> None:
        """Store what there is of an answer that was broken off, by an error or by its client."""
        if self._job.progress.admitted is None:
            return
        try:
            await _finished(asyncio.create_task(self._store(status, error)))
        except Exception as fault:  # it is counted; the client is told what happened first, if there still is one
            _logger.warning("request %s is not in the prompt log: %s", self._record.id, type(fault).__name__)

    async def _store(self, status: int, error: OctavoError | None) -> None:
        seconds = self._record.seconds
        try:
            async with asyncio.timeout(_MAX_SECONDS):
                body = await self._request.body()
                await self._log.append(await asyncio.to_thread(self._entry, body, status, error, seconds))
        except TimeoutError as slow:
            self._metrics.count_log_row("lost")
            raise PromptLogUnavailable("The prompt log could not be written in time.") from slow
        except Exception:
            self._metrics.count_log_row("lost")
            raise
        self._metrics.count_log_row("logged")

    def _entry(self, body: bytes, status: int, error: OctavoError | None, seconds: float) -> LogEntry:
        answer, first_token = self._answer.flush(), self._job.progress.first_token
        usage = answer["usage"]
        return LogEntry(
            id=self._job.id,
            request_id=self._record.id,
            created=time.time() - self._record.seconds,
            key_id=self._job.caller.key_id,
            user=self._job.user or "",
            endpoint=self._request.scope["route"].path,
            model=self._job.model.id,
            status=status,
            request=body.decode(),
            prompts=prompt_texts(self._job),
            answer=msgspec.json.encode(self._told(answer, error)).decode(),
            finish_reasons=tuple(choice["finish_reason"] for choice in answer["choices"] if choice["finish_reason"]),
            prompt_tokens=usage["prompt_tokens"],
            completion_tokens=usage["completion_tokens"],
            cached_tokens=usage["prompt_tokens_details"]["cached_tokens"],
            seconds=seconds,
            seconds_to_first_token=None if first_token is None else first_token - self._record.arrival,
        )

    def _told(self, answer: WireData, error: OctavoError | None) -> WireData:
        """The answer as its client knows it, streamed or not."""
        if error is None:
            return answer
        body = error_body(error, self._record.id)
        return {**answer, "error": body["error"]} if self._is_streamed and self._has_begun else body


async def _finished(task: asyncio.Task[None]) -> None:
    """See the task to its end, also where whoever waits for it is cancelled. Raises what it raises."""
    try:
        await asyncio.wait({task})
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise
    task.result()
