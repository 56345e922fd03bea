"""Conversations with tools through the templates of real models: what comes out is what Hugging Face's rendering of the
same template makes of the messages in the shape that the template wants."""

import asyncio
import html
import json
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import pytest
from jinja2 import TemplateError as JinjaTemplateError
from llama_cpp_templates import templates
from prompting_builders import ByteEncoder, control, vocabulary
from transformers.utils.chat_template_utils import render_jinja_template

from octavo.core.messages import Message, Role
from octavo.core.tools import Tool, ToolCall
from octavo.errors import TemplateError
from octavo.prompting import ChatTemplate, encode_chat
from octavo.prompting.markers import SENTINELS, Markers
from octavo.prompting.protection import Protection

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

# What templates want, where it is not calls with objects as arguments, side by side, and under any id.
ONE_CALL_AT_A_TIME = {
    "GigaChat3-10B-A1.8B",
    "GigaChat3.1-10B-A1.8B",
    "meta-llama-Llama-3.1-8B-Instruct",
    "meta-llama-Llama-3.2-3B-Instruct",
    "meta-llama-Llama-3.3-70B-Instruct",
    "openai-gpt-oss-120b",
}
ARGUMENTS_AS_TEXT = {"meetkai-functionary-medium-v3.2"}
NINE_CHARACTER_IDS = {"Mistral-Small-3.2-24B-Instruct-2506", "mistralai-Mistral-Nemo-Instruct-2407"}
NO_CALLS = {
    "Kimi-K2-Instruct",  # appends to a list, which sandboxes refuse
    "Kimi-K2-Thinking",
    "LFM2-8B-A1B",
    "LFM2.5-Instruct",
    "ibm-granite-granite-3.3-2B-Instruct",
}
NO_TOOLS = {
    "HuggingFaceTB-SmolLM3-3B",
    "deepseek-ai-DeepSeek-R1-Distill-Llama-8B",
    "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B",
    "deepseek-ai-DeepSeek-V3.1",
    "google-gemma-2-2b-it",
    "llama-cpp-deepseek-r1",  # writes a generator as JSON, which fails
    "llama-cpp-rwkv-world",
    "microsoft-Phi-3.5-mini-instruct",
}
NO_SYSTEM_MESSAGES = {"google-gemma-2-2b-it"}
FOR_TOOLS_ALONE = {
    "CohereForAI-c4ai-command-r-plus-tool_use",
    "NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use",
    "NousResearch-Hermes-3-Llama-3.1-8B-tool_use",
}
FAILING = {"fireworks-ai-llama-3-firefunction-v2"}  # wants a variable that nothing but its own server gives

CITY = {"type": "string", "description": "Its name: Malmö"}
REFUSALS = r"is undefined|not supported"

WEATHER = {
    "name": "get_weather",
    "description": "The weather of a place, <b>now</b> & later.",
    "parameters": {
        "type": "object",
        "properties": {
            "city": CITY,
            "days": {"type": "integer", "description": "How many"},
            "units": {"type": "array", "description": "Which", "items": {"type": "string"}},
        },
        "required": ["city"],
    },
}
CLOCK = {
    "name": "get_time",
    "description": "The time of a place",
    "parameters": {
        "type": "object",
        "properties": {"zone": {"type": "string", "description": "Of the place", "enum": ["CET", "UTC"]}},
        "required": ["zone"],
    },
}
TOOLS = (Tool("get_weather", WEATHER), Tool("get_time", CLOCK))
SHOWN_TOOLS = [{"type": "function", "function": WEATHER}, {"type": "function", "function": CLOCK}]

WEATHER_ARGUMENTS = '{"city": "Malmö", "days": 3, "units": ["°C", "\\"mm\\""]}'
CLOCK_ARGUMENTS = '{"zone": "CET"}'
CALLS = (
    ToolCall("call_weather", "get_weather", WEATHER_ARGUMENTS),
    ToolCall("call_time", "get_time", CLOCK_ARGUMENTS),
)
NINE_CHARACTERS = {"call_weather": "d84fef9bf", "call_time": "ef993c465"}
RESULTS = ('{"sun": true}', "It is noon.")

