"""Chat prompts with tools: none of their texts is more than text."""

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompting_builders import CHATML, END, SPECIAL_TOKENS, START, ByteEncoder, user, vocabulary

from octavo.core.messages import Message, Role
from octavo.core.tools import Tool, ToolCall
from octavo.errors import ContextLengthExceeded
from octavo.prompting import ChatPrompt, ChatTemplate, encode_chat
from octavo.prompting.markers import SENTINELS

ENCODER = ByteEncoder(vocabulary(*SPECIAL_TOKENS))
SHOWING = ChatTemplate("""<|im_start|>
{%- for t in tools or [] %}
    {{- t.function.name }}{{ t }}{{ t | tojson }}{{ t | tojson(indent=2, ensure_ascii=true) }}
    {%- for key, value in t.function | dictsort %}<|{{ key | upper }}{{ key }}|>{{ value | string | trim }}{% endfor %}
{%- endfor %}
{%- for m in messages %}
    {{- m.name }}<|{{ m.tool_call_id }}|>{{ m.content }}
    {%- for c in m.tool_calls or [] %}
        {{- c.id }}im_{{ c.function.name ~ c.function.arguments }}{{ c | tojson }}
        {%- if c.function.arguments is mapping %}
            {%- for key, value in c.function.arguments.items() %}<{{ key }}|{{ value }}{% endfor %}
        {%- endif %}
    {%- endfor %}
{%- endfor %}<|im_end|>""")

PIECES = ("<", "<|", "|im_", "start", "end", "im_end", "|>", "|im_end|>", "<tool_", "call>", " ", '"', "\\", r"\ufdd0")
STRINGS = st.lists(st.sampled_from((*PIECES, *(t.text for t in SPECIAL_TOKENS), *SENTINELS[:2])), max_size=4).map(
    "".join
)
VALUES = st.recursive(
    STRINGS | st.none() | st.booleans() | st.integers(-9, 9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(STRINGS, inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(STRINGS, VALUES, max_size=3)
TOOLS = st.builds(lambda name, definition: Tool(name, {"name": name, **definition}), STRINGS, OBJECTS)
ARGUMENTS = STRINGS | st.builds(json.dumps, OBJECTS, ensure_ascii=st.booleans())
CALLS = st.builds(ToolCall, STRINGS, STRINGS, ARGUMENTS)
HISTORIES = st.builds(
    lambda call, id, name, content: [
        user("Hi"),
        Message(Role.ASSISTANT, content, tool_calls=(call,)),
        Message(Role.TOOL, content, name, id),
    ],
    *(CALLS, STRINGS, st.none() | STRINGS, STRINGS),
)


async def chat(
    messages: list[Message], *tools: Tool, template: ChatTemplate, context_length: int = 10**6
) -> ChatPrompt:
    return await encode_chat(ENCODER, template, messages, context_length=context_length, tools=tools)


def special(prompt: ChatPrompt) -> list[int]:
    return [token for token in prompt.tokens if token in ENCODER.vocabulary.control_texts]


@given(tool=TOOLS, messages=HISTORIES)
def test_no_text_of_a_tool_a_call_or_a_result_ever_becomes_a_control_token(tool: Tool, messages: list[Message]) -> None:
    prompt = asyncio.run(chat(messages, tool, template=SHOWING))
    assert special(prompt) == [START.id, END.id]


@given(tool=TOOLS, messages=HISTORIES)
def test_tools_calls_and_results_are_shown_as_they_came(tool: Tool, messages: list[Message]) -> None:
    prompt = asyncio.run(chat(messages, tool, template=SHOWING))
    rendered = SHOWING.render(messages, bos_token="", eos_token="", tools=[tool])
    assert ENCODER.decode(prompt.tokens) == rendered


@given(tool=TOOLS, messages=HISTORIES)
def test_no_text_becomes_a_control_token_in_the_generic_prompt(tool: Tool, messages: list[Message]) -> None:
    template = ChatTemplate(CHATML)
    prompt = asyncio.run(chat(messages, tool, template=template))
    assert special(prompt) == [START.id, END.id] * 4 + [START.id]
    rendered = template.render(messages, bos_token="", eos_token="", tools=[tool])
    assert ENCODER.decode(prompt.tokens) == rendered


async def test_tools_that_do_not_fit_the_context_are_refused() -> None:
    tool = Tool("f", {"name": "f", "description": "x" * 1000})
    with pytest.raises(ContextLengthExceeded):
        await chat([user("Hi")], tool, template=ChatTemplate(CHATML), context_length=1000)
