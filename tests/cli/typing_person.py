"""A person at a terminal, who runs the octavo command."""

import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.processes import OCTAVO, SECONDS, clean_environment

CTRL_C, CTRL_D = "\x03", "\x04"
OWNING_TERMINAL = (
    *(sys.executable, "-c"),
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])",
)
"""Runs what follows with standard input as the terminal whose Ctrl-C is its signal."""


class TypingPerson:
    def __init__(self, terminal: int, process: subprocess.Popen[bytes]) -> None:
        self._terminal = terminal
        self._process = process
        self._unread = b""

    def press(self, keys: str) -> None:
        os.write(self._terminal, os.fsencode(keys))

    def enter(self, line: str) -> None:
        self.press(f"{line}\n")

    def wait_for(self, text: str) -> str:
        """Look until the terminal shows `text`; returns what it has shown since the last time, up to that."""
        deadline = time.monotonic() + SECONDS
        while text.encode() not in self._unread:
            assert self._look(deadline), f"the terminal does not show {text!r}, but {self._unread!r}"
        before, _, self._unread = self._unread.partition(text.encode())
        return before.decode(errors="replace").replace("\r\n", "\n") + text

    def wait_until_it_ends(self) -> int:
        """Its exit code."""
        while self._look(time.monotonic() + SECONDS):
            pass
        return self._process.wait(SECONDS)

    def _look(self, deadline: float) -> bool:
        """False where nothing more will come, or has come in time."""
        ready, _, _ = select.select([self._terminal], [], [], max(0, deadline - time.monotonic()))
        try:
            data = os.read(self._terminal, 65536) if ready else b""
        except OSError:  # Linux's way to say that nobody has the terminal any more
            data = b""
        self._unread += data
        return bool(data)


@contextmanager
def typing_person(*arguments: str, folder: Path, stdout: int | None = None, **variables: str) -> Iterator[TypingPerson]:
    """Runs the command until the end of the `with`. stdout: a file for it in place of the terminal."""
    terminal, its_end = os.openpty()
    try:
        with subprocess.Popen(
            (*OWNING_TERMINAL, OCTAVO, *arguments),
            cwd=folder,
            env=clean_environment(TERM="dumb", **variables),
            stdin=its_end,
            stdout=its_end if stdout is None else stdout,
            stderr=its_end,
            start_new_session=True,
        ) as process:
            os.close(its_end)
            try:
                yield TypingPerson(terminal, process)
            finally:
                process.kill()
    finally:
        os.close(terminal)
