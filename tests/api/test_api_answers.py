"""The shape of answers, streamed and whole."""

import asyncio
import json
from typing import Any

import httpx
import pytest

from octavo.api.schemas.chat import ChatCompletionChunk, ChatCompletionResponse
from octavo.api.schemas.completions import CompletionResponse
from octavo.errors import EngineDied, EngineError, EngineUnavailable, Overloaded
from support.bad_inputs import CHAT, COMPLETIONS
from support.checks import check_error, check_error_body

from .asking import BASES, TRICKY, folded, post, stream, text_of, texts
from .server import MODEL, App, scripted


@pytest.mark.parametrize(("path", "schema"), [(COMPLETIONS, CompletionResponse), (CHAT, ChatCompletionResponse)])
async def test_an_answer_is_what_the_schema_documents(client: httpx.AsyncClient, path: str, schema: Any) -> None:
    body = (await post(client, path, n=2)).json()
    schema.model_validate_json(json.dumps(body))
    assert body["id"].startswith({COMPLETIONS: "cmpl-", CHAT: "chatcmpl-"}[path])
    assert body["model"] == MODEL
    assert body["system_fingerprint"] == "fp_scripted"
    assert [choice["index"] for choice in body["choices"]] == [0, 1]
    assert texts(body) == ["The quick brown fox."] * 2
    usage = body["usage"]
    assert usage["completion_tokens"] == 12
    assert usage["total_tokens"] == usage["prompt_tokens"] + 12


@pytest.mark.parametrize(("path", "schema"), [(COMPLETIONS, CompletionResponse), (CHAT, ChatCompletionChunk)])
@pytest.mark.parametrize("options", [None, {"include_usage": True}])
async def test_chunks_are_what_the_schema_documents(
    client: httpx.AsyncClient, path: str, schema: Any, options: Any
) -> None:
    events = await stream(client, path, n=3, stream_options=options)
    assert events[-1] == "[DONE]"
    for event in events[:-1]:
        schema.model_validate_json(json.dumps(event))
        assert len(event["choices"]) == 1 or event["usage"] is not None
    assert len({(event["id"], event["created"], event["model"]) for event in events[:-1]}) == 1


@pytest.mark.parametrize("path", BASES)
async def test_a_usage_comes_only_when_asked_for_and_then_once(client: httpx.AsyncClient, path: str) -> None:
    for options in (None, {}, {"include_usage": None}, {"include_usage": False}):
        events = await stream(client, path, stream_options=options)
        assert not any("usage" in event for event in events[:-1])
    *chunks, last, _ = await stream(client, path, n=2, stream_options={"include_usage": True})
    assert all(chunk["usage"] is None for chunk in chunks)
    assert last["choices"] == []
    assert last["usage"] == (await post(client, path, n=2)).json()["usage"]


@pytest.mark.parametrize("path", BASES)
async def test_each_choice_ends_once_and_only_its_last_chunk_says_why(client: httpx.AsyncClient, path: str) -> None:
    choices = folded(await stream(client, path, n=5))
    assert len(choices) == 5
    for choice in choices:
        assert choice.reasons[-1] == "stop"
        assert not any(choice.reasons[:-1])


async def test_a_chat_choice_begins_with_the_role_and_has_no_empty_deltas(client: httpx.AsyncClient) -> None:
    events = await stream(client, CHAT, n=3)
    for index in range(3):
        first, *middle, last = [e["choices"][0]["delta"] for e in events[:-1] if e["choices"][0]["index"] == index]
        assert first == {"role": "assistant", "content": ""}
        assert last == {}
        assert all(set(delta) == {"content"} and delta["content"] for delta in middle)


async def test_a_completion_has_no_empty_chunks_before_the_last(client: httpx.AsyncClient) -> None:
    events = await stream(client, COMPLETIONS, stop="never found in here")
    assert all(event["choices"][0]["text"] or event["choices"][0]["finish_reason"] for event in events[:-1])