QUESTION = Message(Role.USER, "How is it in Malmö?")
ASKED = (
    QUESTION,
    Message(Role.ASSISTANT, "", tool_calls=CALLS),
    Message(Role.TOOL, RESULTS[0], tool_call_id="call_weather"),
    Message(Role.TOOL, RESULTS[1], tool_call_id="call_time"),
)
ANSWERED = (*ASKED, Message(Role.ASSISTANT, "Sunny, at noon."), Message(Role.USER, "And now?"))
SYSTEM = Message(Role.SYSTEM, "Be brief.")
CONVERSATIONS = {
    "answered": (SYSTEM, *ANSWERED),
    "answered, without a system message": ANSWERED,
    "waiting for an answer": (SYSTEM, *ASKED),
    "waiting for a call": (QUESTION,),
}

PROMPT = f"""\
You can call functions. Each line between the tags describes one of them, its parameters by a JSON schema:
<tools>
{json.dumps(SHOWN_TOOLS[0], ensure_ascii=False)}
{json.dumps(SHOWN_TOOLS[1], ensure_ascii=False)}
</tools>
To call a function, write its name and its arguments in this form:
<tool_call>
{{"name": "<the function's name>", "arguments": {{"<a parameter's name>": <its value>}}}}
</tool_call>
Write one such block for each call and nothing after the last one. What the functions return comes in the next message,
between <tool_response> and </tool_response>. Where no function helps, answer without a call."""
WRITTEN_CALLS = f"""\
<tool_call>
{{"name": "get_weather", "arguments": {WEATHER_ARGUMENTS}}}
</tool_call>
<tool_call>
{{"name": "get_time", "arguments": {CLOCK_ARGUMENTS}}}
</tool_call>"""
TOLD_RESULTS = """\
<tool_response>
{"sun": true}
</tool_response>
<tool_response>
It is noon.
</tool_response>"""


