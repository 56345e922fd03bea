"""octavo top and octavo ready, against real servers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.ports import closed_port
from support.processes import Server, run_octavo, serving

KEY = "sk-octavo-" + "k" * 32


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("top")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    with serving("--alias", "demo", folder=folder) as server:
        yield server.wait_ready()


@pytest.mark.slow
def test_it_shows_what_a_server_has_done(server: Server, folder: Path) -> None:
    with server.client() as client:
        client.post("/v1/completions", json={"model": "demo", "prompt": "x", "max_tokens": 5})
    result = run_octavo("top", "--once", "--url", server.url, folder=folder)
    assert (result.returncode, result.stderr) == (0, b"")
    rows = {line[:16].strip(): line[16:].strip() for line in result.stdout.decode().splitlines()}
    assert rows["running"] == "0"
    assert rows["engine restarts"] == "0 since the start"
    assert "ms (95 %: " in rows["first token"]
    assert rows["found computed"] == "0% of prompt tokens"
    assert "MiB server" in rows["memory"]


@pytest.mark.slow
def test_it_shows_numbers_where_nothing_was_asked_yet(folder: Path) -> None:
    with serving(folder=folder) as server:
        server.wait_ready()
        result = run_octavo("top", "--url", server.url, folder=folder)
    assert result.returncode == 0
    assert b"first token     -\n" in result.stdout


@pytest.mark.slow
def test_a_server_that_can_serve_is_ready(server: Server, folder: Path) -> None:
    result = run_octavo("ready", "--url", server.url, folder=folder)
    assert (result.returncode, result.stdout, result.stderr) == (0, b"ok\n", b"")


@pytest.mark.slow
def test_one_that_still_loads_is_not(folder: Path) -> None:
    with serving("--alias", "demo", "--scripted-load-delay", "60", folder=folder) as server:
        server.wait_for("listens on")
        result = run_octavo("ready", "--url", server.url, folder=folder)
    assert (result.returncode, result.stdout) == (1, b"")
    assert b"octavo: The server answered 503: Not ready: demo." in result.stderr


@pytest.mark.parametrize("command", ["ready", "top"])
def test_where_no_server_is_the_exit_status_is_1(command: str, folder: Path) -> None:
    result = run_octavo(command, "--url", f"http://127.0.0.1:{closed_port()}", folder=folder)
    assert (result.returncode, result.stdout) == (1, b"")
    assert b"octavo: No server answers at " in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize("command", ["ready", "top"])
def test_a_server_with_keys_is_asked_with_that_of_the_environment(command: str, folder: Path) -> None:
    with serving(folder=folder, OCTAVO_API_KEY=KEY) as server:
        server.wait_for("listens on")
        refused = run_octavo(command, "--url", server.url, folder=folder)
        assert refused.returncode == 1
        assert b"401" in refused.stderr
        server.wait_for("Ctrl-C")
        assert run_octavo(command, "--url", server.url, folder=folder, OCTAVO_API_KEY=KEY).returncode == 0
