"""Agent frameworks, with nothing changed but their base URL: structured output and tools on the real model.

The model is small, so what is asserted is what the server promises: answers of the right form, whatever they say.
"""

from collections.abc import AsyncIterator, Iterator
from datetime import date
from typing import Literal

import httpx
import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from openai import AsyncOpenAI, OpenAI, pydantic_function_tool
from pydantic import BaseModel, Field
from pydantic_ai import Agent, ModelSettings, NativeOutput
from pydantic_ai.exceptions import UsageLimitExceeded
from pydantic_ai.messages import ModelRequest, ModelResponse, ToolCallPart, ToolReturnPart
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.usage import UsageLimits

from support.processes import SECONDS, Server

from .wire import MODEL

QUESTION = "Ann Smith, who is 34 years old, moved from Paris to Rome on 2024-05-01. Describe her."
KEY = "none"


class Move(BaseModel):
    """From one city to another."""

    origin: str = Field(max_length=30)
    destination: str = Field(max_length=30)
    day: date


class Person(BaseModel):
    """Somebody and what is known of them."""

    name: str = Field(max_length=30)
    age: int = Field(ge=0, le=150)
    status: Literal["single", "married", "unknown"]
    moves: list[Move] = Field(max_length=2)
    nickname: str | None = Field(max_length=20)


@tool
def get_weather(city: str, unit: Literal["celsius", "fahrenheit"]) -> str:
    """The weather in a city."""
    return f"18 degrees {unit} in {city}"


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
async def http_client() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(timeout=SECONDS) as client:
        yield client


@pytest.fixture
def chat(server: Server, http_client: httpx.AsyncClient) -> Iterator[ChatOpenAI]:
    with httpx.Client(timeout=SECONDS) as client:
        yield ChatOpenAI(
            model=MODEL,
            base_url=f"{server.url}/v1",
            api_key=KEY,
            temperature=0,
            max_tokens=400,
            seed=1,
            http_client=client,
            http_async_client=http_client,
        )


@pytest.fixture
def openai_client(server: Server) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{server.url}/v1", api_key=KEY, max_retries=0) as client:
        yield client


@pytest.fixture
def agent_model(server: Server, http_client: httpx.AsyncClient) -> OpenAIChatModel:
    client = AsyncOpenAI(base_url=f"{server.url}/v1", api_key=KEY, max_retries=0, http_client=http_client)
    return OpenAIChatModel(MODEL, provider=OpenAIProvider(openai_client=client))


# One call an answer: the small model may else write one call after another until its context is full.
SETTINGS = ModelSettings(temperature=0.7, seed=1, max_tokens=400, parallel_tool_calls=False)


@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
def test_langchain_gets_structured_output(chat: ChatOpenAI, method: Literal["json_schema", "function_calling"]) -> None:
    person = chat.with_structured_output(Person, method=method).invoke(QUESTION)
    assert isinstance(person, Person)


def test_langchain_calls_a_tool_and_gives_the_model_its_result(chat: ChatOpenAI) -> None:
    asked = HumanMessage("What is the weather in Oslo?")
    forced = chat.bind_tools([get_weather], tool_choice="required", parallel_tool_calls=False)
    called = forced.invoke([asked])
    assert isinstance(called, AIMessage)
    assert [call["name"] for call in called.tool_calls] == ["get_weather"]
    result = get_weather.invoke(called.tool_calls[0])
    assert isinstance(result, ToolMessage)
    answer = chat.bind_tools([get_weather]).invoke([asked, called, result])
    assert answer.content or answer.tool_calls


async def test_langchain_streams_a_call_whose_parts_make_the_whole(chat: ChatOpenAI) -> None:
    forced = chat.bind_tools([get_weather], tool_choice="get_weather")
    whole: AIMessageChunk | None = None
    async for chunk in forced.astream("What is the weather in Oslo?"):
        assert isinstance(chunk, AIMessageChunk)
        whole = chunk if whole is None else whole + chunk
    assert whole is not None
    assert not whole.invalid_tool_calls
    assert get_weather.args_schema is not None
    assert {"city", "unit"} == set(whole.tool_calls[0]["args"])


def test_openai_parses_structured_output_and_tools(openai_client: OpenAI) -> None:
    messages = [{"role": "user", "content": QUESTION}]
    parsed = openai_client.chat.completions.parse(
        model=MODEL,
        messages=messages,  # type: ignore[arg-type]
        response_format=Person,
        temperature=0.7,
        seed=2,
    )
    assert isinstance(parsed.choices[0].message.parsed, Person)
    called = openai_client.chat.completions.parse(
        model=MODEL,
        messages=messages,  # type: ignore[arg-type]
        tools=[pydantic_function_tool(Move), pydantic_function_tool(Person)],
        tool_choice="required",
        parallel_tool_calls=False,
        temperature=0.7,
        seed=3,
    )
    (call,) = called.choices[0].message.tool_calls or ()
    assert isinstance(call.function.parsed_arguments, Move | Person)


async def test_pydantic_ai_gets_native_structured_output(agent_model: OpenAIChatModel) -> None:
    agent = Agent(agent_model, output_type=NativeOutput(Person), model_settings=SETTINGS, retries=0)
    assert isinstance((await agent.run(QUESTION)).output, Person)


async def test_pydantic_ai_gets_its_output_by_a_tool(agent_model: OpenAIChatModel) -> None:
    agent = Agent(agent_model, output_type=Person, model_settings=SETTINGS, retries=0)
    assert isinstance((await agent.run(QUESTION)).output, Person)


async def test_pydantic_ai_runs_a_tool_and_sends_back_what_it_returned(agent_model: OpenAIChatModel) -> None:
    cities: list[str] = []
    agent = Agent(agent_model, output_type=Move, model_settings=SETTINGS, retries=0)

    @agent.tool_plain(retries=0)
    def population(city: str) -> int:
        """How many people live in a city."""
        cities.append(city)
        return 700_000

    history = [
        ModelRequest.user_text_prompt("How many people live in Oslo?"),
        ModelResponse([ToolCallPart("population", {"city": "Oslo"}, "call_1")]),
        ModelRequest([ToolReturnPart("population", 700_000, "call_1")]),
    ]
    try:
        result = await agent.run(
            "And who moves there?", message_history=history, usage_limits=UsageLimits(request_limit=6)
        )
    except UsageLimitExceeded:  # the small model may call for ever; each of its calls was valid all the same
        assert cities
    else:
        assert isinstance(result.output, Move)
