"""The clients that people have, with nothing changed but their base URL."""

import json
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from octoai.client import AsyncOctoAI, OctoAI
from octoai.core.api_error import ApiError
from octoai.environment import OctoAIEnvironment
from octoai.text_gen import ChatMessage
from octoai.text_gen.errors import UnprocessableEntityError

from support.processes import SECONDS, Server

from .wire import MODEL, chat, completion

PROMPT = "The fox is a small animal. It"
QUESTION = "What is a fox? 🦊"
MAX_TOKENS = 16
JS = Path(__file__).parents[1] / "clients" / "js"
COMPLETION: dict[str, Any] = {"model": MODEL, "prompt": PROMPT, "max_tokens": MAX_TOKENS, "temperature": 0}
CHAT: dict[str, Any] = {
    "model": MODEL,
    "messages": [{"role": "user", "content": QUESTION}],
    "max_tokens": MAX_TOKENS,
    "temperature": 0,
}
OCTO_CHAT: dict[str, Any] = {**CHAT, "messages": [ChatMessage(role="user", content=QUESTION)]}
WITH_USAGE: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}


@dataclass(frozen=True, slots=True)
class Expected:
    """What a plain HTTP request is answered: text, finish reason, and tokens of prompt and answer."""

    text: str
    finish_reason: str
    prompt_tokens: int
    completion_tokens: int

    @classmethod
    def of(cls, answer: dict[str, Any], text: str) -> "Expected":
        usage = answer["usage"]
        assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
        return cls(text, answer["choices"][0]["finish_reason"], usage["prompt_tokens"], usage["completion_tokens"])


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture(scope="module")
def completed(server: Server) -> Expected:
    with server.client() as client:
        answer = client.post("/v1/completions", json=completion(PROMPT, max_tokens=MAX_TOKENS)).json()
    return Expected.of(answer, answer["choices"][0]["text"])


@pytest.fixture(scope="module")
def chatted(server: Server) -> Expected:
    with server.client() as client:
        answer = client.post("/v1/chat/completions", json=chat(QUESTION, max_tokens=MAX_TOKENS)).json()
    return Expected.of(answer, answer["choices"][0]["message"]["content"])


@pytest.fixture
def open_ai(server: Server) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0) as client:
        yield client


@pytest.fixture
async def async_open_ai(server: Server) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0) as client:
        yield client


@pytest.fixture
def octo_ai(server: Server) -> Iterator[OctoAI]:
    with httpx.Client(timeout=SECONDS) as http:
        yield OctoAI(environment=environment(server), api_key="any", httpx_client=http)


@pytest.fixture
async def async_octo_ai(server: Server) -> AsyncIterator[AsyncOctoAI]:
    async with httpx.AsyncClient(timeout=SECONDS) as http:
        yield AsyncOctoAI(environment=environment(server), api_key="any", httpx_client=http)


def environment(server: Server) -> OctoAIEnvironment:
    return OctoAIEnvironment(default=server.url, image_gen=server.url, text_gen=server.url)


def of_whole(answer: Any, text: str | None) -> Expected:
    """What a client's answer object says."""
    assert answer.model == MODEL
    usage = answer.usage
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    return Expected(text or "", answer.choices[0].finish_reason, usage.prompt_tokens, usage.completion_tokens)


def of_chunks(chunks: list[Any], pieces: list[str | None]) -> Expected:
    """What a client's chunks with usage say."""
    usage = chunks[-1].usage
    assert chunks[-1].choices == []
    assert [chunk.usage for chunk in chunks[:-1]] == [None] * (len(chunks) - 1)
    assert len({chunk.id for chunk in chunks}) == 1
    [finish_reason] = [choice.finish_reason for chunk in chunks for choice in chunk.choices if choice.finish_reason]
    text = "".join(piece or "" for piece in pieces)
    return Expected(text, finish_reason, usage.prompt_tokens, usage.completion_tokens)


def texts(chunks: list[Any]) -> list[str | None]:
    return [choice.text for chunk in chunks for choice in chunk.choices]


def contents(chunks: list[Any]) -> list[str | None]:
    return [choice.delta.content for chunk in chunks for choice in chunk.choices]


def test_openai_completes(open_ai: openai.OpenAI, completed: Expected) -> None:
    answer = open_ai.completions.create(**COMPLETION)
    assert of_whole(answer, answer.choices[0].text) == completed


