"""What a request keeps until it is over, its answer included."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

from starlette.requests import Request
from starlette.types import Scope

_SCOPE_KEY = "octavo.holds"


@contextmanager
def holds_of(scope: Scope) -> Iterator[None]:
    """The block in which the request of `scope` is answered; at its end all that was held for it is let go."""
    with ExitStack() as holds:
        scope[_SCOPE_KEY] = holds
        yield


def hold(request: Request, context: AbstractContextManager[object]) -> None:
    """Enter a context that ends when the request is over: answered, failed, or left by its client."""
    holds = request.scope[_SCOPE_KEY]
    assert isinstance(holds, ExitStack)
    holds.enter_context(context)
