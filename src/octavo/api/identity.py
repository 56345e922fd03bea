"""Who sent a request."""

from starlette.requests import Request
from starlette.types import Scope

from octavo.core.caller import ANYONE, Caller

_SCOPE_KEY = "octavo.caller"


def set_caller(scope: Scope, caller: Caller) -> None:
    """Of the request of `scope`, as its key tells."""
    scope[_SCOPE_KEY] = caller


def caller_of(request: Request) -> Caller:
    caller = request.scope.get(_SCOPE_KEY, ANYONE)
    assert isinstance(caller, Caller)
    return caller
