"""Where the user's files are."""

import os
from pathlib import Path


def state_folder() -> Path:
    """For what Octavo writes and keeps: $XDG_STATE_HOME/octavo, else ~/.local/state/octavo. It may not be there yet."""
    state = Path(os.environ.get("XDG_STATE_HOME", ""))
    return (state if state.is_absolute() else Path.home() / ".local" / "state") / "octavo"
