"""Keys of a real server: where they are to be seen, and when they count."""

import json
import subprocess
from pathlib import Path

import httpx
import openai
import psutil
import pytest

from octavo.store.key_file import KeyFile
from support.processes import OCTAVO, SECONDS, clean_environment, eventually, run_octavo, serving

READY = "Ctrl-C stops the server"
FLAG, VARIABLE = "octv_of-the-flag", "octv_of-the-environment"
FILE = ("--keys-file", "keys.json")
BODY = {"model": "scripted", "prompt": "hi", "max_tokens": 4}


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


def create(*arguments: str, folder: Path) -> str:
    return run_octavo("keys", "create", *arguments, *FILE, folder=folder).stdout.decode().strip()


def words_of(process: psutil.Process) -> str:
    """All that others may read of a process."""
    return json.dumps([process.cmdline(), process.environ(), process.name()])


def test_a_key_of_the_command_line_is_to_be_seen_nowhere(tmp_path: Path) -> None:
    with serving("--api-key", FLAG, "--api-key", "octv_another", folder=tmp_path) as server:
        server.wait_for(READY)
        with server.client() as client:
            bad = [client.get("/v1/models", headers=bearer(f"{FLAG}x")), client.get("/metrics", headers=bearer("no"))]
            good = [client.post("/v1/completions", json=BODY, headers=bearer(key)) for key in (FLAG, "octv_another")]
            metrics = client.get("/metrics", headers=bearer(FLAG))
        own = json.dumps([psutil.Process(server.pid).cmdline(), psutil.Process(server.pid).name()])
        children = [words_of(child) for child in server.children()]

    assert [response.status_code for response in (*bad, *good, metrics)] == [401, 401, 200, 200, 200]
    assert children
    seen = [own, *children, server.log, metrics.text, *(f"{each.text}{each.headers}" for each in (*bad, *good))]
    assert not any("octv_" in text for text in seen)
    assert server.log.count("key=own:") == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ("complete", "--api-key", FLAG),
        ("complete", f"--api-key={FLAG}"),
        ("chat", "--url", f"http://user:{FLAG}@127.0.0.1:1"),
        ("serve", "--engine", "scripted", "--port", "0", "--log-db", f"postgresql://user:{FLAG}@127.0.0.1:1/name"),
    ],
)
def test_a_command_does_not_show_the_secrets_that_it_was_given(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """All of these wait: for their input, or for requests."""
    process = psutil.Popen(
        (OCTAVO, *arguments),
        cwd=tmp_path,
        env=clean_environment(XDG_STATE_HOME=str(tmp_path)),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        eventually(lambda: f"octavo {arguments[0]}" in process.cmdline())
        assert FLAG not in json.dumps(process.cmdline())
    finally:
        process.terminate()
        process.communicate(timeout=SECONDS)


@pytest.mark.slow
def test_a_key_of_the_environment_is_not_passed_on(tmp_path: Path) -> None:
    with serving(folder=tmp_path, OCTAVO_API_KEY=f"{VARIABLE},octv_another") as server:
        server.wait_for(READY)
        children = server.children()
        assert children
        assert not any("octv_" in words_of(child) for child in children)
        with server.client() as client:
            assert client.get("/v1/models", headers=bearer(VARIABLE)).status_code == 200
            assert client.get("/v1/models", headers=bearer("octv_another")).status_code == 200
            assert client.get("/v1/models").status_code == 401


def test_the_self_test_shows_no_key(tmp_path: Path) -> None:
    done = run_octavo("doctor", folder=tmp_path, OCTAVO_ENGINE="scripted", OCTAVO_API_KEY=VARIABLE)

    assert done.returncode == 0
    assert VARIABLE.encode() not in done.stdout + done.stderr


@pytest.mark.slow
def test_keys_are_made_and_revoked_while_a_server_runs(tmp_path: Path) -> None:
    first = create("first", folder=tmp_path)
    arguments = (*FILE, "--scripted-delay", "0.05")
    with serving(*arguments, folder=tmp_path) as server, server.wait_for(READY).client() as client:

        def status(key: str) -> int:
            return client.get("/v1/models", headers=bearer(key)).status_code

        assert status(first) == 200
        second = create("second", "--scope", "admin", folder=tmp_path)
        eventually(lambda: status(second) == 200)
        assert client.get("/metrics", headers=bearer(second)).status_code == 200
        assert client.get("/metrics", headers=bearer(first)).status_code == 403

        endless = {**BODY, "max_tokens": 100, "ignore_eos": True, "stream": True}
        with client.stream("POST", "/v1/completions", json=endless, headers=bearer(first)) as stream:
            lines = stream.iter_lines()
            assert next(lines).startswith("data: ")
            [key, _] = KeyFile(tmp_path / "keys.json").read()
            run_octavo("keys", "revoke", key.id, *FILE, folder=tmp_path)
            with server.client() as other:
                eventually(lambda: other.get("/v1/models", headers=bearer(first)).status_code == 401)
            rest = list(lines)

        assert "data: [DONE]" in rest  # what had begun may end
        assert status(second) == 200


@pytest.mark.slow
def test_keys_of_a_file_that_is_gone_or_broken_are_refused_and_those_of_the_operator_are_not(tmp_path: Path) -> None:
    stored = create("ann", folder=tmp_path)
    whole = (tmp_path / "keys.json").read_text()
    with serving(*FILE, "--api-key", FLAG, folder=tmp_path) as server, server.wait_for(READY).client() as client:

        def is_accepted(key: str) -> bool:
            return client.get("/v1/models", headers=bearer(key)).status_code == 200

        for broken in (None, "{", "[]"):
            assert is_accepted(stored)
            (tmp_path / "keys.json").unlink()
            if broken is not None:
                (tmp_path / "keys.json").write_text(broken)
            eventually(lambda: not is_accepted(stored))
            assert is_accepted(FLAG)
            (tmp_path / "keys.json").write_text(whole)
            eventually(lambda: is_accepted(stored))

    assert server.log.count("None of the keys in the file is accepted") == 3


@pytest.fixture
def key(tmp_path: Path) -> str:
    return create("ann", folder=tmp_path)


@pytest.mark.slow
def test_the_clients_work_with_a_key(tmp_path: Path, key: str) -> None:
    with serving(*FILE, folder=tmp_path) as server:
        url = server.wait_for(READY).url
        with openai.OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0) as client:
            assert client.completions.create(model="scripted", prompt="hi", max_tokens=4).choices[0].text
        with (
            openai.OpenAI(base_url=f"{url}/v1", api_key="octv_wrong", max_retries=0) as client,
            pytest.raises(openai.AuthenticationError) as caught,
        ):
            client.models.list()
        command = ("complete", "hi", "--url", url)
        right = run_octavo(*command, folder=tmp_path, OCTAVO_API_KEY=key)
        wrong = run_octavo(*command, folder=tmp_path)

    assert caught.value.code == "invalid_api_key"
    assert right.stdout.startswith(b"The quick brown ")
    assert (wrong.returncode, wrong.stderr.startswith(b"octavo: The server answered 401: ")) == (1, True)


def test_pages_from_elsewhere_may_not_ask_a_server_of_this_machine(tmp_path: Path) -> None:
    with serving(folder=tmp_path) as server, server.wait_for(READY).client() as client:

        def status(**headers: str) -> int:
            response: httpx.Response = client.post("/v1/completions", json=BODY, headers=headers)
            assert not any(name.startswith("access-control-") for name in response.headers)
            return response.status_code

        assert status() == 200
        assert status(origin=server.url) == 200
        assert status(origin="https://evil.example") == 403
        assert status(host="evil.example") == 403
