"""When the server ends a job from its side."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from octavo.core.output import TokenChunk
from octavo.errors import EngineError

_Chunks = AsyncGenerator[TokenChunk, None]


class Deadline:
    """A moment from which on a job waits for nothing more. It comes when it is told to `expire`.

    on_expiry: called then.
    """

    def __init__(self, *, has_passed: bool = False, on_expiry: Callable[[], None] = lambda: None) -> None:
        self.has_passed = has_passed
        self._on_expiry = on_expiry
        self._waiting: dict[_Chunks, asyncio.Task[Any]] = {}
        self._open: set[_Chunks] = set()
        self._closings: dict[_Chunks, asyncio.Task[None]] = {}

    def expire(self) -> None:
        self.has_passed = True
        self._on_expiry()
        # A chunk that has arrived is on its way to the task that waits for it, and may still get there.
        asyncio.get_running_loop().call_soon(self._interrupt)

    @asynccontextmanager
    async def closing(self, chunks: _Chunks) -> AsyncIterator[None]:
        """Closes `chunks` at the end of the block, or when the deadline passes while nobody reads them."""
        self._open.add(chunks)
        try:
            yield
        finally:
            self._open.discard(chunks)
            if chunks in self._closings:
                await self._closings.pop(chunks)
            else:
                await chunks.aclose()

    async def next_of(self, chunks: _Chunks) -> TokenChunk | None:
        """The next chunk, or None once the deadline has passed; then `chunks` is no more to be read.

        Raises EngineError when there is no next one, and what `chunks` raises.
        """
        if self.has_passed:
            return None
        task = asyncio.current_task()
        assert task is not None
        self._waiting[chunks] = task
        try:
            return await anext(chunks)
        except StopAsyncIteration:
            raise EngineError("The engine ended an answer without saying why.") from None
        except asyncio.CancelledError:
            is_interrupted = chunks not in self._waiting
            if is_interrupted and task.uncancel() == 0:
                return None
            raise  # the client went away, be it at the same time
        finally:
            self._waiting.pop(chunks, None)

    def _interrupt(self) -> None:
        """Readers close what they read; where nobody reads, perhaps nobody ever will."""
        unread = self._open - self._waiting.keys()
        self._open -= unread
        for chunks in unread:
            self._closings[chunks] = asyncio.create_task(chunks.aclose())
        while self._waiting:
            self._waiting.popitem()[1].cancel()


class Deadlines:
    """The deadlines of all running jobs. timeout: seconds that each of them gets; None is any time."""

    def __init__(self, timeout: float | None) -> None:
        self._timeout = timeout
        self._running: set[Deadline] = set()
        self._is_over = False

    @contextmanager
    def deadline(self, *, waited: float = 0.0, on_expiry: Callable[[], None] = lambda: None) -> Iterator[Deadline]:
        """The deadline of a job that runs as long as the block. waited: seconds of its time that are over already."""
        deadline = Deadline(has_passed=self._is_over, on_expiry=on_expiry)
        self._running.add(deadline)
        try:
            with _after(None if self._timeout is None else self._timeout - waited, deadline):
                yield deadline
        finally:
            self._running.discard(deadline)

    def expire_all(self) -> None:
        """End what runs, and what will be begun."""
        self._is_over = True
        for deadline in self._running:
            deadline.expire()


@contextmanager
def _after(timeout: float | None, deadline: Deadline) -> Iterator[None]:
    if timeout is None:
        yield
        return
    timer = asyncio.get_running_loop().call_later(timeout, deadline.expire)
    try:
        yield
    finally:
        timer.cancel()
