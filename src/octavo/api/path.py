"""Where a request goes."""

from collections.abc import Sequence

from starlette.routing import BaseRoute, Match
from starlette.types import Scope

LIVENESS = "/health"
"""Asked by what starts and ends servers, which has no key and knows no name; it tells nothing else."""


def path_of(scope: Scope) -> str:
    """Below the place where the application is mounted."""
    return str(scope["path"]).removeprefix(scope.get("root_path", ""))


def route_of(scope: Scope) -> BaseRoute | None:
    """The route that a request is for, also where it never got there; None where nothing is served.

    As the router chooses it: the first that takes the method, or else the first at the path.
    """
    routed: BaseRoute | None = scope.get("route")
    if routed is not None:
        return routed
    at_path = None
    routes: Sequence[BaseRoute] = getattr(scope.get("app"), "routes", ())
    for route in routes:
        match, _ = route.matches(scope)
        if match is Match.FULL:
            return route
        if match is Match.PARTIAL and at_path is None:
            at_path = route
    return at_path
