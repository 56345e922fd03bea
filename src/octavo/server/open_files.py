"""How many files and connections the process may have open."""

import logging
import resource

RESERVE = 256
"""Beside the connections: the engine's, fetched images, the prompt log, and whatever a library opens."""

_logger = logging.getLogger(__name__)


def allow_open_files(num_connections: int) -> int:
    """Raise the process' own limit to what so many connections need. Returns how many there may be, which are fewer,
    with a warning, where the system does not let it."""
    needed = num_connections + RESERVE
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return num_connections
    allowed = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    if allowed == needed:
        return num_connections
    possible = max(allowed - RESERVE, allowed // 2)
    _logger.warning(
        "The system lets this process open %d files, and %d connections need %d: there will be %d at most.",
        *(allowed, num_connections, needed, possible),
    )
    return possible
