"""When the server ends a job from its side."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from typing import Any

from octavo.core.output import TokenChunk
from octavo.errors import EngineError


class Deadline:
    """A moment from which on a job waits for nothing more. It comes when it is told to `expire`."""

    def __init__(self, *, has_passed: bool = False) -> None:
        self.has_passed = has_passed
        self._waiting: set[asyncio.Task[Any]] = set()

    def expire(self) -> None:
        self.has_passed = True
        # A chunk that has arrived is on its way to the task that waits for it, and may still get there.
        asyncio.get_running_loop().call_soon(self._interrupt)

    async def next_of(self, chunks: AsyncGenerator[TokenChunk, None]) -> TokenChunk | None:
        """The next chunk, or None once the deadline has passed; then `chunks` is no more to be read.

        Raises EngineError when there is no next one, and what `chunks` raises.
        """
        if self.has_passed:
            return None
        task = asyncio.current_task()
        assert task is not None
        self._waiting.add(task)
        try:
            return await anext(chunks)
        except StopAsyncIteration:
            raise EngineError("The engine ended an answer without saying why.") from None
        except asyncio.CancelledError:
            is_interrupted = task not in self._waiting
            if is_interrupted and task.uncancel() == 0:
                return None
            raise  # the client went away, be it at the same time
        finally:
            self._waiting.discard(task)

    def _interrupt(self) -> None:
        while self._waiting:
            self._waiting.pop().cancel()


class Deadlines:
    """The deadlines of all running jobs. timeout: seconds that each of them gets; None is any time."""

    def __init__(self, timeout: float | None) -> None:
        self._timeout = timeout
        self._running: set[Deadline] = set()
        self._is_over = False

    @contextmanager
    def deadline(self) -> Iterator[Deadline]:
        """The deadline of a job that runs as long as the block."""
        deadline = Deadline(has_passed=self._is_over)
        self._running.add(deadline)
        try:
            with _after(self._timeout, deadline):
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
