"""Processes that must not outlive the one that started them."""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1
ORPHAN_EXIT = 1


def end_with_parent(parent: int | None = None) -> None:
    """Linux ends this process with its parent from now on, even while it is stopped; elsewhere nothing is changed.

    More precisely with the parent's thread that started it. parent: its process id, where nothing else would tell that
    it was gone before this call; then this process ends at once.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if parent is not None and os.getppid() != parent:
        os._exit(ORPHAN_EXIT)
