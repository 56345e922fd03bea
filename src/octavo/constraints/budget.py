"""How long a grammar may take to be made."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from time import thread_time

from octavo.errors import UnsupportedGrammar


@dataclass(frozen=True, slots=True)
class _Budget:
    seconds: float
    end: float


_UNLIMITED = _Budget(math.inf, math.inf)
_budget: ContextVar[_Budget] = ContextVar("budget", default=_UNLIMITED)


@contextmanager
def time_budget(seconds: float) -> Iterator[None]:
    """Within it, check_time fails once this thread has computed for so long. Waiting does not count: a busy machine is
    no fault of the client's."""
    token = _budget.set(_Budget(seconds, thread_time() + seconds))
    try:
        yield
        check_time()
    finally:
        _budget.reset(token)


def check_time() -> None:
    """Raises UnsupportedGrammar where the budget is used up. To be called in every loop over what a client gave."""
    budget = _budget.get()
    if thread_time() > budget.end:
        raise UnsupportedGrammar(f"It takes more than {budget.seconds:g} s to compile.")
