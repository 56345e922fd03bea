"""Adapters with which a server is started."""

import os
import signal
import socket
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from octavo.cli.first_adapters import FirstAdapters, operators_adapters
from octavo.cli.wiring import clients_adapters
from octavo.config import Settings
from octavo.core.adapters import Adapter
from octavo.core.limits import Limits
from octavo.engine.scripted import ScriptedEngine
from octavo.engine.specs import ScriptedSpec
from octavo.errors import AdapterRefused, ConfigError, EngineError, EngineUnavailable, ModelLoadError
from octavo.service import AdapterLoader, ModelRegistry, ServedModel
from octavo.telemetry.metrics import Metrics
from support.processes import eventually, run_octavo, serving

READY = "Ctrl-C stops the server"


class PickyEngine(ScriptedEngine):
    """Refuses adapters with a word in their key, and fails over those with another."""

    async def load_adapter(self, adapter: Adapter) -> None:
        if "broken" in adapter.key:
            raise AdapterRefused("It is not for this model.")
        if "failing" in adapter.key:
            raise EngineError("The engine failed.")


def world(*given: str, max_adapters: int = 3) -> tuple[ModelRegistry, FirstAdapters]:
    base = ServedModel("m", PickyEngine(ScriptedSpec()), created=0)
    models = ModelRegistry([base], Limits(max_adapters=max_adapters))
    loader = AdapterLoader(models, Metrics(CollectorRegistry()), operators_adapters(max_size=100))
    return models, FirstAdapters(Settings(adapter=given).adapters, base, models, loader)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "a=b.gguf"
    file.write_bytes(b"GGUF")
    return file


async def test_adapters_are_kept_their_names_and_then_served(file: Path) -> None:
    models, first = world(f"zorp={file}", f"owner/pirate:v2={file}")
    assert models.awaited == ["zorp", "owner/pirate:v2"]
    with pytest.raises(EngineUnavailable):
        models.get("zorp")
    await first.load()
    assert models.awaited == []
    assert models.get("m:owner/pirate:v2").id == "owner/pirate:v2"


async def test_a_path_may_lead_anywhere_and_over_links(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "link.gguf").symlink_to(file)
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path / "folder")
    models, first = world("zorp=../link.gguf")
    await first.load()
    assert models.adapters[0].adapter.path == str(file)


async def test_one_that_the_engine_refuses_ends_the_start(file: Path) -> None:
    _, first = world(f"zorp={file}", f"broken={file}", f"later={file}")
    with pytest.raises(ModelLoadError, match=r"^--adapter 'broken': It is not for this model\.$"):
        await first.load()


async def test_an_engine_that_fails_over_one_ends_the_start(file: Path) -> None:
    _, first = world(f"failing={file}")
    with pytest.raises(ModelLoadError, match=r"^--adapter 'failing': The engine failed\.$"):
        await first.load()


async def test_one_that_is_too_large_ends_the_start(file: Path) -> None:
    os.truncate(file, 101)
    _, first = world(f"zorp={file}")
    with pytest.raises(ModelLoadError, match=r"^--adapter 'zorp': The adapter's file has 101 bytes; "):
        await first.load()


def test_more_than_there_may_be_are_an_error_before_the_model_is_ready(file: Path) -> None:
    with pytest.raises(ConfigError, match=r"^--adapter 'c': This server has at most 2 adapters at a time\.$"):
        world(*(f"{id}={file}" for id in "abc"), max_adapters=2)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("zorp=missing.gguf",), "--adapter 'zorp': there is no file 'missing.gguf'."),
        (("zorp=.",), "--adapter 'zorp': there is no file '.'."),
        (("m=a.gguf",), "--adapter 'm': 'm' is the name of a served model."),
        (("a b=a.gguf",), "--adapter 'a b': an adapter's name is a letter or digit, and then at most 199"),
    ],
)
def test_what_cannot_be_loaded_is_an_error_before_the_model_is_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: tuple[str, ...], message: str
) -> None:
    (tmp_path / "a.gguf").touch()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError) as error:
        world(*given)
    assert error.value.message.startswith(message)


