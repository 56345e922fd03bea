"""Where a request goes."""

from starlette.types import Scope

LIVENESS = "/health"
"""Asked by what starts and ends servers, which has no key and knows no name; it tells nothing else."""


def path_of(scope: Scope) -> str:
    """Below the place where the application is mounted."""
    return str(scope["path"]).removeprefix(scope.get("root_path", ""))
