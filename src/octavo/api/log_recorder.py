"""The row that a request with log_prompt leaves in the prompt log."""

import asyncio
import logging
import time
from contextlib import aclosing

import msgspec
from starlette.requests import Request

from octavo.api.assemble import CHOICE_SIZE, AnswerAssembler, WholeAnswer
from octavo.api.context import ApiContext
from octavo.api.convert import prompt_texts
from octavo.api.errors import error_body, internal_error, kind_of
from octavo.api.holds import hold
from octavo.api.record import CLIENT_CLOSED, record_of
from octavo.api.schemas.generation import GenerationFields
from octavo.api.sse import TextEvents
from octavo.core.log_entry import LogEntry
from octavo.errors import LogEntryTooLarge, OctavoError, PromptLogOff, PromptLogUnavailable
from octavo.service import GenerationJob
from octavo.store.prompt_log import PromptLog, Reservation

_MAX_SECONDS = 30.0
"""In which a row must be on disk; a disk that takes longer is one that fails."""

_SHORT_ANSWER = 2048
"""Bytes of a row with what stands beside the texts."""

_PROMPT_TOKEN = 4
"""Bytes of a prompt's text for each token, about."""

_logger = logging.getLogger(__name__)


def kept_log(log: PromptLog | None) -> PromptLog:
    """The server's log. Raises PromptLogOff where it has none."""
    if log is None:
        raise PromptLogOff("This server has no prompt log; leave log_prompt out.", param="log_prompt")
    return log


async def reserve_room(request: Request, wire: GenerationFields, context: ApiContext) -> Reservation | None:
    """Room in the log for the row of a request that is to be logged, until the request is over; None for others.

    Raises PromptLogOff, PromptLogUnavailable and LogEntryTooLarge.
    """
    if not wire.log_prompt:
        return None
    log = kept_log(context.prompt_log)
    try:
        room = _reserve(log, len(await request.body()))
    except (PromptLogUnavailable, LogEntryTooLarge):
        context.metrics.count_log_row("refused")
        raise
    hold(request, room)
    return room


def _reserve(log: PromptLog, body_size: int) -> Reservation:
    """As much as the row of a short answer has: the body, and about as much again as the prompts."""
    _check_size(body_size, log)
    return log.reserve(min(2 * body_size + _SHORT_ANSWER, log.max_row))


def _check_size(size: int, log: PromptLog) -> None:
    if size > log.max_row:
        message = (
            f"With log_prompt, a request and its answer may have {log.max_row} bytes: ask for less, or without it."
        )
        raise LogEntryTooLarge(message, param="log_prompt")


class LogRecorder:
    """Watches a request's events, of which `answer` makes what the row shows. room: for the row."""

    def __init__(
        self,
        request: Request,
        wire: GenerationFields,
        job: GenerationJob,
        answer: AnswerAssembler,
        room: Reservation,
        context: ApiContext,
    ) -> None:
        """Raises PromptLogOff."""
        self._log = kept_log(context.prompt_log)
        self._metrics = context.metrics
        self._request = request
        self._record = record_of(request)
        self._is_streamed = bool(wire.stream)
        self._job = job
        self._answer = answer
        self._room = room
        self._has_begun = False

    async def recorded(self, events: TextEvents) -> TextEvents:
        """The same events. Whatever ends them, the row is on disk before they have ended.

        A job that is not admitted leaves none. Raises, beside what the events raise, PromptLogUnavailable where the row
        cannot be stored, after the last event, and LogEntryTooLarge as soon as there is more than a row may be.
        """
        try:
            size = len(await self._request.body()) + self._size_beside()
            _check_size(size + CHOICE_SIZE * len(self._job.choices), self._log)  # before anything is computed
            async with aclosing(events):
                async for event in events:
                    _check_size(size + self._answer.size, self._log)
                    self._has_begun = True
                    yield event
        except Exception as error:
            known = error if isinstance(error, OctavoError) else internal_error()
            await self._leave(kind_of(known).status, known)
            raise
        except BaseException:  # who reads reads no more
            await self._leave(self._record.status if self._record.status >= 400 else CLIENT_CLOSED, None)
            raise
        await _finished(asyncio.create_task(self._store(200, None)))

    def _size_beside(self) -> int:
        """About what a row has beside the request's body and the texts of its answer."""
        return _SHORT_ANSWER + _PROMPT_TOKEN * self._job.num_prompt_tokens

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
                entry = await asyncio.to_thread(self._entry, body, status, error, seconds)
                await self._log.append(entry, self._room)
        except TimeoutError as slow:
            self._metrics.count_log_row("lost")
            raise PromptLogUnavailable("The prompt log could not be written in time.") from slow
        except Exception:
            self._metrics.count_log_row("lost")
            raise
        self._metrics.count_log_row("logged")

    def _entry(self, body: bytes, status: int, error: OctavoError | None, seconds: float) -> LogEntry:
        answer, first_token = self._answer.flush(), self._job.progress.first_token
        prompts, told = prompt_texts(self._job), self._told(answer, error)
        _check_size(len(body) + len(told) + sum(map(len, prompts)), self._log)
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
            prompts=prompts,
            answer=told.decode(),
            finish_reasons=answer.finish_reasons,
            prompt_tokens=answer.usage["prompt_tokens"],
            completion_tokens=answer.usage["completion_tokens"],
            cached_tokens=answer.usage["prompt_tokens_details"]["cached_tokens"],
            seconds=seconds,
            seconds_to_first_token=None if first_token is None else first_token - self._record.arrival,
        )

    def _told(self, answer: WholeAnswer, error: OctavoError | None) -> bytes:
        """The answer as its client knows it, streamed or not."""
        if error is None:
            return answer.body
        body = error_body(error, self._record.id)
        is_beside = self._is_streamed and self._has_begun
        return answer.with_error(body["error"]) if is_beside else msgspec.json.encode(body)


async def _finished(task: asyncio.Task[None]) -> None:
    """See the task to its end, also where whoever waits for it is cancelled. Raises what it raises."""
    try:
        await asyncio.wait({task})
    except asyncio.CancelledError:
        await asyncio.wait({task})
        if not task.cancelled():
            task.exception()  # seen: it is counted, and nobody is there who could be told
        raise
    task.result()
