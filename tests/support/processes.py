"""The octavo command as a real process."""

import os
import queue
import re
import signal
import subprocess
import sysconfig
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

import httpx
import psutil

OCTAVO = str(Path(sysconfig.get_path("scripts"), "octavo"))
SECONDS = 60.0
"""Until a process that should have ended is a failure; nothing is measured with it."""
POLL_INTERVAL = 0.01
LISTENS = re.compile(r"listens on (http://\S+)")


def clean_environment(**variables: str) -> dict[str, str]:
    """Without OCTAVO_… of whoever runs the tests."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OCTAVO_")}
    return kept | {"COLUMNS": "200"} | variables


def run_octavo(
    *arguments: str, folder: Path, prompt: bytes = b"", **variables: str
) -> subprocess.CompletedProcess[bytes]:
    """Run a command to its end."""
    return subprocess.run(
        (OCTAVO, *arguments),
        cwd=folder,
        env=clean_environment(XDG_STATE_HOME=str(folder), **variables),
        input=prompt,
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )


class Server:
    """A running `octavo serve`. `log` is what has been read of its stderr."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        # Somebody has to read all the time: a server whose pipe is full stands still.
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.log = ""
        self.url = ""

    def wait_for(self, text: str) -> Self:
        """Read its stderr until a line has `text`."""
        while line := self._lines.get(timeout=SECONDS):
            self.log += line
            if found := LISTENS.search(line):
                self.url = found[1]
            if text in line:
                return self
        raise AssertionError(f"the server ended before it said {text!r}:\n{self.log}")

    def wait_ready(self) -> Self:
        """Wait until it can serve."""
        self.wait_for("listens on")
        with self.client() as client:
            eventually(lambda: client.get("/ready").status_code == 200)
        return self

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def children(self) -> list[psutil.Process]:
        found: list[psutil.Process] = psutil.Process(self.pid).children(recursive=True)
        return found

    def wait(self) -> int:
        """Its exit code, when it has ended."""
        code = self._process.wait(SECONDS)
        self._reader.join(SECONDS)
        while not self._lines.empty():
            self.log += self._lines.get()
        return code

    def kill(self) -> None:
        self._process.kill()

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=SECONDS, trust_env=False)

    def _read(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._lines.put(line)
        self._lines.put("")


@contextmanager
def serving(*arguments: str, folder: Path, engine: str = "scripted", **variables: str) -> Iterator[Server]:
    """`octavo serve` on a free port. What still runs at the end is killed."""
    command = (OCTAVO, "serve", "--engine", engine, "--port", "0", *arguments)
    environment = clean_environment(XDG_STATE_HOME=str(folder), **variables)
    with subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True) as process:
        server = Server(process)
        try:
            yield server
        finally:
            left = server.children() if server.is_running else []
            for each in (process, *left):
                with suppress(psutil.NoSuchProcess):
                    each.kill()
            server.wait()


def eventually(holds: Callable[[], bool], seconds: float = SECONDS) -> float:
    """Ask until it holds, and return after how many seconds; another process cannot be waited for in a better way."""
    start = time.monotonic()
    while not holds():
        assert time.monotonic() - start < seconds, f"{holds} did not hold within {seconds} s"
        time.sleep(POLL_INTERVAL)
    return time.monotonic() - start


def are_gone(processes: list[psutil.Process]) -> bool:
    return not psutil.wait_procs(processes, timeout=SECONDS)[1]
