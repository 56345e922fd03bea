"""The octavo command as a real process."""

import os
import re
import signal
import subprocess
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

import httpx
import psutil

OCTAVO = str(Path(sysconfig.get_path("scripts"), "octavo"))
SECONDS = 60
"""Until a process that should have ended is a failure; nothing is measured with it."""
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
        env=clean_environment(**variables),
        input=prompt,
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )


class Server:
    """A running `octavo serve`. `log` is what it has said on stderr so far."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.log = ""
        self.url = ""

    def wait_for(self, text: str) -> Self:
        """Read its stderr until a line has `text`."""
        assert self._process.stderr is not None
        while True:
            line = self._process.stderr.readline()
            assert line, f"the server ended before it said {text!r}:\n{self.log}"
            self.log += line
            if found := LISTENS.search(line):
                self.url = found[1]
            if text in line:
                return self

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def children(self) -> list[psutil.Process]:
        return psutil.Process(self._process.pid).children(recursive=True)

    def wait(self) -> int:
        """Its exit code, when it has ended."""
        assert self._process.stderr is not None
        self.log += self._process.stderr.read()
        return self._process.wait(SECONDS)

    def kill(self) -> None:
        self._process.kill()

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=SECONDS, trust_env=False)


@contextmanager
def serving(*arguments: str, folder: Path, **variables: str) -> Iterator[Server]:
    """`octavo serve` with the scripted engine on a free port. What still runs at the end is killed."""
    command = (OCTAVO, "serve", "--engine", "scripted", "--port", "0", *arguments)
    environment = clean_environment(**variables)
    with subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True) as process:
        server = Server(process)
        try:
            yield server
        finally:
            left = server.children() if process.poll() is None else []
            for each in (process, *left):
                with suppress(psutil.NoSuchProcess):
                    each.kill()


def are_gone(processes: list[psutil.Process]) -> bool:
    return not psutil.wait_procs(processes, timeout=SECONDS)[1]
