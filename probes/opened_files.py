"""Which files processes open, as the kernel is asked for them: by strace, which is attached to them for a while."""

import re
import shutil
import signal
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from support.processes import SECONDS, eventually

COMMAND = ("strace", "-ff", "-qq", "-y", "-e", "trace=open,openat,openat2")
ASKED = re.compile(r'^open\w*\((?:AT_FDCWD|\d+)?(?:<(.*?)>)?(?:, )?"((?:[^"\\]|\\.)*)"')
FOUND = re.compile(r" = \d+<(.*)>$")
"""With -y a descriptor is shown with its path, after all links."""


def no_strace() -> str:
    """Why processes that are no children of ours cannot be traced; "" where they can."""
    if shutil.which("strace") is None:
        return "it needs strace, which is not installed"
    with subprocess.Popen(("sleep", "60")) as sleeper, TemporaryDirectory(prefix="octavo-probe-") as folder:
        try:
            with opened_files([sleeper.pid], Path(folder)):
                return ""
        except (AssertionError, subprocess.TimeoutExpired):
            return "strace may not be attached to a process here"
        finally:
            sleeper.kill()


@dataclass(slots=True)
class OpenedFiles:
    """paths: every one that was opened, after all links; and every one that was asked for in vain, as it was given."""

    paths: set[str] = field(default_factory=set)


@contextmanager
def opened_files(pids: Iterable[int], folder: Path) -> Iterator[OpenedFiles]:
    """By these processes and their later children, during the block; known after it. folder: for the traces.

    Raises AssertionError where strace cannot be attached, and subprocess.TimeoutExpired where it does not let go.
    """
    pids, opened = list(pids), OpenedFiles()
    places = [part for pid in pids for part in ("-p", str(pid))]
    with subprocess.Popen((*COMMAND, "-o", str(folder / "trace"), *places), stderr=subprocess.DEVNULL) as tracer:
        try:
            eventually(lambda: tracer.poll() is not None or all(map(_is_traced, pids)))
            assert tracer.poll() is None, "strace could not be attached"
            yield opened
        finally:
            end_tracer(tracer)
    for trace in folder.glob("trace.*"):
        opened.paths |= {path for line in trace.read_text("utf-8", "replace").splitlines() if (path := path_in(line))}


def path_in(line: str) -> str:
    """The path of a trace's line; "" where it has none.

    openat(AT_FDCWD</srv>, "link", O_RDONLY) = 3</etc/passwd> is /etc/passwd,
    openat(AT_FDCWD</srv>, "x", O_RDONLY) = -1 ENOENT (No such file or directory) is /srv/x.
    """
    if found := FOUND.search(line):
        return found[1]
    asked = ASKED.match(line)
    return str(Path(asked[1] or "/", asked[2])) if asked else ""


def end_tracer(tracer: "subprocess.Popen[bytes]", seconds: float = SECONDS) -> None:
    """It lets go of the processes, and they go on. Raises subprocess.TimeoutExpired where it had to be killed."""
    tracer.send_signal(signal.SIGINT)
    try:
        tracer.wait(seconds)
    finally:
        tracer.kill()


def _is_traced(pid: int) -> bool:
    """In all of its threads."""
    return all("TracerPid:\t0\n" not in state_in(status) for status in Path(f"/proc/{pid}/task").glob("*/status"))


def state_in(status: Path) -> str:
    """Of a thread; "" where it has just ended."""
    try:
        return status.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
