"""Adapters as clients load them, name them and delete them."""

import asyncio
import logging
import os
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from octavo.engine.specs import ScriptedSpec
from octavo.errors import AdapterRefused, EngineUnavailable
from octavo.service import AdapterFiles, AdapterFolder
from support.bad_inputs import ADAPTER_PATHS, ADAPTERS, CHAT, COMPLETIONS
from support.checks import check_error

from .asking import BARE, ask, post, stream, texts
from .server import MODEL, App, WatchedEngine, build, listening

PATHS = pytest.mark.parametrize("path", BARE)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "adapters"
    folder.mkdir()
    for file in (folder / "a.gguf", folder / "b.gguf", tmp_path / "secret.gguf"):
        file.write_text(file.name)
    (folder / "link.gguf").symlink_to("../secret.gguf")
    (folder / "up").symlink_to("..")
    os.mkfifo(folder / "pipe.gguf")
    return folder


@pytest.fixture
def app(folder: Path) -> App:
    engine = WatchedEngine(ScriptedSpec(text="The quick brown fox."))
    return build(engine, adapters=AdapterFiles(AdapterFolder(folder).find, hub=None, max_size=100))


async def load(client: httpx.AsyncClient, id: str = "zorp", path: str = "a.gguf", **fields: Any) -> dict[str, Any]:
    response = await client.post(ADAPTERS, json={"id": id, "path": path, **fields})
    assert response.status_code == 200, response.text
    card = response.json()
    assert isinstance(card, dict)
    return card


async def delete(client: httpx.AsyncClient, id: str = "zorp") -> httpx.Response:
    return await client.delete(f"{ADAPTERS}/{quote(id, safe='')}")


async def ids(client: httpx.AsyncClient, path: str = ADAPTERS) -> list[str]:
    return [card["id"] for card in (await client.get(path)).json()["data"]]


@pytest.fixture
async def loaded(client: httpx.AsyncClient) -> httpx.AsyncClient:
    """A client of a server with the adapters zorp and owner/pirate:v2."""
    await load(client)
    await load(client, "owner/pirate:v2", "b.gguf")
    return client


async def test_a_loaded_adapter_is_listed_and_a_deleted_one_is_not(client: httpx.AsyncClient) -> None:
    assert (await client.get(ADAPTERS)).json() == {"object": "list", "data": []}
    card = await load(client, scale=0.5)
    created = card.pop("created")
    assert card == {"id": "zorp", "object": "adapter", "model": MODEL, "scale": 0.5, "num_running": 0}
    assert (await client.get(ADAPTERS)).json()["data"] == [{**card, "created": created}]
    gone = await delete(client)
    assert gone.status_code == 200
    assert gone.json() == {"id": "zorp", "object": "adapter", "deleted": True}
    assert await ids(client) == []


async def test_an_adapter_is_a_model_with_a_parent(loaded: httpx.AsyncClient) -> None:
    assert await ids(loaded, "/v1/models") == [MODEL, "zorp", "owner/pirate:v2"]
    model, *adapters = (await loaded.get("/v1/models")).json()["data"]
    assert model["parent"] is None
    for card in adapters:
        assert card["parent"] == MODEL
        assert card["object"] == "model"
        assert card["context_length"] == model["context_length"]
        for name in (card["id"], f"{MODEL}:{card['id']}"):
            assert (await loaded.get(f"/v1/models/{name}")).json() == card


@PATHS
@pytest.mark.parametrize(
    "names",
    [
        {"peft": "zorp"},
        {"model": "zorp"},
        {"model": f"{MODEL}:zorp"},
        {"model": "zorp", "peft": "zorp"},
        {"model": f"{MODEL}:zorp", "peft": "zorp"},
        {"model": "zorp", "peft": None},
    ],
)
async def test_a_request_gets_the_adapter_that_it_names(
    app: App, loaded: httpx.AsyncClient, path: str, names: dict[str, str]
) -> None:
    answer = await ask(loaded, path, **names)
    assert answer["model"] == names.get("model", MODEL)
    assert texts(answer) == ["The quick brown fox."]
    *chunks, _ = await stream(loaded, path, **names)
    assert {chunk["model"] for chunk in chunks} == {answer["model"]}
    assert {chunk["system_fingerprint"] for chunk in chunks} == {answer["system_fingerprint"]}
    [key] = {request.adapter for request in app.engine.requests}
    assert app.engine.adapters[key].path.endswith("/a.gguf")


