"""How a child ended."""

import signal
from dataclasses import dataclass

EXIT = "exit"
SILENT = "silent"
HUNG_STEP = "hung_step"
LOAD_FAILED = "load_failed"
NOT_STARTED = "not_started"


@dataclass(frozen=True, slots=True)
class Ending:
    """reason: one of the words above or the name of a signal. message: the same for people.

    is_crash: whether the process ended without being told to.
    """

    reason: str
    message: str
    is_crash: bool = False

    @classmethod
    def of(cls, returncode: int) -> "Ending":
        """returncode: as `subprocess` has it."""
        if returncode >= 0:
            return cls(EXIT, f"Its process ended (exit code {returncode}).", is_crash=True)
        name = _name_of(-returncode)
        why = ", as the system does when memory runs out" if name == "SIGKILL" else ""
        return cls(name, f"Its process ended ({name}{why}).", is_crash=True)


def _name_of(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
