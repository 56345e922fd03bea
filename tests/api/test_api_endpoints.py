import json
import logging
import re

import httpx
import pytest

from octavo import errors
from octavo.api.errors import KINDS, error_body, kind_of
from octavo.core.limits import Limits
from octavo.engine.base import EngineHealth, EngineState
from octavo.engine.specs import ScriptedSpec
from octavo.errors import OctavoError
from octavo.telemetry.user_hash import user_hash
from support.bad_inputs import CHAT, COMPLETIONS, JSON
from support.checks import check_error, check_error_body

from .server import MODEL, App, LoadingEngine, WatchedEngine, build, listening


async def test_the_served_models_are_listed(client: httpx.AsyncClient) -> None:
    card = {
        "id": MODEL,
        "object": "model",
        "created": 1_700_000_000,
        "owned_by": "octavo",
        "context_length": 4096,
        "parent": None,
    }
    assert (await client.get("/v1/models")).json() == {"object": "list", "data": [card]}
    assert (await client.get(f"/v1/models/{MODEL}")).json() == card
    assert check_error(await client.get("/v1/models/a/b"), 404, "model")["code"] == "model_not_found"


@pytest.mark.parametrize("text", ["", "plain", "漢字 🏳️‍🌈", "a<|end|>b", "<|start|>"])
async def test_tokens_give_their_text_back(client: httpx.AsyncClient, text: str) -> None:
    answer = (await client.post("/v1/tokenize", json={"model": MODEL, "text": text})).json()
    assert answer["count"] == len(answer["tokens"])
    back = await client.post("/v1/detokenize", json={"model": MODEL, "tokens": answer["tokens"]})
    assert back.json() == {"text": text}


async def test_special_tokens_of_a_text_are_found(client: httpx.AsyncClient) -> None:
    for field in ({}, {"add_special_tokens": None}, {"add_special_tokens": False}):
        answer = await client.post("/v1/tokenize", json={"model": MODEL, "text": "a<|end|>", **field})
        assert answer.json() == {"tokens": [97, 256], "count": 2}


async def test_a_text_longer_than_the_context_can_be_counted(client: httpx.AsyncClient) -> None:
    answer = await client.post("/v1/tokenize", json={"model": MODEL, "text": "x" * 5000})
    assert answer.json()["count"] == 5000


async def test_bytes_that_are_no_text_are_replaced(client: httpx.AsyncClient) -> None:
    answer = await client.post("/v1/detokenize", json={"model": MODEL, "tokens": [97, 0xE6, 0xBC, 98]})
    assert answer.json() == {"text": "a\ufffdb"}


async def test_a_live_server_is_healthy_and_a_model_that_serves_is_ready(client: httpx.AsyncClient) -> None:
    assert (await client.get("/health")).json() == {"status": "ok"}
    ready = await client.get("/ready")
    assert ready.status_code == 200
    assert ready.json()["models"] == [{"id": MODEL, "state": "ready", "progress": 1.0, "message": ""}]


@pytest.mark.parametrize("state", [state for state in EngineState if state is not EngineState.READY])
async def test_a_model_that_cannot_serve_is_not_ready(app: App, client: httpx.AsyncClient, state: EngineState) -> None:
    app.engine.health_now = EngineHealth(state, progress=0.4, message="reading")
    response = await client.get("/ready")
    assert response.status_code == 503
    assert int(response.headers["retry-after"]) >= 1
    body = response.json()
    assert body.pop("models") == [{"id": MODEL, "state": state, "progress": 0.4, "message": "reading"}]
    check_error_body(body, 503)
    assert (await client.get("/health")).status_code == 200


async def test_while_a_model_loads_its_requests_are_told_when_to_try_again() -> None:
    async with build(LoadingEngine(ScriptedSpec())).client() as client:
        for path, body in (
            (COMPLETIONS, {"prompt": "x"}),
            (CHAT, {"messages": [{"role": "user", "content": "x"}]}),
            ("/v1/tokenize", {"text": "x"}),
            ("/v1/detokenize", {"tokens": [1]}),
        ):
            response = await client.post(path, json={"model": MODEL, **body})
            check_error(response, 503, None)
            assert response.headers["retry-after"] == "7"
        assert (await client.get("/v1/models")).json()["data"][0]["context_length"] is None


async def test_metrics_count_requests_and_show_the_engine(app: App, client: httpx.AsyncClient) -> None:
    await client.post(COMPLETIONS, json={"model": MODEL, "prompt": "x"})
    await client.post(COMPLETIONS, json={"model": MODEL, "prompt": "x", "n": 0})
    await client.get("/nothing/here")
    app.engine.health_now = EngineHealth(EngineState.READY, num_running=3, num_waiting=2, batch_size=3, num_restarts=1)
    response = await client.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain; version=")
    for line in (
        'octavo_requests_total{endpoint="/v1/completions",status="200"} 1.0',
        'octavo_requests_total{endpoint="/v1/completions",status="422"} 1.0',
        'octavo_requests_total{endpoint="unmatched",status="404"} 1.0',
        'octavo_generation_tokens_total{model="demo"} 6.0',
        'octavo_requests_running{model="demo"} 3.0',
        'octavo_requests_waiting{model="demo"} 2.0',
        'octavo_engine_restarts_total{model="demo"} 1.0',
    ):
        assert line in response.text.splitlines()