@PATHS
async def test_all_samples_of_a_request_have_its_adapter(app: App, loaded: httpx.AsyncClient, path: str) -> None:
    await ask(loaded, path, peft="owner/pirate:v2", n=3)
    assert len(app.engine.requests) == 3
    [key] = {request.adapter for request in app.engine.requests}
    assert app.engine.adapters[key].path.endswith("/b.gguf")


@PATHS
async def test_a_request_without_an_adapter_has_none(app: App, loaded: httpx.AsyncClient, path: str) -> None:
    for peft in ({}, {"peft": None}):
        await ask(loaded, path, **peft)
    assert [request.adapter for request in app.engine.requests] == ["", ""]


@PATHS
async def test_an_adapter_that_the_engine_has_lost_is_not_found_until_it_is_loaded_again(
    app: App, loaded: httpx.AsyncClient, path: str
) -> None:
    app.engine.health_now = replace(app.engine.health(), lost_adapters=frozenset(app.engine.adapters))
    assert await ids(loaded) == []
    assert await ids(loaded, "/v1/models") == [MODEL]
    error = check_error(await post(loaded, path, peft="zorp"), 404, "peft")
    assert error["code"] == "peft_not_found"
    check_error(await post(loaded, path, model="zorp"), 404, "model")
    assert app.engine.requests == []
    await load(loaded)
    await ask(loaded, path, peft="zorp")
    assert [request.adapter for request in app.engine.requests] == [list(app.engine.adapters)[-1]]


@PATHS
@pytest.mark.parametrize("names", [{"model": "nobody"}, {"model": f"{MODEL}:nobody"}, {"model": "zorp:zorp"}])
async def test_an_unknown_name_is_not_answered_by_the_model(
    app: App, loaded: httpx.AsyncClient, path: str, names: dict[str, str]
) -> None:
    for is_streamed in (False, True):
        error = check_error(await post(loaded, path, stream=is_streamed, **names), 404, "model")
        assert error["code"] == "model_not_found"
    assert app.engine.requests == []


@PATHS
@pytest.mark.parametrize("peft", ["", "nobody", MODEL, f"{MODEL}:zorp"])
async def test_an_unknown_adapter_is_not_left_out(app: App, loaded: httpx.AsyncClient, path: str, peft: str) -> None:
    for is_streamed in (False, True):
        error = check_error(await post(loaded, path, stream=is_streamed, peft=peft), 404, "peft")
        assert error["code"] == "peft_not_found"
    assert app.engine.requests == []


@PATHS
async def test_two_adapters_in_one_request_are_refused(app: App, loaded: httpx.AsyncClient, path: str) -> None:
    check_error(await post(loaded, path, model="zorp", peft="owner/pirate:v2"), 422, "peft")
    assert app.engine.requests == []


@PATHS
async def test_a_fingerprint_tells_the_adapter_of_the_answer_and_nothing_of_others(
    client: httpx.AsyncClient, path: str
) -> None:
    before = (await ask(client, path))["system_fingerprint"]
    await load(client)
    await load(client, "half", scale=0.5)
    told = {(await ask(client, path, peft=peft))["system_fingerprint"] for peft in (None, "zorp", "half")}
    assert len(told) == 3
    assert before in told


async def test_an_adapter_counts_tokens_as_its_model_does(loaded: httpx.AsyncClient) -> None:
    for name in (MODEL, "zorp", f"{MODEL}:owner/pirate:v2"):
        answer = await loaded.post("/v1/tokenize", json={"model": name, "text": "abc"})
        assert answer.json() == {"tokens": [97, 98, 99], "count": 3}
        back = await loaded.post("/v1/detokenize", json={"model": name, "tokens": [97, 98, 99]})
        assert back.json() == {"text": "abc"}


