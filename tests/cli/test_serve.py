"""`octavo serve` as its users meet it: a process with a port."""

import re
import shlex
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from support.processes import clean_environment, run_octavo, serving

READY = "Ctrl-C stops the server"


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
        server.wait_for("whoever reaches it can use the server")


def test_with_keys_an_address_that_others_can_reach_is_not_warned_about(tmp_path: Path) -> None:
    with serving("--host", "0.0.0.0", folder=tmp_path, OCTAVO_API_KEY="octv_secret-of-many-letters") as server:
        log = server.wait_for(READY).log

    assert "WARNING" not in log
    assert "octv_secret-of-many-letters" not in log


def test_with_keys_the_call_on_the_start_up_screen_takes_one_from_the_environment(tmp_path: Path) -> None:
    with serving(folder=tmp_path, OCTAVO_API_KEY="octv_secret") as server:
        [call] = re.findall(r"^  curl .*$", server.wait_for(READY).log, re.MULTILINE)
        silent = call.replace("curl", "curl --silent --noproxy '*'", 1)
        environment = clean_environment(OCTAVO_API_KEY="octv_secret")
        done = subprocess.run(("sh", "-c", silent), env=environment, capture_output=True, check=True)

    assert '-H "Authorization: Bearer $OCTAVO_API_KEY"' in call
    assert done.stdout.endswith(b"data: [DONE]\n\n")


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
        (("--request-timeout", "0"), "--request-timeout '0': must be greater than 0."),
        (("--content-filter", "fine", "--content-filter", "(", "--engine", "scripted"), "'('"),
        (("--engine", "scripted", "--deterministic"), "The scripted engine has no --deterministic."),
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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--api-key", "sec ret"), "--api-key: must be 1 to 512 visible ASCII characters, and no space."),
        (("--keys-file", "no.json"), "The file of keys no.json cannot be read: No such file or directory."),
        (("--allow-hosts", "a:1"), "--allow-hosts 'a:1' has a port; a name is allowed at any."),
        (("--allow-origins", "null"), "--allow-origins 'null' is not an origin such as https://example.com."),
    ],
)
def test_a_bad_option_about_access_ends_the_server_with_a_line_that_shows_no_key(
    tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    done = run_octavo("serve", "--engine", "scripted", "--port", "0", *arguments, folder=tmp_path)

    assert done.returncode == 2
    assert done.stderr.decode() == f"octavo: {message}\n"  # before anything else has begun
    assert b"sec ret" not in done.stderr


def test_an_option_that_does_not_exist_is_named(tmp_path: Path) -> None:
    done = run_octavo("serve", "--api-keys", "k", folder=tmp_path)

    assert done.returncode == 2
    assert "No such option: --api-keys" in done.stderr.decode()


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