def test_openai_streams_a_completion(open_ai: openai.OpenAI, completed: Expected) -> None:
    chunks = list(open_ai.completions.create(**COMPLETION, **WITH_USAGE))
    assert len(chunks) > 2
    assert of_chunks(chunks, texts(chunks)) == completed


def test_openai_chats(open_ai: openai.OpenAI, chatted: Expected) -> None:
    answer = open_ai.chat.completions.create(**CHAT)
    assert answer.choices[0].message.role == "assistant"
    assert of_whole(answer, answer.choices[0].message.content) == chatted


def test_openai_streams_a_chat(open_ai: openai.OpenAI, chatted: Expected) -> None:
    chunks = list(open_ai.chat.completions.create(**CHAT, **WITH_USAGE))
    assert chunks[0].choices[0].delta.role == "assistant"
    assert of_chunks(chunks, contents(chunks)) == chatted


async def test_async_openai_completes(async_open_ai: openai.AsyncOpenAI, completed: Expected) -> None:
    answer = await async_open_ai.completions.create(**COMPLETION)
    assert of_whole(answer, answer.choices[0].text) == completed


async def test_async_openai_streams_a_completion(async_open_ai: openai.AsyncOpenAI, completed: Expected) -> None:
    chunks = [chunk async for chunk in await async_open_ai.completions.create(**COMPLETION, **WITH_USAGE)]
    assert of_chunks(chunks, texts(chunks)) == completed


async def test_async_openai_chats(async_open_ai: openai.AsyncOpenAI, chatted: Expected) -> None:
    answer = await async_open_ai.chat.completions.create(**CHAT)
    assert of_whole(answer, answer.choices[0].message.content) == chatted


async def test_async_openai_streams_a_chat(async_open_ai: openai.AsyncOpenAI, chatted: Expected) -> None:
    chunks = [chunk async for chunk in await async_open_ai.chat.completions.create(**CHAT, **WITH_USAGE)]
    assert of_chunks(chunks, contents(chunks)) == chatted


def test_openai_gets_no_usage_in_a_stream_that_did_not_ask_for_it(open_ai: openai.OpenAI) -> None:
    chunks = list(open_ai.completions.create(**COMPLETION, stream=True))
    assert all("usage" not in chunk.model_dump(exclude_unset=True) for chunk in chunks)


def test_openai_lists_the_model(open_ai: openai.OpenAI) -> None:
    assert [model.id for model in open_ai.models.list()] == [MODEL]
    assert open_ai.models.retrieve(MODEL).id == MODEL


