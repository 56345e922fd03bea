"""`octavo serve` as its users meet it: a process with a port."""

import re
import shlex
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from support.processes import are_gone, run_octavo, serving

ENDLESS = {"model": "scripted", "prompt": "hi", "max_tokens": 4000, "ignore_eos": True, "stream": True}
SLOW = ("--scripted-delay", "0.05")
READY = "Ctrl-C stops the server"


@contextmanager
def open_stream(client: httpx.Client) -> Iterator[Iterator[str]]:
    """The lines of an endless completion, of which the first one has come."""
    with client.stream("POST", "/v1/completions", json=ENDLESS) as response:
        lines = response.iter_lines()
        assert next(lines).startswith("data: ")
        yield lines


def test_a_served_model_answers_over_http(tmp_path: Path) -> None:
    with serving(folder=tmp_path) as server, server.wait_for(READY).client() as client:
        answer = client.post("/v1/completions", json={"model": "scripted", "prompt": "hi", "max_tokens": 4})

        assert answer.json()["choices"][0]["text"] == "The quick brown "
        assert client.get("/ready").status_code == 200


def test_http_answers_before_the_model_is_loaded(tmp_path: Path) -> None:
    arguments = ("--scripted-load-delay", "600")
    with serving(*arguments, folder=tmp_path) as server, server.wait_for("Loading scripted").client() as client:
        assert client.get("/health").status_code == 200
        assert client.get("/ready").status_code == 503


def test_the_start_up_screen_says_what_is_served_where_and_how_to_call_it(tmp_path: Path) -> None:
    with serving("--alias", "fox's", "--ctx", "512", "--slots", "3", folder=tmp_path) as server:
        log = server.wait_for(READY).log

    facts = dict(re.findall(r"^  (\S.*?)  +(\S.*)$", log, re.MULTILINE))
    assert facts["serving"] == "fox's"
    assert facts["context length"] == "512 tokens"
    assert facts["slots"].startswith("3 ")
    assert facts["engine"] == "scripted"
    assert facts["API"] == f"{server.url}/v1"
    assert facts["documentation"] == f"{server.url}/docs"


def test_the_call_on_the_start_up_screen_can_be_pasted(tmp_path: Path) -> None:
    with serving("--alias", "fox's", folder=tmp_path) as server:
        [call] = re.findall(r"^  curl .*$", server.wait_for(READY).log, re.MULTILINE)
        program, *arguments = shlex.split(call)
        done = subprocess.run((program, "--silent", "--noproxy", "*", *arguments), capture_output=True, check=True)

    assert done.stdout.endswith(b"data: [DONE]\n\n")


def test_json_logs_replace_the_screen(tmp_path: Path) -> None:
    with serving("--log-json", folder=tmp_path) as server:
        log = server.wait_for('"serving"').log

    assert all(line.startswith("{") for line in log.splitlines())


def test_an_address_that_others_can_reach_is_warned_about(tmp_path: Path) -> None:
    with serving("--host", "0.0.0.0", "--scripted-load-delay", "600", folder=tmp_path) as server:
        server.wait_for("this version has no API keys")


def test_a_port_in_use_is_said_and_nothing_is_left_running(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        done = run_octavo("serve", "--engine", "scripted", "--port", port, folder=tmp_path)

    assert done.returncode == 2
    assert done.stderr.decode() == (
        f"octavo: Port {port} of 127.0.0.1 is in use by another program; choose another one with --port.\n"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("missing.gguf",), "MODEL 'missing.gguf': there is no such file."),
        ((".",), "MODEL '.' is a folder; this version serves .gguf files."),
        (("hf:owner/repo",), "MODEL 'hf:owner/repo': downloads from Hugging Face are not yet supported;"),
        (("a.gguf", "b.gguf"), "more than one model is not yet supported."),
        (("--engine", "vllm"), "--engine 'vllm': this engine is not yet supported; there are llama and scripted."),
        (("--port", "99999"), "--port '99999': must be less than or equal to 65535."),
        (("--slots", "many"), "--slots 'many': must be a valid integer"),
        (("--drain-timeout", "nan"), "--drain-timeout 'nan': must be a finite number."),
        (("--engine", "scripted", "a.gguf"), "The scripted engine takes no MODEL; --alias names it."),
        (("--config", "none.toml"), "The settings file none.toml cannot be read: No such file or directory."),
        (("--host", "256.1.1.1", "--engine", "scripted"), "--host '256.1.1.1': no such address"),
    ],
)
def test_a_bad_option_is_one_line_that_names_it_and_its_value(
    tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    done = run_octavo("serve", *arguments, folder=tmp_path)

    assert done.returncode == 2
    assert done.stderr.decode().startswith("octavo: ")
    assert message in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1


def test_an_option_that_does_not_exist_is_named(tmp_path: Path) -> None:
    done = run_octavo("serve", "--api-key", "k", folder=tmp_path)

    assert done.returncode == 2
    assert "No such option: --api-key" in done.stderr.decode()


def test_an_unknown_setting_in_the_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "octavo.toml").write_text('prot = 1\nengine = "scripted"\n')

    done = run_octavo("serve", folder=tmp_path)

    assert done.returncode == 2
    assert done.stderr.decode() == "octavo: Unknown settings in octavo.toml: prot.\n"


