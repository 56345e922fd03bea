"""Clients that go away."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect
from starlette.types import Receive

T = TypeVar("T")


async def until_disconnect(receive: Receive, work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, which is cancelled and seen to its end when the client goes away before it is done.

    The request's body must have been received. Raises ClientDisconnect.
    """
    task = asyncio.create_task(work)
    watcher = asyncio.create_task(_disconnected(receive))
    try:
        await asyncio.wait((task, watcher), return_when=asyncio.FIRST_COMPLETED)
    finally:
        is_done = task.done()
        task.cancel()
        watcher.cancel()
        await asyncio.wait((task, watcher))
        for ended in (task, watcher):
            if not ended.cancelled():
                ended.exception()  # seen; the work's own is raised below where somebody still wants to know
    if not is_done:
        raise ClientDisconnect
    return task.result()


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
