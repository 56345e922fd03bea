"""Work that the end of the process does not wait for."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


async def in_daemon_thread(work: Callable[[], T]) -> T:
    """What `work` returns or raises, from a thread of its own; those of the loop's executor are waited for at its end.

    Who is cancelled meanwhile goes on at once, and the work goes on without them.
    """
    done: Future[T] = Future()
    done.set_running_or_notify_cancel()  # so that nobody cancels it while the thread runs
    threading.Thread(target=_settle, args=(done, work), daemon=True).start()
    return await asyncio.wrap_future(done)


def _settle(done: Future[T], work: Callable[[], T]) -> None:
    try:
        result = work()
    except BaseException as error:
        done.set_exception(error)
    else:
        done.set_result(result)