def test_openai_raises_not_found_for_an_unknown_model(open_ai: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as raised:
        open_ai.completions.create(**{**COMPLETION, "model": "nobody"})
    assert raised.value.code == "model_not_found"
    assert raised.value.param == "model"


def test_openai_raises_unprocessable_entity_for_a_bad_value(open_ai: openai.OpenAI) -> None:
    with pytest.raises(openai.UnprocessableEntityError) as raised:
        open_ai.chat.completions.create(**{**CHAT, "temperature": 3})
    assert raised.value.param == "temperature"


def test_openai_raises_bad_request_for_a_prompt_that_does_not_fit(open_ai: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as raised:
        open_ai.completions.create(**{**COMPLETION, "prompt": "fox " * 2000})
    assert raised.value.code == "context_length_exceeded"


async def test_async_openai_raises_the_same_errors_for_a_stream(async_open_ai: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.NotFoundError):
        await async_open_ai.completions.create(**{**COMPLETION, "model": "nobody"}, stream=True)
    with pytest.raises(openai.UnprocessableEntityError):
        await async_open_ai.chat.completions.create(**{**CHAT, "top_p": 2}, stream=True)


def test_octoai_completes(octo_ai: OctoAI, completed: Expected) -> None:
    answer = octo_ai.text_gen.create_completion(**COMPLETION)
    assert of_whole(answer, answer.choices[0].text) == completed


def test_octoai_streams_a_completion(octo_ai: OctoAI, completed: Expected) -> None:
    chunks = list(octo_ai.text_gen.create_completion_stream(**COMPLETION))
    assert "".join(piece or "" for piece in texts(chunks)) == completed.text
    assert chunks[-1].choices[0].finish_reason == completed.finish_reason


def test_octoai_chats(octo_ai: OctoAI, chatted: Expected) -> None:
    answer = octo_ai.text_gen.create_chat_completion(**OCTO_CHAT)
    assert of_whole(answer, answer.choices[0].message.content) == chatted


def test_octoai_streams_a_chat(octo_ai: OctoAI, chatted: Expected) -> None:
    chunks = list(octo_ai.text_gen.create_chat_completion_stream(**OCTO_CHAT))
    assert "".join(piece or "" for piece in contents(chunks)) == chatted.text
    assert chunks[-1].choices[0].finish_reason == chatted.finish_reason


async def test_async_octoai_completes(async_octo_ai: AsyncOctoAI, completed: Expected) -> None:
    answer = await async_octo_ai.text_gen.create_completion(**COMPLETION)
    assert of_whole(answer, answer.choices[0].text) == completed


async def test_async_octoai_streams_a_completion(async_octo_ai: AsyncOctoAI, completed: Expected) -> None:
    chunks = [chunk async for chunk in async_octo_ai.text_gen.create_completion_stream(**COMPLETION)]
    assert "".join(piece or "" for piece in texts(chunks)) == completed.text


async def test_async_octoai_chats(async_octo_ai: AsyncOctoAI, chatted: Expected) -> None:
    answer = await async_octo_ai.text_gen.create_chat_completion(**OCTO_CHAT)
    assert of_whole(answer, answer.choices[0].message.content) == chatted


async def test_async_octoai_streams_a_chat(async_octo_ai: AsyncOctoAI, chatted: Expected) -> None:
    chunks = [chunk async for chunk in async_octo_ai.text_gen.create_chat_completion_stream(**OCTO_CHAT)]
    assert "".join(piece or "" for piece in contents(chunks)) == chatted.text


def test_octoai_raises_its_own_errors(octo_ai: OctoAI) -> None:
    with pytest.raises(UnprocessableEntityError) as refused:
        octo_ai.text_gen.create_completion(**{**COMPLETION, "temperature": 3})
    assert refused.value.body.detail[0].loc == ["body", "temperature"]
    with pytest.raises(ApiError) as missing:
        octo_ai.text_gen.create_chat_completion(**{**OCTO_CHAT, "model": "nobody"})
    assert missing.value.status_code == 404


def run_node(script: str, server: Server) -> dict[str, Any]:
    """What a script of tests/clients/js prints."""
    node = shutil.which("node")
    if node is None or not (JS / "node_modules").is_dir():
        pytest.skip("Node.js or tests/clients/js/node_modules is missing; `make test` installs the latter with npm")
    request = {"url": server.url, "model": MODEL, "prompt": PROMPT, "message": QUESTION, "maxTokens": MAX_TOKENS}
    command = (node, script, json.dumps(request))
    done = subprocess.run(command, cwd=JS, capture_output=True, timeout=2 * SECONDS, check=False)
    assert done.returncode == 0, done.stderr.decode()
    answers = json.loads(done.stdout)
    assert isinstance(answers, dict)
    return answers


def check_node_answer(answer: dict[str, Any], expected: Expected) -> None:
    assert answer["text"] == expected.text
    assert answer["finishReason"] == expected.finish_reason
    if usage := answer.get("usage"):
        assert usage["promptTokens"] == expected.prompt_tokens
        assert usage["completionTokens"] == expected.completion_tokens


@pytest.mark.parametrize(
    ("script", "errors"),
    [
        ("octoai.mjs", {"unknownModel": "OctoAIError", "badValue": "UnprocessableEntityError"}),
        ("openai.mjs", {"unknownModel": "NotFoundError", "badValue": "UnprocessableEntityError"}),
    ],
)
def test_the_npm_client_gets_the_same_answers_and_its_own_errors(
    server: Server, completed: Expected, chatted: Expected, script: str, errors: dict[str, str]
) -> None:
    answers = run_node(script, server)
    for name, expected in (("completion", completed), ("chat", chatted)):
        check_node_answer(answers[name], expected)
        check_node_answer(answers[f"{name}Stream"], expected)
        assert answers[f"{name}Stream"]["numChunks"] > 2
    assert answers["unknownModel"] == {"name": errors["unknownModel"], "status": 404}
    assert answers["badValue"] == {"name": errors["badValue"], "status": 422}
