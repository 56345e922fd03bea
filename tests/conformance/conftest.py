"""The table of checks as a by-product of running them, and the server with the demo model."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest

from conformance.ask import Asker
from conformance.checks import MARKER, all_checks
from conformance.table import FAILED, PASSED, count, render
from e2e.wire import MODEL
from support.processes import SECONDS, Server, serving

OPTION = "--conformance-table"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(OPTION, metavar="FILE", help="write the table of checks and their results to FILE")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"{MARKER}(*fields, rows): a check of fields of the contract")
    # Without this folder among its arguments, pytest reads this file too late to know the option.
    if file := config.getoption(OPTION, default=None):
        config.pluginmanager.register(TableWriter(Path(file)))


class TableWriter:
    """Collects the results of the checks. One of several cases that failed makes the check fail."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._results: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = report.location[2].partition("[")[0]
        if not report.passed:
            self._results[name] = FAILED
        elif report.when == "call":
            self._results.setdefault(name, PASSED)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        checks = all_checks()
        document = render(checks, self._results)
        self._file.write_text(document)
        terminalreporter.write_line(f"\n{document}\n{count(checks, self._results)}")


@pytest.fixture(scope="session")
def demo_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """`octavo serve` with the demo model, on one thread: more of them wait for each other where processors are busy."""
    arguments = ("--ctx", "1024", "--slots", "16", "--threads", "1", "--deterministic")
    with serving(*arguments, engine="llama", folder=tmp_path_factory.mktemp("demo")) as server:
        yield server.wait_ready()


@pytest.fixture
async def demo(demo_server: Server) -> AsyncIterator[Asker]:
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=demo_server.url, timeout=SECONDS, limits=limits, trust_env=False) as client:
        yield Asker(client, MODEL)