@pytest.mark.parametrize("path", [*ADAPTER_PATHS, "../secret.gguf", "link.gguf", "up/secret.gguf", "pipe.gguf", "up"])
async def test_a_path_that_is_no_file_of_the_folder_is_refused(
    app: App, client: httpx.AsyncClient, folder: Path, path: str
) -> None:
    for given in {path, f"{folder}/{path}", f"{folder.parent}/{path}"} if not path.startswith("hf:") else {path}:
        error = check_error(await client.post(ADAPTERS, json={"id": "zorp", "path": given}), 400, "path")
        assert error["code"] == "adapter_refused"
        assert str(folder) not in error["message"]
        if not given.startswith("hf:"):
            assert error["message"] == "There is no such file in this server's folder of adapters."
    assert app.engine.adapters == {}
    assert await ids(client) == []


async def test_without_a_folder_there_is_nothing_to_load() -> None:
    async with build(WatchedEngine(ScriptedSpec())).client() as client:
        error = check_error(await client.post(ADAPTERS, json={"id": "zorp", "path": "a.gguf"}), 400, "path")
        assert "--adapter-dir" in error["message"]


async def test_downloads_are_off_unless_they_are_allowed(client: httpx.AsyncClient) -> None:
    error = check_error(await client.post(ADAPTERS, json={"id": "zorp", "path": "hf:owner/repository"}), 400, "path")
    assert "--allow-adapter-downloads" in error["message"]


async def test_an_adapter_that_is_not_for_this_model_disturbs_nobody(app: App, loaded: httpx.AsyncClient) -> None:
    app.engine.adapter_refusal = AdapterRefused("It is for a model of another kind.")
    error = check_error(await loaded.post(ADAPTERS, json={"id": "new", "path": "b.gguf"}), 400, None)
    assert error["message"] == "It is for a model of another kind."
    assert await ids(loaded) == ["zorp", "owner/pirate:v2"]
    assert texts(await ask(loaded, COMPLETIONS, peft="zorp"))


async def test_while_the_engine_is_down_loading_is_to_be_tried_again(app: App, client: httpx.AsyncClient) -> None:
    app.engine.adapter_refusal = EngineUnavailable("The engine is restarting.")
    check_error(await client.post(ADAPTERS, json={"id": "zorp", "path": "a.gguf"}), 503, None)
    app.engine.adapter_refusal = None
    await load(client)


@pytest.mark.parametrize("id", [MODEL, "zorp"])
async def test_a_name_that_is_served_is_refused(loaded: httpx.AsyncClient, id: str) -> None:
    error = check_error(await loaded.post(ADAPTERS, json={"id": id, "path": "b.gguf"}), 400, "id")
    assert error["code"] == "adapter_refused"


async def test_of_several_who_load_one_name_one_wins(app: App, client: httpx.AsyncClient) -> None:
    body = {"id": "zorp", "path": "a.gguf"}
    statuses = [
        answer.status_code for answer in await asyncio.gather(*(client.post(ADAPTERS, json=body) for _ in "abcd"))
    ]
    assert sorted(statuses) == [200, 400, 400, 400]
    assert len(app.engine.adapters) == 1


async def test_the_model_can_be_named_and_must_be_one(client: httpx.AsyncClient) -> None:
    assert (await load(client, model=MODEL))["model"] == MODEL
    for name in ("zorp", "nobody", f"{MODEL}:zorp", ""):
        body = {"id": "new", "path": "a.gguf", "model": name}
        check_error(await client.post(ADAPTERS, json=body), 404, "model")


async def test_null_and_unknown_fields_are_as_everywhere(client: httpx.AsyncClient) -> None:
    body = {"id": "zorp", "path": "a.gguf", "scale": None, "model": None, "sacle": 1}
    response = await client.post(ADAPTERS, json=body)
    assert response.headers["x-octavo-ignored"] == "sacle"
    assert response.json()["scale"] == 1


@pytest.mark.parametrize("id", ["nobody", MODEL, f"{MODEL}:zorp", "../zorp", ""])
async def test_only_an_adapter_can_be_deleted(loaded: httpx.AsyncClient, id: str) -> None:
    error = check_error(await delete(loaded, id), 404, None)
    assert error["code"] == "peft_not_found"
    assert len(await ids(loaded)) == 2


