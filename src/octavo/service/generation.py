"""From a job to its stream of text."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, aclosing, asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial

from octavo.core.fair_queue import Owner
from octavo.core.limits import Limits
from octavo.core.output import FinishReason, TextEvent
from octavo.core.request import Choice
from octavo.engine.base import Engine
from octavo.errors import ImageUrlRefused
from octavo.service.admission import Admission, Ticket
from octavo.service.best_of import best_of_each_prompt
from octavo.service.deadline import Deadline, Deadlines
from octavo.service.job import GenerationJob
from octavo.service.merge import merge
from octavo.service.meter import JobMeter
from octavo.service.models import ServedModel
from octavo.service.rate_limits import RateLimiter
from octavo.streaming import ChoiceStream, ContentFilter
from octavo.telemetry.metrics import Metrics


class GenerationService:
    """Runs jobs: admission, one engine request for each candidate, and the texts of the best ones as one stream.

    content_filter: ends the answers in which it finds something.
    request_timeout: seconds from a request's arrival after which its choices are ended; None is never.
    limiter: told of the tokens that callers use, prompts at their admission and others as they come.
    """

    def __init__(
        self,
        metrics: Metrics,
        limits: Limits,
        *,
        content_filter: ContentFilter | None = None,
        request_timeout: float | None = None,
        limiter: RateLimiter | None = None,
    ) -> None:
        self._metrics = metrics
        self._admission = Admission(limits)
        self._content_filter = content_filter
        self._request_timeout = request_timeout
        self._deadlines = Deadlines(request_timeout)
        self._limiter = limiter or RateLimiter(metrics)

    def stream(self, job: GenerationJob, *, waited: float = 0.0) -> AsyncGenerator[TextEvent, None]:
        """Yield the events of all choices in order of arrival; each choice's last one has its finish reason.

        Where more candidates are generated than choices are asked for, the choices of a prompt come once all its
        candidates have ended, best first.
        When the job's time is over, its places in the engine are free at once, also where nobody reads the stream.
        waited: seconds since the request arrived.
        Closing the stream cancels the job: when `aclose` returns, every engine request of it is closed. The first
        error of a choice closes the others and is raised.
        The engine must hold the images that the prompts show until the stream is closed: see `Engine.hold_images`.
        Raises Overloaded, RateLimited, and AdapterNotFound for an adapter that is just deleted, before the first event;
        EngineUnavailable and EngineError at any time.
        """
        if len(job.choices) == 1:  # it needs no task of its own
            return _events(job.choices[0], self._admitted(job, waited))
        candidates = self._merged_candidates(job, waited)
        if job.best_of == job.n:
            return candidates
        return best_of_each_prompt(candidates, n=job.n, best_of=job.best_of)

    @asynccontextmanager
    async def preparing(self, model: ServedModel, owner: Owner) -> AsyncIterator[None]:
        """The block in which the images of a request are got, which takes memory before there is a job.

        Raises Overloaded and EngineUnavailable before it begins, ImageUrlRefused where it takes all the request's time.
        """
        with self._admission.preparing(model, owner):
            try:
                async with asyncio.timeout(self._request_timeout) as timer:
                    yield
            except TimeoutError:
                if not timer.expired():
                    raise
                message = f"The images were not there within the {self._request_timeout:g} seconds that a request gets."
                raise ImageUrlRefused(message, param="messages") from None

    def cancel_all(self) -> None:
        """End every choice that runs, waits or is asked for from now on with its text so far, as cancelled."""
        self._deadlines.expire_all()

    async def _merged_candidates(self, job: GenerationJob, waited: float) -> AsyncGenerator[TextEvent, None]:
        with self._admitted(job, waited) as admitted:
            streams = (_events(choice, nullcontext(admitted)) for choice in job.choices)
            # No job fills more than the slots: the queue is for others, who get the slots that fall free in turn.
            async with aclosing(merge(streams, max_open=admitted.ticket.num_places)) as events:
                async for event in events:
                    yield event

    @contextmanager
    def _admitted(self, job: GenerationJob, waited: float) -> "Iterator[_AdmittedJob]":
        with job.model.in_use(), self._admission.admit(job.model, job.owner, len(job.choices)) as ticket:
            self._limiter.prompt(job.caller, job.num_prompt_tokens)
            charge = partial(self._limiter.charge, job.caller)
            with (
                self._deadlines.deadline(waited=waited, on_expiry=ticket.leave_all) as deadline,
                JobMeter(self._metrics, job) as meter,
            ):
                yield _AdmittedJob(job.model.engine, self._content_filter, meter, ticket, deadline, charge)


@dataclass(frozen=True, slots=True)
class _AdmittedJob:
    engine: Engine
    content_filter: ContentFilter | None
    meter: JobMeter
    ticket: Ticket
    deadline: Deadline
    charge: Callable[[int], None]


async def _events(choice: Choice, admission: AbstractContextManager[_AdmittedJob]) -> AsyncGenerator[TextEvent, None]:
    """The events of one choice. Its place in the engine is free before its last event is given out."""
    with admission as job:
        stream = ChoiceStream(choice, job.engine.tokenizer.vocabulary, job.content_filter)
        event: TextEvent | None = None
        with job.meter.choice(choice) as meter:
            chunks = job.engine.generate(choice.request)
            async with job.deadline.closing(chunks):
                while not stream.is_finished:
                    if event is not None:
                        yield event
                    chunk = await job.deadline.next_of(chunks)
                    if chunk is None:
                        event = stream.end(FinishReason.CANCELLED)
                    else:
                        meter.count(chunk)
                        job.charge(len(chunk.tokens))
                        event = stream.push(chunk)
            assert event is not None  # a choice that finishes says so
            assert event.finish_reason is not None
            meter.finish_reason = event.finish_reason
        job.ticket.leave()
        yield event