async def test_openapi_documents_every_body(client: httpx.AsyncClient) -> None:
    document = (await client.get("/openapi.json")).json()
    schemas = document["components"]["schemas"]
    for path in (COMPLETIONS, CHAT, "/v1/tokenize", "/v1/detokenize", "/v1/adapters"):
        operation = document["paths"][path]["post"]
        for described in (operation["requestBody"], operation["responses"]["200"], operation["responses"]["422"]):
            for content in described["content"].values():
                [name] = re.findall(r"#/components/schemas/(\w+)", json.dumps(content))
                assert schemas[name]["properties"]
    references = re.findall(r'"#/components/schemas/([^"]+)"', (await client.get("/openapi.json")).text)
    assert set(references) <= set(schemas)
    assert "HTTPValidationError" not in schemas
    assert {"temperature", "prompt", "logit_bias", "stop"} <= set(schemas["CompletionRequest"]["properties"])


async def test_openapi_tells_the_bounds_of_this_server() -> None:
    app = build(WatchedEngine(ScriptedSpec()), limits=Limits(max_n=3, max_stop_length=5, max_prompts=7))
    async with listening(app) as client:
        schemas = (await client.get("/openapi.json")).json()["components"]["schemas"]
    fields = schemas["CompletionRequest"]["properties"]
    assert [part.get("maximum") for part in fields["best_of"]["anyOf"]] == [3, None]
    assert [part.get("maxLength") for part in fields["stop"]["anyOf"]] == [5, None, None]
    assert [part.get("maxItems") for part in fields["prompt"]["anyOf"]] == [None, 7, None, 7]


async def test_every_documented_example_is_answered(client: httpx.AsyncClient) -> None:
    document = (await client.get("/openapi.json")).json()
    schemas = document["components"]["schemas"]
    for path, schema in ((COMPLETIONS, "CompletionRequest"), (CHAT, "ChatCompletionRequest")):
        answers = [(await client.post(path, json=example)).json() for example in schemas[schema]["examples"]]
        assert any(answer["choices"][0]["logprobs"] for answer in answers)


async def test_the_documentation_needs_no_other_host(client: httpx.AsyncClient) -> None:
    response = await client.get("/docs")
    assert response.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in response.headers["content-security-policy"]
    assert "//" not in re.sub(r"<!--.*?-->", "", response.text)


async def test_the_root_says_what_answers(client: httpx.AsyncClient) -> None:
    body = (await client.get("/")).json()
    assert body["name"] == "octavo"
    for path in body["links"].values():
        assert (await client.get(path)).status_code == 200


@pytest.mark.parametrize("given", ["abc-1.2_3", "x" * 128])
async def test_a_harmless_request_id_is_kept(client: httpx.AsyncClient, given: str) -> None:
    for path in ("/health", "/nowhere"):
        assert (await client.get(path, headers={"x-request-id": given})).headers["x-request-id"] == given


@pytest.mark.parametrize("given", ["", "x" * 129, "a b", "a\tb", "a=b"])
async def test_another_request_id_is_replaced(client: httpx.AsyncClient, given: str) -> None:
    ids = {(await client.get("/health", headers={"x-request-id": given})).headers["x-request-id"] for _ in range(2)}
    assert len(ids) == 2
    assert all(re.fullmatch(r"req-[0-9a-f]{32}", id) for id in ids)


@pytest.mark.parametrize("is_streamed", [False, True])
async def test_each_request_leaves_one_line_without_its_prompt(
    client: httpx.AsyncClient, caplog: pytest.LogCaptureFixture, is_streamed: bool
) -> None:
    caplog.set_level(logging.INFO, "octavo.request")
    body = {"model": MODEL, "prompt": "secret words", "n": 2, "foo": 1, "stream": is_streamed, "user": "secret name"}
    await client.post(COMPLETIONS, json=body, headers={"x-request-id": "r1"})
    [record] = [record for record in caplog.records if record.name == "octavo.request"]
    fields = vars(record)["fields"]
    assert fields.pop("seconds") >= fields.pop("seconds_to_first_token") >= fields.pop("queue_seconds") >= 0
    assert fields == {
        "id": "r1",
        "key": "",
        "user": user_hash("secret name"),
        "endpoint": COMPLETIONS,
        "model": MODEL,
        "status": 200,
        "prompt_tokens": 12,
        "generated_tokens": 12,
        "cached_tokens": 0,
        "finish_reasons": ["stop", "stop"],
        "ignored_fields": ["foo"],
        "error": "",
        "trace_id": "",
    }
    assert "secret" not in caplog.text


def test_every_error_has_a_status_and_only_bad_requests_have_details() -> None:
    for error_class in vars(errors).values():
        if not (isinstance(error_class, type) and issubclass(error_class, OctavoError)):
            continue
        error = error_class("what happened")
        assert 400 <= kind_of(error).status < 600
        assert "what happened" in error_body(error)["message"]
        assert ("detail" in error_body(error)) == (kind_of(error).status == 422)
    assert {kind.status for kind in KINDS.values()} == {
        *(400, 401, 403, 404, 405, 408, 413, 414, 415, 422, 429, 431, 500, 503)
    }


@pytest.mark.parametrize("length", [str(8 * 2**20 + 1), "9" * 5000])
async def test_a_length_that_is_too_much_is_refused_before_a_byte_is_read(
    client: httpx.AsyncClient, length: str
) -> None:
    check_error(await client.post(COMPLETIONS, content=b"{}", headers={**JSON, "content-length": length}), 413, None)


async def test_a_body_longer_than_its_stated_length_is_refused_all_the_same(client: httpx.AsyncClient) -> None:
    headers = {**JSON, "content-length": "10"}
    check_error(await client.post(COMPLETIONS, content=bytes(8 * 2**20 + 1), headers=headers), 413, None)


async def test_a_connection_is_closed_after_a_body_that_was_not_read(app: App) -> None:
    async with listening(app) as client:
        response = await client.post(COMPLETIONS, content=bytes(50 * 2**20), headers=JSON)
        check_error(response, 413, None)
        assert response.headers["connection"] == "close"
        assert (await client.get("/health")).status_code == 200
