"""A PostgreSQL of our own, from Debian's package, for tests."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import asyncpg
import psutil
import pytest

from support.processes import POLL_INTERVAL, SECONDS

USER = "postgres"
WAL_SEGMENT_MB = 1
FOLDERS = "/usr/lib/postgresql/*/bin"


class Cluster:
    """Listens on a socket in its folder only, and keeps what it has promised like one in production."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self._programs = programs
        self._folder = folder
        self._as_user = as_other_user()
        self._num_databases = 0
        os.chown(folder, self._as_user.get("user", -1), self._as_user.get("group", -1))
        command = (
            programs / "initdb",
            "-D",
            folder / "data",
            "-U",
            USER,
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--locale=C.UTF-8",
        )
        options = (f"--wal-segsize={WAL_SEGMENT_MB}", "--no-sync")
        subprocess.run((*command, *options), check=True, capture_output=True, timeout=SECONDS, **self._as_user)

    def start(self) -> None:
        """Return when it answers."""
        settings = ("listen_addresses=", f"unix_socket_directories={self._folder}", "max_connections=60")
        arguments = [argument for setting in settings for argument in ("-c", setting)]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                (self._programs / "postgres", "-D", self._folder / "data", *arguments),
                stdout=log,
                stderr=log,
                cwd=self._folder,
                **self._as_user,
            )
        deadline = time.monotonic() + SECONDS
        while not self._is_ready():
            assert self._process.poll() is None, (self._folder / "log").read_text()
            assert time.monotonic() < deadline, "PostgreSQL does not start"
            time.sleep(POLL_INTERVAL)

    def stop(self) -> None:
        """At once, as by a power cut: what it does next is to recover."""
        self._process.send_signal(signal.SIGQUIT)
        try:
            self._process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def url(self, database: str) -> str:
        return f"postgresql://{USER}@/{database}?host={self._folder}"

    async def connect(self, database: str = USER) -> "asyncpg.Connection[Any]":
        return await asyncpg.connect(host=str(self._folder), user=USER, database=database)

    async def new_database(self) -> str:
        self._num_databases += 1
        name = f"test_{self._num_databases}"
        connection = await self.connect()
        await connection.execute(f"CREATE DATABASE {name}")
        await connection.close()
        return name

    def limit_files(self, size: str) -> None:
        """Files cannot grow beyond so many bytes, or `unlimited`, as if the disk were full."""
        main = psutil.Process(self._process.pid)
        for process in (main, *main.children()):
            command = ("prlimit", "--pid", str(process.pid), f"--fsize={size}:")
            subprocess.run(command, check=True, timeout=SECONDS, **self._as_user)

    def _is_ready(self) -> bool:
        command = (self._programs / "pg_isready", "-h", self._folder, "-q")
        return subprocess.run(command, timeout=SECONDS, check=False).returncode == 0


@contextmanager
def running_cluster() -> Iterator[Cluster]:
    """Skips the test where PostgreSQL is not installed."""
    found = sorted(Path("/").glob(f"{FOLDERS[1:]}/initdb"))
    if not found:
        pytest.skip("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    folder = Path(tempfile.mkdtemp(prefix="octavo-postgres-"))
    try:
        cluster = Cluster(found[-1].parent, folder)
        cluster.start()
        try:
            yield cluster
        finally:
            if cluster.is_running:
                cluster.stop()
    finally:
        shutil.rmtree(folder)


def as_other_user() -> Mapping[str, Any]:
    """PostgreSQL does not run as root. What subprocess takes for it."""
    if os.geteuid() != 0:
        return {}
    names = {entry.pw_name: entry for entry in pwd.getpwall()}
    entry = names.get(USER) or names["nobody"]
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": ()}
