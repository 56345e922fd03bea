"""From a job to its stream of text."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from octavo.core.limits import Limits
from octavo.core.output import TextEvent
from octavo.core.request import Choice
from octavo.engine.base import Engine
from octavo.errors import EngineError
from octavo.service.admission import Admission, Ticket
from octavo.service.job import GenerationJob
from octavo.service.merge import merge
from octavo.service.meter import ChoiceMeter, JobMeter
from octavo.streaming import ChoiceStream
from octavo.telemetry.metrics import Metrics


class GenerationService:
    """Runs jobs: admission, one engine request for each choice, and their texts as one stream."""

    def __init__(self, metrics: Metrics, limits: Limits) -> None:
        self._metrics = metrics
        self._admission = Admission(limits)

    async def stream(self, job: GenerationJob) -> AsyncGenerator[TextEvent, None]:
        """Yield the events of all choices in order of arrival; each choice's last one has its finish reason.

        Closing the stream cancels the job: when `aclose` returns, every engine request of it is closed. The first
        error of a choice closes the others and is raised.
        Raises Overloaded before the first event, EngineUnavailable and EngineError at any time.
        """
        with self._admission.admit(job.model, len(job.choices)) as ticket:
            meter = JobMeter(self._metrics, job)
            choices = (_events(job.model.engine, choice, meter.choice(), ticket) for choice in job.choices)
            # No job fills more than the slots: the queue is for others, who get the slots that fall free in turn.
            async with aclosing(merge(choices, max_open=ticket.num_places)) as events:
                async for event in events:
                    yield event


async def _events(
    engine: Engine, choice: Choice, meter: ChoiceMeter, ticket: Ticket
) -> AsyncGenerator[TextEvent, None]:
    """The events of one choice. Its place in the engine is free before its last event is given out."""
    stream = ChoiceStream(choice.index, engine.tokenizer.vocabulary, choice.stop)
    try:
        async with aclosing(engine.generate(choice.request)) as chunks:
            async for chunk in chunks:
                meter.count(len(chunk.tokens))
                event = stream.push(chunk)
                if stream.is_finished:
                    break
                if event is not None:
                    yield event
            else:
                raise EngineError("The engine ended an answer without saying why.")
    finally:
        meter.end()
    ticket.leave()
    assert event is not None  # a choice that finishes says so
    yield event
