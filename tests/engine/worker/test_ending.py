"""How a child ended, for people and for metrics."""

import signal

import pytest

from octavo.engine.worker.ending import Ending


@pytest.mark.parametrize(
    ("returncode", "reason", "message"),
    [
        (0, "exit", "Its process ended (exit code 0)."),
        (70, "exit", "Its process ended (exit code 70)."),
        (-signal.SIGSEGV, "SIGSEGV", "Its process ended (SIGSEGV)."),
        (-signal.SIGKILL, "SIGKILL", "Its process ended (SIGKILL, as the system does when memory runs out)."),
        (-63, "signal 63", "Its process ended (signal 63)."),
    ],
)
def test_exit_codes_and_signals_are_named(returncode: int, reason: str, message: str) -> None:
    assert Ending.of(returncode) == Ending(reason, message, is_crash=True)
