"""`octavo complete` against a real server."""

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.processes import OCTAVO, SECONDS, Server, clean_environment, run_octavo, serving

FOX = b"The quick brown fox jumps over the lazy dog."


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(folder=tmp_path_factory.mktemp("server")) as server:
        yield server.wait_for("Ctrl-C stops the server")


def test_the_prompt_comes_from_the_argument(server: Server, tmp_path: Path) -> None:
    done = run_octavo("complete", "hi", "--url", server.url, folder=tmp_path)

    assert (done.returncode, done.stdout, done.stderr) == (0, FOX, b"")


def test_the_prompt_comes_from_standard_input_less_its_last_newline(server: Server, tmp_path: Path) -> None:
    done = run_octavo("complete", "--url", server.url, "--echo-prompt", folder=tmp_path, prompt="héllo\n\n".encode())

    assert (done.returncode, done.stdout) == (0, "héllo\n".encode() + FOX)


def test_the_sampling_options_reach_the_server(server: Server, tmp_path: Path) -> None:
    limited = run_octavo("complete", "hi", "--url", server.url, "--max-tokens", "2", folder=tmp_path)
    stopped = run_octavo("complete", "hi", "--url", server.url, "--stop", "ox", "--stop", "zz", folder=tmp_path)
    refused = run_octavo("complete", "hi", "--url", server.url, "--temperature", "9", folder=tmp_path)

    assert limited.stdout == b"The quic"
    assert stopped.stdout == b"The quick brown f"
    assert refused.returncode == 1
    assert b"temperature" in refused.stderr


def test_characters_that_some_take_for_line_ends_stay_in_the_answer(tmp_path: Path) -> None:
    with serving("--scripted-text", "a\u2028b\u0085c\n\u2029d", folder=tmp_path) as server:
        server.wait_for("Ctrl-C stops the server")
        done = run_octavo("complete", "hi", "--url", server.url, folder=tmp_path)

    assert (done.returncode, done.stdout.decode()) == (0, "a\u2028b\u0085c\n\u2029d")


def test_an_error_of_the_server_is_one_line(server: Server, tmp_path: Path) -> None:
    done = run_octavo("complete", "hi", "--url", server.url, "--model", "nope", folder=tmp_path)

    assert done.returncode == 1
    assert done.stdout == b""
    assert done.stderr.startswith(b"octavo: The server answered 404: The model 'nope' is not served here.")
    assert done.stderr.count(b"\n") == 1


def test_an_error_within_the_answer_is_one_line_after_the_text_so_far(server: Server, tmp_path: Path) -> None:
    done = run_octavo("complete", '@script {"raise_at": 2}', "--url", server.url, folder=tmp_path)

    assert done.returncode == 1
    assert done.stdout == b"The quic"
    assert done.stderr == b"octavo: The script asks for an error at token 2.\n"


def test_a_number_that_is_none_is_refused_by_the_server(server: Server, tmp_path: Path) -> None:
    done = run_octavo("complete", "hi", "--url", server.url, "--temperature", "nan", folder=tmp_path)

    assert done.returncode == 1
    assert done.stderr.startswith(b"octavo: The server answered 422: temperature")
    assert done.stderr.count(b"\n") == 1


def test_without_a_server_the_error_says_how_to_start_one(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"

    done = run_octavo("complete", "hi", "--url", url, folder=tmp_path)

    assert done.returncode == 1
    assert done.stderr.decode() == f"octavo: No server answers at {url}. Start one with: octavo serve\n"


def test_a_prompt_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    done = run_octavo("complete", folder=tmp_path, prompt=b"ok \xff")

    assert done.returncode == 2
    assert done.stderr == b"octavo: The prompt on standard input is not UTF-8 (byte 3).\n"


def test_a_prompt_argument_that_is_not_utf8_is_refused(server: Server, tmp_path: Path) -> None:
    done = run_octavo("complete", os.fsdecode(b"ok \xff"), "--url", server.url, folder=tmp_path)

    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr == b"octavo: A text of the request is not UTF-8.\n"


def test_text_is_shown_as_it_comes_and_ctrl_c_ends_it_without_a_trace(server: Server, tmp_path: Path) -> None:
    command = (OCTAVO, "complete", '@script {"hang_at": 2}', "--url", server.url)
    with subprocess.Popen(
        command, cwd=tmp_path, env=clean_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.read(8) == b"The quic"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=SECONDS)

    assert process.returncode == 130
    assert errors == b""


def test_a_reader_that_goes_away_ends_it_without_a_trace(server: Server, tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            (OCTAVO, "complete", "hi", "--url", server.url),
            cwd=tmp_path,
            env=clean_environment(),
            stdout=writing,
            stderr=subprocess.PIPE,
            timeout=SECONDS,
            check=False,
        )
    finally:
        os.close(writing)

    assert done.returncode == 1
    assert done.stderr == b""