def test_flags_win_over_the_environment_and_the_environment_over_the_file(tmp_path: Path) -> None:
    (tmp_path / "octavo.toml").write_text('alias = "file"\nctx = 100\nslots = 1\n')

    with serving("--alias", "flag", folder=tmp_path, OCTAVO_ALIAS="environment", OCTAVO_CTX="200") as server:
        log = server.wait_for(READY).log

    assert re.search(r"serving +flag$", log, re.MULTILINE)
    assert re.search(r"context length +200 ", log)
    assert re.search(r"slots +1 ", log)


def test_a_model_that_cannot_be_loaded_ends_the_server_with_its_reason(tmp_path: Path) -> None:
    pytest.importorskip("llama_cpp")
    (tmp_path / "broken.gguf").write_bytes(b"GGUF but not really")

    done = run_octavo("serve", "broken.gguf", "--port", "0", folder=tmp_path)

    assert done.returncode == 1
    assert "octavo: " in done.stderr.decode().splitlines()[-1]
    assert b"Traceback" not in done.stderr


def test_a_server_whose_engine_dies_again_and_again_lives_and_says_not_ready(tmp_path: Path) -> None:
    with serving("--scripted-exit-at", "-1", folder=tmp_path) as server:
        with server.wait_for("Restarting scripted").client() as client:
            assert client.get("/health").status_code == 200
            assert client.get("/ready").status_code == 503
        server.send(signal.SIGTERM)

        assert server.wait() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_an_idle_server_and_its_engine(tmp_path: Path, number: signal.Signals) -> None:
    with serving(folder=tmp_path) as server:
        children = server.wait_for(READY).children()
        server.send(number)

        assert server.wait() == 0
        assert children
        assert are_gone(children)
        assert "Traceback" not in server.log


def test_a_signal_while_the_model_loads_ends_the_server_and_its_engine(tmp_path: Path) -> None:
    with serving("--scripted-load-delay", "600", folder=tmp_path) as server:
        children = server.wait_for("Loading scripted").children()
        server.send(signal.SIGTERM)

        assert server.wait() == 0
        assert are_gone(children)


def test_a_running_request_ends_whole_after_the_signal_while_new_ones_are_refused(tmp_path: Path) -> None:
    with serving(*SLOW, folder=tmp_path) as server, server.wait_for(READY).client() as client:
        body = {**ENDLESS, "max_tokens": 100}
        with client.stream("POST", "/v1/completions", json=body) as response:
            lines = response.iter_lines()
            next(lines)
            server.send(signal.SIGTERM)
            with server.client() as other:
                while other.get("/ready").status_code == 200:
                    pass
                assert other.get("/health").status_code == 200
                refused = other.post("/v1/completions", json=body)
            rest = list(lines)

        assert refused.status_code == 503
        assert refused.headers["retry-after"]
        assert "data: [DONE]" in rest
        assert server.wait() == 0


def test_open_streams_end_with_an_error_when_the_drain_timeout_is_over(tmp_path: Path) -> None:
    with serving(*SLOW, "--drain-timeout", "0.2", folder=tmp_path) as server, server.wait_for(READY).client() as client:
        children = server.children()
        with open_stream(client) as first, open_stream(client) as second:
            server.send(signal.SIGTERM)
            ends = [list(first), list(second)]

        assert server.wait() == 0
        assert are_gone(children)
        for lines in ends:
            assert lines[-2].startswith('data: {"error"')
            assert "data: [DONE]" not in lines


def test_a_client_that_does_not_read_cannot_keep_the_server_alive(tmp_path: Path) -> None:
    text = "x" * 100_000
    arguments = ("--scripted-text", text, "--scripted-piece-bytes", "50000", "--drain-timeout", "0.2")
    with (
        serving(*arguments, folder=tmp_path) as server,
        server.wait_for(READY).client() as client,
        open_stream(client),
    ):
        server.send(signal.SIGTERM)

        assert server.wait() == 0


def test_a_second_signal_ends_the_server_without_waiting_for_its_streams(tmp_path: Path) -> None:
    arguments = (*SLOW, "--drain-timeout", "3600")
    with serving(*arguments, folder=tmp_path) as server, server.wait_for(READY).client() as client:
        children = server.children()
        with open_stream(client):
            server.send(signal.SIGTERM)
            with server.client() as other:
                while other.get("/ready").status_code == 200:
                    pass
            server.send(signal.SIGTERM)

            assert server.wait() == 128 + signal.SIGTERM
        assert are_gone(children)


def test_the_engine_does_not_outlive_a_server_that_is_killed(tmp_path: Path) -> None:
    with serving(folder=tmp_path) as server:
        children = server.wait_for(READY).children()
        server.kill()
        server.wait()

        assert are_gone(children)