async def test_a_name_with_slashes_and_colons_can_be_deleted(loaded: httpx.AsyncClient) -> None:
    assert (await delete(loaded, "owner/pirate:v2")).json()["id"] == "owner/pirate:v2"
    assert (await loaded.delete(f"{ADAPTERS}/zorp")).json()["id"] == "zorp"
    assert await ids(loaded) == []


async def test_deleting_waits_for_a_running_stream_and_refuses_new_requests_meanwhile(app: App) -> None:
    async with listening(app) as client:
        await load(client)
        body = {"model": "zorp", "prompt": '@script {"text": "abcd", "piece_bytes": 1, "delay": 0.05}', "stream": True}
        async with client.stream("POST", COMPLETIONS, json=body) as response:
            await app.engine.started.wait()
            [card] = (await client.get(ADAPTERS)).json()["data"]
            assert card["num_running"] == 1
            deletion = asyncio.create_task(delete(client))
            while await ids(client):
                pass
            check_error(await post(client, COMPLETIONS, model="zorp"), 404, "model")
            check_error(await post(client, COMPLETIONS, peft="zorp"), 404, "peft")
            check_error(await delete(client), 404, None)
            check_error(await client.post(ADAPTERS, json={"id": "zorp", "path": "a.gguf"}), 400, "id")
            assert len(app.engine.adapters) == 1
            assert (await response.aread()).endswith(b"data: [DONE]\n\n")
        assert (await deletion).status_code == 200
        assert app.engine.adapters == {}
        await load(client, path="b.gguf")


async def test_a_client_that_hangs_up_while_it_waits_does_not_stop_the_deleting(app: App) -> None:
    async with listening(app) as client:
        await load(client)
        body = {"model": "zorp", "prompt": '@script {"text": "xyz", "piece_bytes": 1, "hang_at": 1}', "stream": True}
        async with client.stream("POST", COMPLETIONS, json=body):
            with pytest.raises(httpx.ReadTimeout):
                await client.delete(f"{ADAPTERS}/zorp", timeout=0.2)
            assert await ids(client) == []
            assert len(app.engine.adapters) == 1
        await app.engine.unloaded.wait()  # the stream's client went away too
        assert app.engine.adapters == {}


@PATHS
@pytest.mark.parametrize("is_streamed", [False, True])
async def test_a_client_that_goes_away_gives_its_adapter_back(app: App, path: str, is_streamed: bool) -> None:
    async with listening(app) as client:
        await load(client)
        script = '@script {"text": "x", "hang_at": 0}'
        text = (
            {"prompt": script} if path == COMPLETIONS else {"messages": [{"role": "user", "content": f"\n{script}\n"}]}
        )
        with pytest.raises(httpx.ReadTimeout):
            async with client.stream(
                "POST", path, json={"model": "zorp", "stream": is_streamed, "n": 2, **text}, timeout=0.2
            ) as response:
                await response.aread()
        assert (await delete(client)).status_code == 200
        assert app.engine.num_open == 0


async def test_metrics_and_log_tell_the_adapter(loaded: httpx.AsyncClient, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "octavo.request")
    await ask(loaded, CHAT, peft="zorp")
    await loaded.post(ADAPTERS, json={"id": "bad", "path": "missing.gguf"})
    lines = (await loaded.get("/metrics")).text.splitlines()
    for line in (
        'octavo_adapters_loaded{model="demo"} 2.0',
        'octavo_adapter_loads_total{model="demo",result="loaded"} 2.0',
        'octavo_adapter_loads_total{model="demo",result="refused"} 1.0',
        'octavo_generation_tokens_total{model="zorp"} 6.0',
    ):
        assert line in lines
    assert vars(caplog.records[0])["fields"]["model"] == "zorp"
    await delete(loaded)
    after = (await loaded.get("/metrics")).text
    assert 'octavo_adapters_loaded{model="demo"} 1.0' in after.splitlines()
    assert '"zorp"' not in after


async def test_the_methods_of_a_path_are_named_all(client: httpx.AsyncClient) -> None:
    assert (await client.put(ADAPTERS)).headers["allow"] == "GET, POST"
    check_error(await client.post(f"{ADAPTERS}/zorp", json={}), 405, None)