async def test_choices_are_ordered_by_prompt_then_by_sample(app: App, client: httpx.AsyncClient) -> None:
    prompts = [f'{name}\n@script {{"text": "{name}"}}' for name in "abc"]
    body = (await post(client, COMPLETIONS, prompt=prompts, n=2)).json()
    assert texts(body) == ["a", "a", "b", "b", "c", "c"]
    assert [choice["index"] for choice in body["choices"]] == list(range(6))
    assert body["usage"]["prompt_tokens"] == sum(len(prompt.encode()) for prompt in prompts)
    choices = folded(await stream(client, COMPLETIONS, prompt=prompts, n=2))
    assert [choice.text for choice in choices] == texts(body)


@pytest.mark.parametrize("path", BASES)
@pytest.mark.parametrize("piece_bytes", range(1, 7))
async def test_streamed_text_is_the_text_wherever_tokens_cut_characters(path: str, piece_bytes: int) -> None:
    app = scripted(TRICKY, piece_bytes=piece_bytes)
    async with app.client() as client:
        whole = texts((await post(client, path)).json())
        events = await stream(client, path)
    assert whole == [folded(events)[0].text] == [TRICKY]
    assert not any("\ufffd" in text_of(choice) for event in events[:-1] for choice in event["choices"])


@pytest.mark.parametrize("path", BASES)
@pytest.mark.parametrize("piece_bytes", range(1, 7))
@pytest.mark.parametrize("stop", ["漢字", "字か", "🏳️‍🌈", "👩‍👧", "交じり 🏳", "\u0301", "nd", "never", "e 漢"])
async def test_stop_strings_cut_streamed_and_whole_text_alike(path: str, piece_bytes: int, stop: str) -> None:
    app = scripted(TRICKY, piece_bytes=piece_bytes)
    async with app.client() as client:
        [whole] = texts((await post(client, path, stop=stop)).json())
        [choice] = folded(await stream(client, path, stop=[stop, "not in it"]))
    assert whole == choice.text == TRICKY.partition(stop)[0]
    assert choice.finish_reason == "stop"
    assert app.engine.num_open == 0


async def test_all_answers_but_the_cut_one_go_on(app: App, client: httpx.AsyncClient) -> None:
    prompts = ['@script {"text": "one STOP two"}', '@script {"text": "a much longer text, without it"}']
    body = (await post(client, COMPLETIONS, prompt=prompts, stop="STOP")).json()
    assert texts(body) == ["one ", "a much longer text, without it"]


@pytest.mark.parametrize("path", BASES)
async def test_an_error_in_a_stream_is_its_last_event(path: str) -> None:
    app = scripted(raise_at=2)
    async with app.client() as client:
        events = await stream(client, path, stream_options={"include_usage": True})
        check_error(await post(client, path), 500, None)
    assert "[DONE]" not in events
    assert "".join(text_of(event["choices"][0]) for event in events[:-1]) == "The quic"
    assert check_error_body(events[-1], 500)["code"] == "engine_error"


@pytest.mark.parametrize("path", BASES)
@pytest.mark.parametrize("is_streamed", [False, True])
@pytest.mark.parametrize(
    ("refusal", "status", "retry_after"),
    [
        (Overloaded("The queue is full.", retry_after=2.1), 503, "3"),
        (EngineUnavailable("The model is loading.", retry_after=0), 503, "1"),
        (EngineDied("The engine's process ended.", retry_after=5), 503, "5"),
        (EngineError("No."), 500, None),
        (RuntimeError("/secret/path.py"), 500, None),
    ],
)
async def test_an_error_before_the_first_token_has_its_own_status(
    path: str, is_streamed: bool, refusal: Exception, status: int, retry_after: str | None
) -> None:
    app = scripted()
    app.engine.refusal = refusal
    async with app.client() as client:
        response = await post(client, path, stream=is_streamed)
    check_error(response, status, None)
    assert response.headers.get("retry-after") == retry_after


async def test_a_full_queue_is_refused_at_once() -> None:
    app = scripted(num_slots=1, hang_at=0)
    async with app.client() as client:
        waiting = [asyncio.create_task(post(client, COMPLETIONS)) for _ in range(5)]
        await app.engine.wait_for_requests(5)
        body = check_error(await post(client, COMPLETIONS, stream=True), 503, None)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
    assert body["code"] == "overloaded"
    assert app.engine.num_open == 0
