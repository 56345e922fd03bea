"""log_prompt: what is stored, when, and how it is read back."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from octavo.api.schemas.chat import ChatCompletionResponse
from octavo.api.schemas.completions import CompletionResponse
from octavo.api.schemas.logs import LogList, LogRow
from octavo.core.keyring import ClosedKeyring
from octavo.core.log_entry import LogEntry
from octavo.engine.specs import ScriptedSpec
from octavo.errors import EngineError, RequestQuarantined
from octavo.store.prompt_log import LogQuery, PromptLog
from support.bad_inputs import CHAT, COMPLETIONS
from support.checks import check_error
from support.pictures import data_url, image_part, plain, text_part
from support.prompt_logs import open_log

from .asking import BASES, TRICKY, ask, chat, complete, folded, folded_whole, post, stream
from .calling import ONE_CALL, TOOLS
from .server import MODEL, App, WatchedEngine, build
from .test_api_disconnect import Exchange, run

LOGS = "/v1/logs"
BOTH = pytest.mark.parametrize("path", [COMPLETIONS, CHAT])
FORMS = pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])
TEMPLATE = "{% for message in messages %}[{{ message.role }}]{{ message.content }}{% endfor %}[assistant]"


@pytest.fixture
async def log(tmp_path: Path) -> AsyncIterator[PromptLog]:
    async with open_log(tmp_path) as log:
        yield log


@pytest.fixture
def app(log: PromptLog) -> App:
    return logging_app(log)


@pytest.fixture
async def client(app: App) -> AsyncIterator[httpx.AsyncClient]:
    async with app.client() as client:
        yield client


def logging_app(log: PromptLog | None, text: str = "The quick brown fox.", **spec: int | float) -> App:
    return build(WatchedEngine(ScriptedSpec(text=text, **spec)), prompt_log=log)


async def only_entry(log: PromptLog) -> LogEntry:
    [entry] = await stored(log)
    return entry


async def stored(log: PromptLog) -> Sequence[LogEntry]:
    return (await log.page(LogQuery(), 2**20)).entries


async def rows(client: httpx.AsyncClient, **query: Any) -> list[Any]:
    response = await client.get(LOGS, params=query)
    assert response.status_code == 200, response.text
    LogList.model_validate_json(response.text)
    return list(response.json()["data"])


@BOTH
async def test_a_whole_answer_is_stored_as_it_was_sent(client: httpx.AsyncClient, path: str) -> None:
    response = await post(client, path, log_prompt=True, user="ann", n=2, seed=1)
    [row] = await rows(client)
    assert row["answer"] == response.json()
    assert row["request"] == {**BASES[path], "log_prompt": True, "user": "ann", "n": 2, "seed": 1}
    assert (row["id"], row["request_id"]) == (response.json()["id"], response.headers["x-request-id"])
    assert (row["user"], row["key_id"], row["endpoint"], row["model"]) == ("ann", "", path, MODEL)
    assert (row["status"], row["finish_reasons"]) == (200, ["stop", "stop"])
    assert row["usage"] == response.json()["usage"]
    assert 0 < row["seconds_to_first_token"] <= row["seconds"]
    assert response.json()["created"] - 1 <= row["created"] <= response.json()["created"] + 1


@BOTH
@pytest.mark.parametrize(
    "fields",
    [
        {"n": 2},
        {"logprobs": True, "top_logprobs": 2},
        {"loglikelihood": True},
        {"stream_options": {"include_usage": True}},
        {"stop": "fox"},
        {"max_tokens": 0},
    ],
    ids=lambda fields: next(iter(fields)),
)
async def test_a_streamed_answer_is_stored_whole(client: httpx.AsyncClient, path: str, fields: dict[str, Any]) -> None:
    if path == COMPLETIONS and "logprobs" in fields:
        fields = {"logprobs": 2, "echo": True}
    events = await stream(client, path, log_prompt=True, **fields)
    [row] = await rows(client)
    {CHAT: ChatCompletionResponse, COMPLETIONS: CompletionResponse}[path].model_validate(row["answer"])
    assert folded_whole(row["answer"]) == folded(events)
    assert row["id"] == row["answer"]["id"] == events[0]["id"]
    assert row["finish_reasons"] == [choice["finish_reason"] for choice in row["answer"]["choices"]]
    assert row["usage"] == row["answer"]["usage"]


@FORMS
async def test_a_call_is_stored_with_its_arguments(log: PromptLog, is_streamed: bool) -> None:
    async with logging_app(log, ONE_CALL).client() as client:
        await post(client, CHAT, tools=TOOLS, log_prompt=True, stream=is_streamed)
        [row] = await rows(client)
    [call] = row["answer"]["choices"][0]["message"]["tool_calls"]
    assert json.loads(call["function"]["arguments"]) == {"city": "Paris"}
    assert row["finish_reasons"] == ["tool_calls"]


class WatchedExchange(Exchange):
    """Knows how many rows the log had when each part of the answer was sent."""

    def __init__(self, path: str, body: dict[str, Any], log: PromptLog) -> None:
        super().__init__(path, body)
        self._log = log
        self.parts: list[tuple[bytes, int]] = []

    async def send(self, message: Any) -> None:
        num_rows = len(await stored(self._log))
        self.parts.append((message.get("body", b""), num_rows))


@BOTH
async def test_the_row_is_stored_before_the_first_byte_of_a_whole_answer(app: App, log: PromptLog, path: str) -> None:
    exchange = WatchedExchange(path, {**BASES[path], "log_prompt": True}, log)
    await run(app, exchange)
    assert [num_rows for _, num_rows in exchange.parts] == [1, 1]


@BOTH
async def test_the_row_is_stored_before_the_last_bytes_of_a_stream(app: App, log: PromptLog, path: str) -> None:
    exchange = WatchedExchange(path, {**BASES[path], "log_prompt": True, "stream": True}, log)
    await run(app, exchange)
    assert len(exchange.parts) > 3
    assert [num_rows for _, num_rows in exchange.parts] == [0] * (len(exchange.parts) - 1) + [1]
    assert [body for body, num_rows in exchange.parts if num_rows] == [b"data: [DONE]\n\n"]


@BOTH
@pytest.mark.parametrize("fields", [{}, {"log_prompt": None}, {"log_prompt": False}], ids=str)
async def test_nothing_is_stored_of_a_request_that_does_not_ask_for_it(
    client: httpx.AsyncClient, path: str, fields: dict[str, Any]
) -> None:
    assert (await post(client, path, **fields)).status_code == 200
    assert await rows(client) == []


async def test_prompts_are_the_texts_that_the_model_was_given(app: App, client: httpx.AsyncClient) -> None:
    app.engine.chat_template = TEMPLATE
    await chat(client, {"role": "system", "content": "Be."}, {"role": "user", "content": TRICKY}, log_prompt=True)
    await complete(client, prompt=["one", "two"], n=2, log_prompt=True)
    await complete(client, prompt=[104, 105], best_of=2, log_prompt=True)
    told = [row["prompts"] for row in await rows(client)]
    assert told == [["hi"], ["one", "two"], [f"[system]Be.[user]{TRICKY}[assistant]"]]


async def test_an_image_stands_in_its_place_of_the_prompt(app: App, client: httpx.AsyncClient) -> None:
    app.engine.has_vision = True
    app.engine.chat_template = TEMPLATE
    parts = [text_part("a"), image_part(data_url(plain("red"))), text_part("b"), image_part(data_url(plain("blue")))]
    response = await chat(client, {"role": "user", "content": [*parts, text_part("c")]}, log_prompt=True)
    assert response.status_code == 200, response.text
    [row] = await rows(client)
    assert row["prompts"] == ["[user]a<image>b<image>c[assistant]"]
    assert row["request"]["messages"][0]["content"][:4] == parts


async def test_the_body_is_stored_to_the_letter(client: httpx.AsyncClient, log: PromptLog) -> None:
    body = (
        '{"model": "demo",\r\n\t"prompt": "\\u0000\\ud83d\\ude00 é 漢\u2028",  '
        '"x": [1e2, 12345678901234567890], "log_prompt":true}'
    )
    response = await client.post(COMPLETIONS, content=body.encode(), headers={"content-type": "application/json"})
    assert response.status_code == 200, response.text
    entry = await only_entry(log)
    assert entry.request == body
    assert entry.prompts == ("\0😀 é 漢\u2028",)
    [row] = await rows(client)
    assert row["request"] == json.loads(body)


@BOTH
@FORMS
async def test_without_a_log_a_request_that_is_to_be_logged_is_refused(path: str, is_streamed: bool) -> None:
    app = logging_app(None)
    async with app.client() as client:
        error = check_error(await post(client, path, log_prompt=True, stream=is_streamed), 400, "log_prompt")
        assert error["code"] == "prompt_log_off"
        assert not app.engine.requests
        assert (await post(client, path, log_prompt=False)).status_code == 200
        assert check_error(await client.get(LOGS), 400, "log_prompt")["code"] == "prompt_log_off"


async def test_only_the_switch_switches(client: httpx.AsyncClient) -> None:
    for value in (1, 0, "true", [], {}):
        check_error(await complete(client, log_prompt=value), 422, "log_prompt")


@BOTH
async def test_a_row_that_cannot_be_stored_ends_a_stream_with_an_error_and_not_as_if_it_were_whole(
    tmp_path: Path, path: str
) -> None:
    (tmp_path / "spool").write_text("no folder")
    async with open_log(tmp_path) as log, logging_app(log).client() as client:
        response = await post(client, path, log_prompt=True, stream=True)
        *chunks, last, rest = response.text.split("\n\n")
        assert chunks
        assert rest == ""
        assert json.loads(last.removeprefix("data: "))["error"]["code"] == "prompt_log_unavailable"
        assert "[DONE]" not in response.text


@BOTH
async def test_a_row_that_cannot_be_stored_makes_an_error_of_a_whole_answer(tmp_path: Path, path: str) -> None:
    (tmp_path / "spool").write_text("no folder")
    async with open_log(tmp_path) as log, logging_app(log).client() as client:
        error = check_error(await post(client, path, log_prompt=True), 503, None)
        assert error["code"] == "prompt_log_unavailable"
        assert (await post(client, path)).status_code == 200
        metrics = (await client.get("/metrics")).text
        assert 'octavo_prompt_log_rows_total{result="lost"} 1.0' in metrics
        assert 'octavo_prompt_log_rows_total{result="logged"} 0.0' in metrics


LARGE = {"n": 8, "max_tokens": 4000}


@BOTH
async def test_a_whole_answer_that_becomes_more_than_a_row_may_be_ends_early_as_an_error(
    tmp_path: Path, path: str
) -> None:
    async with open_log(tmp_path, max_spool=2**16) as log:
        app = logging_app(log, "x" * 4000)
        async with app.client() as client:
            response = await post(client, path, log_prompt=True, **LARGE)
            error = check_error(response, 400, "log_prompt")
            [row] = await rows(client)
    assert error["code"] == "log_entry_too_large"
    assert "retry-after" not in response.headers
    assert (row["status"], row["answer"]) == (400, response.json())
    assert 0 < row["usage"]["completion_tokens"] < 8 * 4000
    assert app.engine.num_open == 0


@BOTH
async def test_a_stream_that_becomes_more_than_a_row_may_be_ends_early_with_an_error(tmp_path: Path, path: str) -> None:
    async with open_log(tmp_path, max_spool=2**16) as log, logging_app(log, "x" * 4000).client() as client:
        response = await post(client, path, log_prompt=True, stream=True, **LARGE)
        *chunks, last, _ = response.text.split("\n\n")
        [row] = await rows(client)
    error = json.loads(last.removeprefix("data: "))["error"]
    assert error["code"] == "log_entry_too_large"
    assert (row["status"], row["answer"]["error"]) == (400, error)
    assert chunks
    assert sum(map(len, chunks)) > len(json.dumps(row["answer"]["choices"])) > 10_000


@BOTH
@FORMS
async def test_a_body_that_is_more_than_a_row_may_be_is_refused_before_anything_is_generated(
    tmp_path: Path, path: str, is_streamed: bool
) -> None:
    async with open_log(tmp_path, max_spool=2**12) as log:
        app = logging_app(log)
        async with app.client() as client:
            response = await post(client, path, log_prompt=True, user="u" * 1100, stream=is_streamed)
            assert check_error(response, 400, "log_prompt")["code"] == "log_entry_too_large"
            assert 'octavo_prompt_log_rows_total{result="refused"} 1.0' in (await client.get("/metrics")).text
            assert await rows(client) == []
    assert not app.engine.requests


async def test_more_choices_than_fit_into_a_row_are_refused_before_anything_is_generated(tmp_path: Path) -> None:
    async with open_log(tmp_path, max_spool=2**14) as log:
        app = logging_app(log)
        async with app.client() as client:
            response = await client.post(
                COMPLETIONS, json={**BASES[COMPLETIONS], "prompt": ["x"] * 20, "n": 20, "log_prompt": True}
            )
            assert check_error(response, 400, "log_prompt")["code"] == "log_entry_too_large"
    assert not app.engine.requests


async def test_of_many_at_once_only_those_begin_whose_rows_have_room(tmp_path: Path) -> None:
    async with open_log(tmp_path, max_spool=2**15) as log:
        app = logging_app(log, num_slots=40, hang_at=2)
        begun: list[tuple[Exchange, asyncio.Task[None]]] = []
        while await begins(app, exchange := Exchange(COMPLETIONS, {**BASES[COMPLETIONS], "log_prompt": True}), begun):
            assert len(begun) < 40
        assert exchange.sent[0]["status"] == 503
        assert begun
        for exchange, _ in begun:
            exchange.gone.set()
        await asyncio.gather(*(task for _, task in begun))
        async with app.client() as client:
            assert len(await rows(client)) == len(begun)
            app.engine.refusal = RequestQuarantined("It ended the engine again and again.")
            for _ in range(40):  # what was reserved has been given back, each time
                assert (await complete(client, log_prompt=True)).status_code == 400


async def begins(app: App, exchange: Exchange, begun: list[tuple[Exchange, asyncio.Task[None]]]) -> bool:
    """Whether the engine gets it, or it is answered before."""
    task = asyncio.create_task(run(app, exchange))
    arrival = asyncio.create_task(app.engine.wait_for_requests(len(begun) + 1))
    await asyncio.wait({task, arrival}, return_when=asyncio.FIRST_COMPLETED)
    arrival.cancel()
    if not task.done():
        begun.append((exchange, task))
    return not task.done()


@BOTH
@FORMS
async def test_an_error_before_the_first_byte_is_stored_with_its_body(
    app: App, client: httpx.AsyncClient, path: str, is_streamed: bool
) -> None:
    app.engine.refusal = RequestQuarantined("It ended the engine again and again.")
    response = await post(client, path, log_prompt=True, stream=is_streamed)
    assert response.status_code == 400
    [row] = await rows(client)
    assert (row["status"], row["answer"]) == (400, response.json())
    assert (row["finish_reasons"], row["seconds_to_first_token"]) == ([], None)
    assert row["usage"]["completion_tokens"] == 0
    assert row["usage"]["prompt_tokens"] > 0


@BOTH
async def test_an_error_within_a_stream_is_stored_behind_what_had_come(log: PromptLog, path: str) -> None:
    async with logging_app(log, raise_at=3).client() as client:
        response = await post(client, path, log_prompt=True, stream=True)
        *chunks, last, _ = response.text.split("\n\n")
        [row] = await rows(client)
    assert row["status"] == 500
    assert row["answer"]["error"] == json.loads(last.removeprefix("data: "))["error"]
    assert row["answer"]["error"]["code"] == EngineError.code
    [choice] = row["answer"]["choices"]
    told = [json.loads(chunk.removeprefix("data: "))["choices"][0] for chunk in chunks]
    text = choice["text"] if path == COMPLETIONS else choice["message"]["content"]
    assert text == "".join(part["text"] if path == COMPLETIONS else part["delta"]["content"] for part in told)
    assert text
    assert choice["finish_reason"] is None


@BOTH
async def test_a_request_that_is_refused_leaves_no_row(app: App, client: httpx.AsyncClient, path: str) -> None:
    for fields in ({"temperature": 9}, {"model": "nobody"}, {"peft": "nobody"}, {"n": 129}):
        assert (await post(client, path, log_prompt=True, **fields)).status_code in (404, 422)
    assert await rows(client) == []
    assert not app.engine.requests


async def test_a_request_that_finds_the_queue_full_leaves_no_row(log: PromptLog) -> None:
    app = logging_app(log, num_slots=1, hang_at=0)
    body = {"model": MODEL, "prompt": "x", "log_prompt": True}
    waiting = [Exchange(COMPLETIONS, body) for _ in range(5)]
    tasks = [asyncio.create_task(run(app, exchange)) for exchange in waiting]
    await app.engine.wait_for_requests(5)
    async with app.client() as client:
        assert (await complete(client, log_prompt=True)).status_code == 503
        assert await rows(client) == []
        for exchange in waiting:
            exchange.gone.set()
        await asyncio.gather(*tasks)
        assert [row["status"] for row in await rows(client)] == [499] * 5


@BOTH
@FORMS
async def test_of_a_client_that_goes_away_what_had_come_is_stored(log: PromptLog, path: str, is_streamed: bool) -> None:
    app = logging_app(log, hang_at=3)
    exchange = Exchange(path, {**BASES[path], "n": 2, "stream": is_streamed, "log_prompt": True})
    task = asyncio.create_task(run(app, exchange))
    await app.engine.wait_for_requests(2)
    for _ in range(1000):  # until all that comes has come
        await asyncio.sleep(0)
    exchange.gone.set()
    await task
    assert app.engine.num_open == 0
    async with app.client() as client:
        [row] = await rows(client)
    assert (row["status"], row["finish_reasons"]) == (499, [])
    for choice in row["answer"]["choices"]:
        assert (choice["text"] if path == COMPLETIONS else choice["message"]["content"]) == "The quick br"


async def test_of_a_client_that_no_longer_reads_what_had_come_is_stored(log: PromptLog) -> None:
    app = logging_app(log, "x" * 100_000)
    exchange = Exchange(
        COMPLETIONS, {"model": MODEL, "prompt": "x", "stream": True, "max_tokens": 4000, "log_prompt": True}
    )
    exchange.reading.clear()
    task = asyncio.create_task(run(app, exchange))
    await app.engine.started.wait()
    exchange.gone.set()
    await task
    entry = await only_entry(log)
    assert (entry.status, entry.finish_reasons) == (499, ())
    assert json.loads(entry.answer)["choices"][0]["text"].startswith("xxxx")


async def test_a_client_that_goes_away_while_its_row_is_stored_ends_nothing(log: PromptLog) -> None:
    app = logging_app(log)
    for is_streamed in (False, True):
        exchange = Exchange(COMPLETIONS, {**BASES[COMPLETIONS], "stream": is_streamed, "log_prompt": True})
        app.engine.ended.clear()
        task = asyncio.create_task(run(app, exchange))
        await app.engine.ended.wait()
        exchange.gone.set()
        await task
    assert len(await stored(log)) == 2


async def test_rows_are_listed_newest_first_in_pages(client: httpx.AsyncClient) -> None:
    for number in range(25):
        await complete(client, prompt=str(number), log_prompt=True)
    first = (await client.get(LOGS, params={"limit": 13})).json()
    assert (first["object"], first["has_more"]) == ("list", True)
    rest = (await client.get(LOGS, params={"limit": 13, "before": first["data"][-1]["id"]})).json()
    assert not rest["has_more"]
    told = [row["request"]["prompt"] for row in first["data"] + rest["data"]]
    assert told == [str(number) for number in reversed(range(25))]
    assert len(await rows(client)) == 25
    assert (await client.get(LOGS, params={"limit": 12, "before": first["data"][-1]["id"]})).json()["has_more"] is False


async def test_rows_are_filtered(client: httpx.AsyncClient) -> None:
    for user in ("ann", "bob", "ann"):
        await complete(client, user=user, log_prompt=True)
    first = (await rows(client))[-1]
    assert [row["user"] for row in await rows(client, user="ann")] == ["ann", "ann"]
    assert len(await rows(client, model=MODEL)) == 3
    assert await rows(client, model="nobody") == []
    assert await rows(client, key="nobody") == []
    assert first not in await rows(client, since=first["created"] + 1e-6)
    assert first in await rows(client, since=first["created"])
    assert await rows(client, until=first["created"]) == []
    assert await rows(client, until=first["created"] + 1e-6) == [first]


async def test_a_row_names_its_key_and_never_shows_it(log: PromptLog) -> None:
    keys = ("key-of-ann", "key-of-bob")
    app = build(WatchedEngine(ScriptedSpec()), prompt_log=log, keyring=ClosedKeyring(keys))
    ids = []
    async with app.client() as client:
        for key in keys:
            client.headers["authorization"] = f"Bearer {key}"
            ids.append((await ask(client, CHAT, log_prompt=True))["id"])
        both = await rows(client)
        for id, row in zip(ids, reversed(both), strict=True):
            assert [found["id"] for found in await rows(client, key=row["key_id"])] == [id]
    assert len({row["key_id"] for row in both}) == 2
    assert not any(key in json.dumps(both) for key in keys)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("limit", "0"),
        ("limit", "1001"),
        ("limit", "x"),
        ("limit", ""),
        ("limit", "1.5"),
        ("limit", "9" * 5000),
        ("since", "nan"),
        ("until", "inf"),
        ("until", "yesterday"),
        ("user", "a\0b"),
        ("model", "x" * 1001),
        ("usr", "ann"),
    ],
)
async def test_a_bad_query_is_refused_with_the_parameters_name(
    client: httpx.AsyncClient, name: str, value: str
) -> None:
    error = check_error(await client.get(LOGS, params={name: value}), 422, name)
    assert error["detail"][0]["loc"] == ["query", name]


async def test_one_row_is_found_by_its_id(client: httpx.AsyncClient) -> None:
    answer = await ask(client, CHAT, log_prompt=True)
    response = await client.get(f"{LOGS}/{answer['id']}")
    LogRow.model_validate_json(response.text)
    assert [response.json()] == await rows(client)
    for unknown in ("chatcmpl-0", "%00", "x" * 5000):
        error = check_error(await client.get(f"{LOGS}/{unknown}"), 404, None)
        assert error["code"] == "log_entry_not_found"
    check_error(await client.get(LOGS, params={"before": "chatcmpl-0"}), 404, "before")


async def test_a_log_that_is_well_says_nothing_when_the_server_is_asked_whether_it_is_ready(
    client: httpx.AsyncClient,
) -> None:
    response = await client.get("/ready")
    assert (response.json()["status"], response.json()["prompt_log"]) == ("ok", "")


async def test_the_metrics_count_the_rows(client: httpx.AsyncClient, app: App) -> None:
    for _ in range(3):
        await complete(client, log_prompt=True)
    await rows(client)
    metrics = (await client.get("/metrics")).text
    assert 'octavo_prompt_log_rows_total{result="logged"} 3.0' in metrics
    assert "octavo_prompt_log_degraded 0.0" in metrics
    assert "octavo_prompt_log_set_aside_files 0.0" in metrics
    assert "octavo_prompt_log_set_aside_bytes 0.0" in metrics