def test_the_folder_of_clients_must_be_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"^--adapter-dir 'adapters': there is no such folder\.$"):
        clients_adapters(Settings(adapter_dir="adapters"))
    (tmp_path / "adapters").mkdir()
    (tmp_path / "adapters" / "a.gguf").touch()
    files = clients_adapters(Settings(adapter_dir="adapters"))
    assert files.find("a.gguf") == tmp_path / "adapters" / "a.gguf"
    assert files.hub is None


def test_clients_may_load_nothing_unless_they_are_allowed_to() -> None:
    files = clients_adapters(Settings())
    assert files.hub is None
    with pytest.raises(AdapterRefused):
        files.find("a.gguf")
    assert clients_adapters(Settings(allow_adapter_downloads=True)).hub is not None


def test_a_server_is_ready_with_the_adapters_it_was_started_with(tmp_path: Path) -> None:
    (tmp_path / "zorp.gguf").write_bytes(b"GGUF")
    with serving("--adapter", "zorp=zorp.gguf", folder=tmp_path) as server, server.wait_ready().client() as client:
        assert [card["id"] for card in client.get("/v1/models").json()["data"]] == ["scripted", "zorp"]
        answer = client.post("/v1/completions", json={"model": "zorp", "prompt": "hi", "max_tokens": 4}).json()
        assert answer["choices"][0]["text"] == "The quick brown "


def test_while_the_model_loads_its_adapters_are_not_ready(tmp_path: Path) -> None:
    (tmp_path / "zorp.gguf").write_bytes(b"GGUF")
    arguments = ("--adapter", "zorp=zorp.gguf", "--scripted-load-delay", "600")
    with serving(*arguments, folder=tmp_path) as server, server.wait_for("Loading scripted").client() as client:
        ready = client.get("/ready")
        assert ready.status_code == 503
        assert ready.json()["message"] == "Not ready: scripted, zorp."
        answer = client.post("/v1/completions", json={"model": "zorp", "prompt": "hi"})
        assert answer.status_code == 503


def test_adapters_of_clients_are_still_there_when_the_engine_has_been_replaced(tmp_path: Path) -> None:
    (tmp_path / "zorp.gguf").write_bytes(b"GGUF")
    with serving("--adapter-dir", ".", folder=tmp_path) as server, server.wait_ready().client() as client:
        assert client.post("/v1/adapters", json={"id": "zorp", "path": "zorp.gguf"}).status_code == 200
        before = client.post("/v1/completions", json={"model": "zorp", "prompt": "hi"}).json()
        [child] = server.children()
        child.kill()
        eventually(lambda: 'octavo_engine_restarts_total{model="scripted"} 1.0' in client.get("/metrics").text)
        eventually(lambda: client.get("/ready").status_code == 200)
        after = client.post("/v1/completions", json={"model": "zorp", "prompt": "hi"}).json()
        assert after["system_fingerprint"] == before["system_fingerprint"]
        assert client.delete("/v1/adapters/zorp").status_code == 200


def test_a_server_that_is_stopped_while_it_downloads_an_adapter_stops(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes connections and never answers
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        given = ("--adapter", "zorp=hf:owner/repository:a.gguf")
        variables = {"HF_ENDPOINT": endpoint, "HF_HOME": str(tmp_path), "NO_PROXY": "*"}
        with serving(*given, folder=tmp_path, **variables) as server:
            with server.wait_for("is fetched from Hugging Face").client() as client:
                assert client.get("/ready").status_code == 503
            server.send(signal.SIGTERM)
            assert server.wait() == 0


@pytest.mark.parametrize(
    ("given", "code", "message"),
    [
        ("zorp=missing.gguf", 2, "--adapter 'zorp': there is no file 'missing.gguf'."),
        ("zorp", 2, "--adapter 'zorp': must be ID=PATH."),
        ("zorp=hf:../..", 1, "--adapter 'zorp': A reference to Hugging Face is hf:owner/repository or"),
    ],
)
def test_a_server_does_not_start_without_its_adapters(tmp_path: Path, given: str, code: int, message: str) -> None:
    done = run_octavo("serve", "--engine", "scripted", "--port", "0", "--adapter", given, folder=tmp_path)
    assert done.returncode == code
    last = done.stderr.decode().splitlines()[-1]
    assert last.startswith(f"octavo: {message}")
    assert b"Traceback" not in done.stderr
