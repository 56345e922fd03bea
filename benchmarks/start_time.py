"""How long `octavo serve` takes from its command to the first request that it can take, and where the time goes.

    python -m benchmarks.start_time --starts 5

Every start is a new process. The moments are those of its own debug log (JSON lines with times), the parts of loading
are what it says of its engine, and the processor time is the system's count for the server and its engine together.
The first start after an installation also compiles and reads files; the median leaves it out. Nothing else may run.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import IO, Any

MOMENTS = {
    "the engine is started": "command line, settings; the engine's process begins",
    "the application is built": "imports and application, meanwhile",
    "listening": "HTTP answers",
    "serving": "ready",
}
"""Log messages, in their order, and what has happened until then."""
LOADED = "loaded in"


@dataclass(frozen=True, slots=True)
class Start:
    """moments: seconds since the command, by log message. processor: seconds of the server and its engine together."""

    moments: dict[str, float]
    processor: float
    loading: str


def start_once(arguments: list[str]) -> Start:
    """Start a server, wait until it serves, and stop it. Raises SystemExit with its log where it does not serve."""
    before = _processor_time()
    began = time.time()
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            _command(arguments), stdout=subprocess.DEVNULL, stderr=log, cwd=tempfile.gettempdir()
        )
        try:
            records = _wait_until_served(process, log)
        finally:
            process.terminate()
            process.wait()
    moments = {record["message"]: datetime.fromisoformat(record["time"]).timestamp() - began for record in records}
    loading = next((str(record[LOADED]) for record in records if LOADED in record), "")
    return Start(moments, _processor_time() - before, loading)


def _command(arguments: list[str]) -> list[str]:
    program = Path(sys.executable).with_name("octavo")
    return [str(program), "serve", "--port", "0", "--log-json", "--log-level", "debug", *arguments]


def _wait_until_served(process: subprocess.Popen[bytes], log: IO[str]) -> list[dict[str, Any]]:
    while process.poll() is None:
        records = list(_records(log))
        if any(record["message"] == "serving" for record in records):
            return records
        time.sleep(0.02)
    log.seek(0)
    raise SystemExit(log.read())


def _records(log: IO[str]) -> Iterator[dict[str, Any]]:
    log.seek(0)
    for line in log.read().splitlines():
        if line.startswith("{") and line.endswith("}"):  # a line may not be whole yet
            yield json.loads(line)


def _processor_time() -> float:
    """Of the children that have ended: a server is one, and has waited for its engine."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--starts", type=int, default=5)
    parser.add_argument("arguments", nargs="*", help="options of octavo serve, after --")
    options = parser.parse_args()
    starts = [start_once(options.arguments) for _ in range(options.starts)]
    print("| until | median s | range |")
    print("| --- | --- | --- |")
    for message, meaning in MOMENTS.items():
        print(row(meaning, [start.moments[message] for start in starts]))
    print(row("processor time, both processes, with their ends", [start.processor for start in starts]))
    for start in starts:
        print(f"\nloading, within the engine's process: {start.loading}", end="")
    print()


def row(meaning: str, seconds: list[float]) -> str:
    return f"| {meaning} | {median(seconds):.2f} | {min(seconds):.2f} to {max(seconds):.2f} |"


if __name__ == "__main__":
    main()
