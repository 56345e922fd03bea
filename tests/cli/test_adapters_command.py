"""`octavo adapters` against a real server."""

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.processes import OCTAVO, SECONDS, Server, clean_environment, eventually, run_octavo, serving

from .recording import Answer, recording

NONE = b"The server has no adapters.\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Has one file, which the scripted engine takes for an adapter as it takes any."""
    folder = tmp_path_factory.mktemp("adapters")
    (folder / "zorp.gguf").write_bytes(b"GGUF")
    return folder


@pytest.fixture(scope="module")
def server(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving("--adapter-dir", str(folder), folder=tmp_path_factory.mktemp("server")) as server:
        yield server.wait_for("Ctrl-C stops the server")


@pytest.fixture(autouse=True)
def no_adapter_is_left(server: Server) -> Iterator[None]:
    yield
    with server.client() as client:
        for card in client.get("/v1/adapters").json()["data"]:
            client.delete(f"/v1/adapters/{card['id']}")


def adapters(server: Server, folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    return run_octavo("adapters", *arguments, "--url", server.url, folder=folder)


@contextmanager
def started(*arguments: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The command, until the end of the `with` at the latest."""
    with subprocess.Popen(
        (OCTAVO, *arguments), cwd=folder, env=clean_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def check_fails(done: subprocess.CompletedProcess[bytes], message: str) -> None:
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.decode().startswith(f"octavo: {message}")
    assert done.stderr.count(b"\n") == 1


def test_what_is_loaded_is_listed_until_it_is_unloaded(server: Server, tmp_path: Path) -> None:
    assert adapters(server, tmp_path, "list").stdout == NONE

    loaded = adapters(server, tmp_path, "load", "zorp", "zorp.gguf")
    assert (loaded.returncode, loaded.stdout) == (0, b"Loaded zorp for scripted, scale 1.\n")
    adapters(server, tmp_path, "load", "a-longer-name", "zorp.gguf", "--scale", "0.5", "--model", "scripted")
    assert adapters(server, tmp_path, "list").stdout.decode() == (
        "id             base      scale  in flight\n"
        "zorp           scripted  1      0\n"
        "a-longer-name  scripted  0.5    0\n"
    )

    unloaded = adapters(server, tmp_path, "unload", "zorp")
    assert (unloaded.returncode, unloaded.stdout) == (0, b"Unloaded zorp.\n")
    adapters(server, tmp_path, "unload", "a-longer-name")
    assert adapters(server, tmp_path, "list").stdout == NONE


@pytest.mark.parametrize("name", ["owner/zorp", "a/../b", "a:b@c+d.e", "v1//2"])
def test_a_name_with_marks_of_addresses_is_unloaded_as_it_was_loaded(server: Server, tmp_path: Path, name: str) -> None:
    adapters(server, tmp_path, "load", name, "zorp.gguf")

    assert adapters(server, tmp_path, "unload", name).stdout.decode() == f"Unloaded {name}.\n"
    assert adapters(server, tmp_path, "list").stdout == NONE


def test_a_chat_with_an_adapter_is_in_flight_and_unloading_waits_for_it(server: Server, tmp_path: Path) -> None:
    adapters(server, tmp_path, "load", "zorp", "zorp.gguf")
    question = ("chat", '@script {"hang_at": 2}\n', "--peft", "zorp", "--url", server.url)
    with started(*question, folder=tmp_path) as chat, server.client() as client:
        assert chat.stdout is not None
        assert chat.stdout.read(8) == b"The quic"
        assert b"zorp  scripted  1      1\n" in adapters(server, tmp_path, "list").stdout
        asked = {"model": "scripted", "prompt": "hi", "peft": "zorp"}
        with started("adapters", "unload", "zorp", "--url", server.url, folder=tmp_path) as unloading:
            eventually(lambda: client.post("/v1/completions", json=asked).status_code == 404)
            assert unloading.poll() is None
            chat.send_signal(signal.SIGINT)
            assert unloading.communicate(timeout=SECONDS) == (b"Unloaded zorp.\n", b"")


def test_what_the_server_refuses_is_one_line(server: Server, tmp_path: Path) -> None:
    check_fails(adapters(server, tmp_path, "load", "zorp", "../zorp.gguf"), "The server answered 400: ")
    check_fails(adapters(server, tmp_path, "load", "zorp", "zorp.gguf", "--scale", "nan"), "The server answered 422: ")
    check_fails(adapters(server, tmp_path, "load", "zorp", "zorp.gguf", "--model", "x"), "The server answered 404: ")
    check_fails(adapters(server, tmp_path, "unload", "zorp"), "The server answered 404: There is no adapter 'zorp'.")


def test_a_server_that_knows_no_adapters_is_reported(tmp_path: Path) -> None:
    with recording() as old:
        check_fails(run_octavo("adapters", "list", "--url", old.url, folder=tmp_path), "The server answered 404: ")
        old.answers["GET", "/v1/adapters"] = Answer.of([])
        check_fails(
            run_octavo("adapters", "list", "--url", old.url, folder=tmp_path), f"What {old.url} answered cannot"
        )


def test_without_a_subcommand_the_help_is_shown(tmp_path: Path) -> None:
    done = run_octavo("adapters", folder=tmp_path)

    assert all(name in done.stdout + done.stderr for name in (b"list", b"load", b"unload"))
