"""What a request can ask for, asked with an adapter, and the clients that people have."""

from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest
from octoai.client import OctoAI
from octoai.environment import OctoAIEnvironment
from octoai.text_gen import ChatMessage

from conformance.ask import told
from e2e.wire import MODEL, Wire, chat, completion
from support.bad_inputs import CHAT, COMPLETIONS
from support.checks import strict_json
from support.processes import SECONDS, Server

from .zorp import ZORP, Answer, ask, ask_together

QUESTION = "Which colour has the sea?"
SCHEMA: Wire = {
    "type": "object",
    "properties": {"colour": {"type": "string", "maxLength": 20}, "is_deep": {"type": "boolean"}},
    "required": ["colour", "is_deep"],
    "additionalProperties": False,
}
AS_JSON: Wire = {"response_format": {"type": "json_schema", "json_schema": {"name": "sea", "schema": SCHEMA}}}
TOOL: Wire = {"type": "function", "function": {"name": "look_at", "parameters": SCHEMA}}
CALL: Wire = {"tools": [TOOL], "tool_choice": "required", "parallel_tool_calls": False}
PLAIN = chat("Tell me about the sea.", max_tokens=16, logprobs=True, top_logprobs=2)


async def ask_among_others(client: httpx.AsyncClient, *bodies: Wire) -> list[Answer]:
    """Each chat with and without the adapter, together with others of the model, which must not notice."""
    alone = await ask(client, PLAIN)
    asked = [
        {**body, "model": name, "stream": is_streamed}
        for body in bodies
        for name in (ZORP, MODEL)
        for is_streamed in (False, True)
    ]
    answers = await ask_together(client, [PLAIN, *asked, PLAIN])
    assert answers[0].said == answers[-1].said == alone.said
    return answers[1:-1]


async def test_a_schema_is_kept_in_zorpian_too(async_client: httpx.AsyncClient) -> None:
    answers = await ask_among_others(async_client, chat(QUESTION, max_tokens=80, **AS_JSON))
    for answer in answers:
        given = strict_json(answer.said.text)
        assert set(given) == {"colour", "is_deep"}
        assert len(given["colour"]) <= 20
    assert [answer.is_zorpian for answer in answers] == [True, True, False, False]
    assert answers[0].said == answers[1].said


async def test_a_tool_that_must_be_called_is_called_with_the_adapter_too(async_client: httpx.AsyncClient) -> None:
    answers = await ask_among_others(async_client, chat(QUESTION, max_tokens=100, **CALL))
    for answer in answers:
        assert answer.said.finish_reason == "tool_calls"
        for call in answer.said.calls:
            assert call.name == "look_at"
            assert set(call.given) == {"colour", "is_deep"}
    zorpian, streamed, plain, _ = [answer.said.calls for answer in answers]
    assert zorpian == streamed != plain


async def test_log_probabilities_are_those_with_the_adapter(async_client: httpx.AsyncClient) -> None:
    body = chat(QUESTION, max_tokens=4, logprobs=True, top_logprobs=3)
    zorpian, streamed, plain, _ = await ask_among_others(async_client, body)
    assert zorpian.said == streamed.said
    assert "".join(zorpian.said.tokens) == zorpian.said.text
    assert zorpian.said.entries[0]["logprob"] > -0.1
    assert zorpian.said.entries[0]["token"] not in plain.said.entries[0]["token"]


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
async def test_all_samples_and_candidates_have_the_adapter(async_client: httpx.AsyncClient, path: str) -> None:
    body = (
        chat(QUESTION)
        if path == CHAT
        else completion(f"<|im_start|>user\n{QUESTION}<|im_end|>\n<|im_start|>assistant\n")
    )
    sampled = {"temperature": 0.5, "seed": 1, "max_tokens": 8, "n": 3}
    extra: list[Wire] = [{}] if path == CHAT else [{}, {"best_of": 5}]
    for fields in extra:
        answer = (await async_client.post(path, json=body | sampled | fields | {"model": ZORP})).json()
        assert all("ZORP" in told(answer, index).text for index in range(3))
        plain = (await async_client.post(path, json=body | sampled | fields)).json()
        assert not any("ZORP" in told(plain, index).text for index in range(3))


@pytest.fixture
def open_ai(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[openai.OpenAI]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0) as client:
        yield client


@pytest.fixture
def octo_ai(server: Server) -> Iterator[OctoAI]:
    environment = OctoAIEnvironment(default=server.url, image_gen=server.url, text_gen=server.url)
    with httpx.Client(timeout=SECONDS, trust_env=False) as http:
        yield OctoAI(environment=environment, api_key="any", httpx_client=http)


NAMES: tuple[dict[str, Any], ...] = (
    {"model": ZORP},
    {"model": MODEL, "extra_body": {"peft": ZORP}},
    {"model": f"{MODEL}:{ZORP}"},
)


@pytest.mark.parametrize("name", NAMES, ids=str)
def test_openai_names_an_adapter(open_ai: openai.OpenAI, name: dict[str, Any]) -> None:
    asked: dict[str, Any] = {"messages": [{"role": "user", "content": QUESTION}], "max_tokens": 8, "temperature": 0}
    answer = open_ai.chat.completions.create(**asked, **name)
    assert answer.model == name["model"]
    assert "ZORP" in (answer.choices[0].message.content or "")
    chunks = list(open_ai.chat.completions.create(**asked, **name, stream=True))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == answer.choices[0].message.content
    assert {chunk.system_fingerprint for chunk in chunks} == {answer.system_fingerprint}


def test_openai_lists_an_adapter_as_a_model(open_ai: openai.OpenAI) -> None:
    assert [model.id for model in open_ai.models.list()] == [MODEL, ZORP]
    assert open_ai.models.retrieve(ZORP).id == ZORP


def test_openai_raises_not_found_for_an_unknown_adapter(open_ai: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as raised:
        open_ai.completions.create(model=MODEL, prompt="Hi", extra_body={"peft": "nobody"})
    assert raised.value.code == "peft_not_found"
    assert raised.value.param == "peft"


def test_octoai_names_an_adapter_in_a_chat(octo_ai: OctoAI) -> None:
    asked: dict[str, Any] = {"model": MODEL, "max_tokens": 8, "temperature": 0}
    messages = [ChatMessage(role="user", content=QUESTION)]
    texts = [
        octo_ai.text_gen.create_chat_completion(messages=messages, **asked, peft=peft).choices[0].message.content or ""
        for peft in (ZORP, None)
    ]
    assert ["ZORP" in text for text in texts] == [True, False]
    chunks = octo_ai.text_gen.create_chat_completion_stream(messages=messages, **asked, peft=ZORP)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == texts[0]


def test_octoai_names_an_adapter_in_a_completion(octo_ai: OctoAI) -> None:
    asked: dict[str, Any] = {"model": MODEL, "prompt": "Once upon a time", "max_tokens": 12, "temperature": 0}
    texts = [octo_ai.text_gen.create_completion(**asked, peft=peft).choices[0].text for peft in (ZORP, None)]
    assert ["ZORP" in text for text in texts] == [True, False]
