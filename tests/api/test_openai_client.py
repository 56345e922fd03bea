"""The official client reads our answers: its helpers for structured output and tools, whole and streamed."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import openai
import pytest
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolParam
from pydantic import BaseModel

from .calling import ONE_CALL, PARIS, TOOLS, TWO_CALLS, WEATHER, named, written
from .server import MODEL, App, scripted

ASKED: list[ChatCompletionMessageParam] = [{"role": "user", "content": "x"}]


class City(BaseModel):
    name: str
    people: int | None


class Weather(BaseModel):
    """Tells the weather."""

    city: str
    days: list[int] = []


WEATHER_TOOL: ChatCompletionToolParam = openai.pydantic_function_tool(Weather, name="get_weather")


@asynccontextmanager
async def client_of(app: App) -> AsyncIterator[openai.AsyncOpenAI]:
    async with app.client() as http:
        yield openai.AsyncOpenAI(base_url="http://octavo/v1", api_key="any", http_client=http, max_retries=0)


async def test_a_model_class_is_parsed_from_the_answer() -> None:
    app = scripted('{"name": "Paris", "people": null}')
    async with client_of(app) as client:
        answer = await client.chat.completions.parse(model=MODEL, messages=ASKED, response_format=City)
    assert answer.choices[0].message.parsed == City(name="Paris", people=None)
    assert not app.engine.requests[0].grammar.is_free


async def test_a_model_class_is_parsed_from_a_stream() -> None:
    async with (
        client_of(scripted('{"name": "Paris", "people": 3}', piece_bytes=3)) as client,
        client.chat.completions.stream(model=MODEL, messages=ASKED, response_format=City) as events,
    ):
        kinds = {event.type async for event in events}
        answer = await events.get_final_completion()
    assert answer.choices[0].message.parsed == City(name="Paris", people=3)
    assert {"chunk", "content.delta", "content.done"} <= kinds


@pytest.mark.parametrize("choice", ["auto", "required", named("get_weather")], ids=str)
async def test_the_arguments_of_a_call_are_parsed(choice: Any) -> None:
    call = written("get_weather", '{"city": "Paris", "days": [1, 2]}')
    async with client_of(scripted(call)) as client:
        answer = await client.chat.completions.parse(
            model=MODEL, messages=ASKED, tools=[WEATHER_TOOL], tool_choice=choice
        )
    [choice] = answer.choices
    assert choice.message.content is None
    assert choice.finish_reason == "tool_calls"
    assert choice.message.tool_calls
    assert choice.message.tool_calls[0].function.parsed_arguments == Weather(city="Paris", days=[1, 2])


@pytest.mark.parametrize("piece_bytes", [1, 4])
@pytest.mark.parametrize("choice", ["auto", "required"])
async def test_calls_are_put_together_from_a_stream(choice: Any, piece_bytes: int) -> None:
    async with (
        client_of(scripted(TWO_CALLS, piece_bytes=piece_bytes)) as client,
        client.chat.completions.stream(model=MODEL, messages=ASKED, tools=TOOLS, tool_choice=choice) as events,
    ):
        done = [event async for event in events if event.type == "tool_calls.function.arguments.done"]
        answer = await events.get_final_completion()
    [choice] = answer.choices
    assert choice.finish_reason == "tool_calls"
    assert [event.index for event in done] == [0, 1]
    calls = choice.message.tool_calls or []
    assert [call.function.name for call in calls] == ["get_weather"] * 2
    assert [event.arguments for event in done] == [call.function.arguments for call in calls]
    assert calls[0].function.arguments == PARIS
    assert len({call.id for call in calls}) == 2


async def test_an_answer_can_be_sent_back_with_results() -> None:
    app = scripted(ONE_CALL)
    app.engine.chat_template = "{{ messages | tojson }}"
    async with client_of(app) as client:
        answer = await client.chat.completions.create(model=MODEL, messages=ASKED, tools=TOOLS)
        said = answer.choices[0].message
        assert said.tool_calls
        result = {"role": "tool", "tool_call_id": said.tool_calls[0].id, "content": "Sunny."}
        messages: Any = [*ASKED, said, result]
        assert await client.chat.completions.create(model=MODEL, messages=messages, tools=TOOLS)
    assert "Sunny." in bytes(app.engine.requests[1].prompt_tokens).decode()


async def test_the_older_form_is_read_too() -> None:
    fields: Any = {"model": MODEL, "messages": ASKED, "functions": [WEATHER]}
    async with client_of(scripted(ONE_CALL, piece_bytes=2)) as client:
        answer = await client.chat.completions.create(**fields)
        chunks = [chunk async for chunk in await client.chat.completions.create(stream=True, **fields)]
    called = answer.choices[0].message.function_call
    assert called
    assert (called.name, called.arguments) == ("get_weather", PARIS)
    parts = [chunk.choices[0].delta.function_call for chunk in chunks]
    assert "".join(part.arguments or "" for part in parts if part) == PARIS
    assert [part.name for part in parts if part and part.name] == ["get_weather"]
    assert answer.choices[0].finish_reason == chunks[-1].choices[0].finish_reason == "function_call"


async def test_a_schema_that_cannot_be_kept_to_is_the_clients_error() -> None:
    form: Any = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"$ref": "https://example.org"}}}
    async with client_of(scripted()) as client:
        with pytest.raises(openai.UnprocessableEntityError) as raised:
            await client.chat.completions.create(model=MODEL, messages=ASKED, response_format=form)
    assert raised.value.param == "response_format"
    assert json.loads(raised.value.response.text)["code"] == "unsupported_grammar"