def shown_call(name: str, call: ToolCall) -> dict[str, Any]:
    arguments = call.arguments if name in ARGUMENTS_AS_TEXT else json.loads(call.arguments)
    id = NINE_CHARACTERS[call.id] if name in NINE_CHARACTER_IDS else call.id
    return {"id": id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def shown_result(name: str, call: ToolCall, content: str) -> dict[str, Any]:
    return {
        "role": "tool",
        "content": content,
        "name": call.name,
        "tool_call_id": NINE_CHARACTERS[call.id] if name in NINE_CHARACTER_IDS else call.id,
    }


def shown_calls_and_results(name: str) -> list[dict[str, Any]]:
    calls = [shown_call(name, call) for call in CALLS]
    results = [shown_result(name, call, content) for call, content in zip(CALLS, RESULTS, strict=True)]
    if name in NO_TOOLS:
        return [{"role": "assistant", "content": WRITTEN_CALLS}, {"role": "user", "content": TOLD_RESULTS}]
    if name in NO_CALLS:
        return [{"role": "assistant", "content": WRITTEN_CALLS}, *results]
    turns = [[call] for call in calls] if name in ONE_CALL_AT_A_TIME else [calls]
    shown = []
    for turn in turns:
        ids = [call["id"] for call in turn]
        shown.append({"role": "assistant", "content": "", "tool_calls": turn})
        shown += [result for result in results if result["tool_call_id"] in ids]
    return shown


def shown_messages(name: str, messages: Sequence[Message]) -> list[dict[str, Any]]:
    shown = [{"role": message.role.value, "content": message.content} for message in messages]
    if ASKED[1] in messages:
        start = messages.index(ASKED[1])
        shown[start : start + 3] = shown_calls_and_results(name)
    if name in NO_SYSTEM_MESSAGES and SYSTEM not in messages:
        shown[0]["content"] = f"{PROMPT}\n\n{shown[0]['content']}"
    elif name in NO_TOOLS and SYSTEM in messages:
        shown[0]["content"] += f"\n\n{PROMPT}"
    elif name in NO_TOOLS:
        shown.insert(0, {"role": "system", "content": PROMPT})
    return shown


def reference(name: str, source: str, messages: Sequence[Message], **tokens: str) -> str:
    """Raises what the template does."""
    [[rendered], _] = render_jinja_template(
        [shown_messages(name, messages)],
        tools=None if name in NO_TOOLS else SHOWN_TOOLS,
        chat_template=source,
        add_generation_prompt=True,
        **tokens,
    )
    if name == "meetkai-functionary-medium-v3.1":
        # It puts definitions behind a text that is marked as safe HTML, to which Hugging Face's rendering then adds
        # them as HTML, with &#34; for each quote. Here there is no HTML.
        return html.unescape(rendered)
    return rendered


@cache
def template(source: str) -> ChatTemplate:
    return ChatTemplate(source)


def refuses(name: str, messages: Sequence[Message]) -> bool:
    return name in FAILING or (name in NO_SYSTEM_MESSAGES and SYSTEM in messages)


def strings_in(value: object) -> set[str]:
    match value:
        case str():
            return {value}
        case Mapping():
            return strings_in([*value.keys(), *value.values()])
        case list() | tuple():
            return set().union(*map(strings_in, value))
    return set()


# A control token of which all that the client says of tools and calls is a part, so that all of it has to be marked.
SAID = strings_in([WEATHER, CLOCK, json.loads(WEATHER_ARGUMENTS), CLOCK_ARGUMENTS, *RESULTS])
HOSTILE = control(256, "<" + "|".join(sorted({*SAID, WEATHER_ARGUMENTS, "call_weather", "call_time", "zone"})) + ">")
ENCODER = ByteEncoder(vocabulary(HOSTILE))


@pytest.fixture(scope="module")
def sources() -> dict[str, str]:
    try:
        return templates()
    except subprocess.CalledProcessError as error:
        pytest.skip(f"the sources of llama.cpp cannot be fetched: {error.stderr.decode()[-300:]}")


@pytest.fixture(scope="module")
def usable(sources: dict[str, str]) -> dict[str, str]:
    return {name: source for name, source in sources.items() if name not in FAILING}


def test_the_lists_above_name_templates_that_there_are(sources: dict[str, str]) -> None:
    assert set(sources) >= ONE_CALL_AT_A_TIME | ARGUMENTS_AS_TEXT | NINE_CHARACTER_IDS | NO_CALLS | NO_TOOLS | FAILING


@pytest.mark.parametrize("conversation", CONVERSATIONS.values(), ids=CONVERSATIONS)
def test_a_conversation_with_tools_is_rendered_as_by_hugging_face(
    sources: dict[str, str], conversation: Sequence[Message]
) -> None:
    tokens = {"bos_token": "<s>", "eos_token": "</s>"}
    shown = {name: source for name, source in sources.items() if not refuses(name, conversation)}
    ours = {name: template(source).render(conversation, tools=TOOLS, **tokens) for name, source in shown.items()}
    assert ours == {name: reference(name, source, conversation, **tokens) for name, source in shown.items()}


@pytest.mark.parametrize("conversation", CONVERSATIONS.values(), ids=CONVERSATIONS)
def test_what_a_template_refuses_is_refused_by_hugging_face_too(
    sources: dict[str, str], conversation: Sequence[Message]
) -> None:
    for name in (name for name in sources if refuses(name, conversation)):
        with pytest.raises(TemplateError, match=REFUSALS):
            template(sources[name]).render(conversation, bos_token="", eos_token="", tools=TOOLS)
        with pytest.raises(JinjaTemplateError, match=REFUSALS):
            reference(name, sources[name], conversation, bos_token="", eos_token="")


def test_the_same_text_comes_out_where_all_of_it_has_to_be_marked(usable: dict[str, str]) -> None:
    for name, source in usable.items():
        prompt = asyncio.run(encode_chat(ENCODER, template(source), ANSWERED, context_length=10**6, tools=TOOLS))
        assert HOSTILE.id not in prompt.tokens
        assert ENCODER.decode(prompt.tokens) == reference(name, source, ANSWERED, bos_token="", eos_token="")


def test_calls_and_results_are_shown_where_a_later_request_has_no_tools(usable: dict[str, str]) -> None:
    for source in (source for name, source in usable.items() if name not in FOR_TOOLS_ALONE):
        prompt = template(source).render(ANSWERED, bos_token="", eos_token="")
        assert all(text in prompt for text in ("get_weather", "get_time", "CET", "It is noon."))


def test_a_function_needs_nothing_but_a_name(usable: dict[str, str]) -> None:
    for source in usable.values():
        prompt = template(source).render([QUESTION], bos_token="", eos_token="", tools=[Tool("f_1", {"name": "f_1"})])
        assert "f_1" in prompt


def test_as_many_tools_as_a_request_may_have_stay_within_the_bounds(usable: dict[str, str]) -> None:
    properties = {f"parameter_{number}": CITY for number in range(5)}
    parameters = {"type": "object", "properties": properties, "required": [*properties]}
    names = [f"function_{number}" for number in range(128)]
    tools = [Tool(name, {"name": name, "description": "What it does", "parameters": parameters}) for name in names]
    marked = Protection(Markers(ENCODER.vocabulary), SENTINELS[0]).tools(tools)
    for source in usable.values():
        prompt = template(source).render([QUESTION], bos_token="", eos_token="", tools=marked)
        assert all(name in prompt for name in names)
