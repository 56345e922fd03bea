"""How long a grammar may take to be made."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import thread_time

from octavo.errors import UnsupportedGrammar

_end: ContextVar[float] = ContextVar("end", default=math.inf)


@contextmanager
def time_budget(seconds: float) -> Iterator[None]:
    """Within it, check_time fails once this thread has computed for so long. Waiting does not count: a busy machine is
    no fault of the client's."""
    token = _end.set(thread_time() + seconds)
    try:
        yield
        check_time()
    finally:
        _end.reset(token)


def check_time() -> None:
    """Raises UnsupportedGrammar where the budget is used up. To be called in every loop over what a client gave."""
    if thread_time() > _end.get():
        raise UnsupportedGrammar("It takes too long to compile.")
