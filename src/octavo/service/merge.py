"""Several streams of events as one."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import aclosing

from octavo.core.output import TextEvent
from octavo.errors import EngineUnavailable

_EventStream = AsyncGenerator[TextEvent, None]
_EventQueue = asyncio.Queue["TextEvent | asyncio.Task[None]"]


async def merge(streams: Iterable[_EventStream], *, max_open: int) -> _EventStream:
    """Yield the events of all streams in order of arrival, and raise the first error of any.

    At most `max_open` streams are open at a time; each is taken from the iterable when its turn comes. Whichever way it
    ends (exhausted, an error, closed, cancelled), every stream has been closed by then. A consumer that does not read
    stops the streams: as many events as streams are open may wait, and one in each stream's hand.
    """
    queue: _EventQueue = asyncio.Queue()
    places = asyncio.Semaphore(max_open)
    remaining = iter(streams)
    tasks = [asyncio.create_task(_feed(remaining, queue, places)) for _ in range(max_open)]
    for task in tasks:
        # A finished task is an end mark. It takes no place, so an end never waits for the consumer.
        task.add_done_callback(queue.put_nowait)
    try:
        num_open = len(tasks)
        while num_open:
            item = await queue.get()
            if isinstance(item, TextEvent):
                places.release()
                yield item
            else:
                _raise_error(item)
                num_open -= 1
    finally:
        await _cancel(tasks)


async def _feed(streams: Iterator[_EventStream], queue: _EventQueue, places: asyncio.Semaphore) -> None:
    for stream in streams:
        async with aclosing(stream):
            async for event in stream:
                await places.acquire()
                queue.put_nowait(event)


def _raise_error(task: asyncio.Task[None]) -> None:
    if task.cancelled():  # by the engine: we cancel only when nobody reads the marks any more
        raise EngineUnavailable("The engine ended this request before it was complete.")
    task.result()


async def _cancel(tasks: Sequence[asyncio.Task[None]]) -> None:
    """Cancel the tasks and see each to its end, even when the caller is cancelled again meanwhile: a stream that is
    left half closed would keep its slot."""
    for task in tasks:
        task.cancel()
    interruption: asyncio.CancelledError | None = None
    while pending := [task for task in tasks if not task.done()]:
        try:
            await asyncio.wait(pending)
        except asyncio.CancelledError as error:
            interruption = error
    for task in tasks:
        if not task.cancelled():
            task.exception()  # seen; the first one has been raised
    if interruption is not None:
        raise interruption
