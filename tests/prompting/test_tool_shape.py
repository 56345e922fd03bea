"""What rendering tells of the shape in which a template takes tools."""

import time
from collections.abc import Sequence
from dataclasses import replace

import pytest
from prompting_builders import CHATML, GEMMA

from octavo.core.messages import Message, Role
from octavo.core.tools import Tool, ToolCall
from octavo.errors import TemplateError
from octavo.prompting import DEFAULT_CHAT_TEMPLATE, ChatTemplate
from octavo.prompting.tool_shape import NO_TOOL_SHAPE, ToolShape
from octavo.prompting.tool_trials import find_shape

ONE_ANSWER = "{% if m.tool_calls | length > 1 %}{{ raise_exception('one at a time') }}{% endif %}"
WRITTEN = "{{ c.id }} {{ c.function.name }} {{ c.function.arguments | tojson }}"
LOOKED_INTO = "{% for k, v in c.function.arguments.items() %}{{ c.function.name }} {{ k }} {{ v }}{% endfor %}"


def tool_template(
    call: str = WRITTEN, *, before: str = "", tools: str = "{{ tools | tojson }}", result: str = "{{ m.content }}"
) -> ChatTemplate:
    return ChatTemplate(
        "{% if tools %}" + tools + "{% endif %}{% for m in messages %}" + before + "{% if m.role == 'tool' %}" + result
        + "{% elif m.tool_calls %}{% for c in m.tool_calls %}" + call + "{% endfor %}"
        "{% else %}[{{ m.role }}] {{ m.content }}{% endif %};{% endfor %}"
    )  # fmt: skip


def shown(template: ChatTemplate, *messages: Message) -> str:
    return template.render(messages, bos_token="", eos_token="")


@pytest.mark.parametrize(
    ("template", "shape"),
    [
        (tool_template(), ToolShape()),
        (tool_template(LOOKED_INTO), ToolShape()),
        (tool_template("{{ c.function.name + c.function.arguments }}"), ToolShape(has_object_arguments=False)),
        (tool_template(before=ONE_ANSWER), ToolShape(has_parallel_calls=False)),
        (tool_template("{% if loop.first %}" + WRITTEN + "{% endif %}"), ToolShape(has_parallel_calls=False)),
        (tool_template("{% if m.content is none %}" + WRITTEN + "{% endif %}"), ToolShape(has_null_contents=True)),
        (
            tool_template("{% if c.id | length != 9 %}{{ raise_exception('9') }}{% endif %}" + WRITTEN),
            ToolShape(has_short_ids=True),
        ),
        (
            tool_template(tools="{% for t in tools %}{{ t.function.name + t.function.description }}{% endfor %}"),
            ToolShape(has_whole_definitions=True),
        ),
        (tool_template(""), ToolShape(knows_calls=False)),
        (tool_template(result=""), ToolShape(knows_results=False)),
        (tool_template(result="{{ raise_exception('no') }}"), ToolShape(knows_results=False)),
        (tool_template("", result=""), ToolShape(knows_calls=False, knows_results=False)),
        (tool_template(tools=""), NO_TOOL_SHAPE),
        (ChatTemplate(CHATML), NO_TOOL_SHAPE),
        (ChatTemplate(DEFAULT_CHAT_TEMPLATE), NO_TOOL_SHAPE),
        (ChatTemplate(GEMMA), replace(NO_TOOL_SHAPE, takes_system=False)),
        (ChatTemplate("{{ raise_exception('never') }}"), replace(NO_TOOL_SHAPE, takes_system=False)),
    ],
)
def test_a_template_takes_tools_in_the_first_shape_that_shows_all(template: ChatTemplate, shape: ToolShape) -> None:
    assert template.tool_shape == shape


def test_a_shape_is_found_once() -> None:
    template = tool_template()
    assert template.tool_shape is template.tool_shape


def test_trials_do_not_go_on_for_ever() -> None:
    def render(messages: Sequence[Message], tools: Sequence[Tool], shape: ToolShape) -> str:
        end = time.thread_time() + 0.01
        while time.thread_time() < end:
            pass
        return "trial_function"

    with pytest.raises(TemplateError, match="takes too long with tools") as refusal:
        find_shape(render, seconds=0.02)
    assert refusal.value.param == "tools"


def test_a_text_beside_calls_comes_before_them_where_calls_want_no_text() -> None:
    template = tool_template("{% if m.content is none %}" + WRITTEN + "{% endif %}")
    said = Message(Role.ASSISTANT, "Let me see.", reasoning="Hm.", tool_calls=(ToolCall("1", "f", '{"x": 2}'),))
    assert shown(template, said) == '[assistant] Let me see.;1 f {"x": 2};'


@pytest.mark.parametrize(
    "text",
    ['{"x": ', "5", "[" * 999 + "]" * 999, '{"x":' * 65 + "{}" + "}" * 65, "[" * 10**5],
    ids=["cut", "number", "list", "deep", "too deep"],
)
def test_arguments_that_are_no_object_are_shown_as_the_text_that_they_are(text: str) -> None:
    message = Message(Role.ASSISTANT, "", tool_calls=(ToolCall("1", "f", text),))
    template = tool_template("{{ c.function.name }} {{ c.function.arguments is string }} {{ c.function.arguments }}")
    assert shown(template, message) == f"f True {text};"


@pytest.mark.parametrize("text", ["", " ", "null", "{}"])
def test_a_call_without_arguments_has_an_empty_object(text: str) -> None:
    message = Message(Role.ASSISTANT, "", tool_calls=(ToolCall("1", "f", text),))
    assert shown(tool_template(), message) == "1 f {};"


def test_a_definition_is_made_whole_only_where_the_template_needs_that() -> None:
    tool = Tool("f", {"name": "f", "description": None})
    lenient, strict = (
        tool_template(),
        tool_template(tools="{{ tools | tojson }}{{ '' + tools[0].function.description }}"),
    )
    rendered = [template.render([], bos_token="", eos_token="", tools=[tool]) for template in (lenient, strict)]
    assert rendered == [
        '[{"type": "function", "function": {"name": "f", "description": null}}]',
        '[{"type": "function", "function": {"name": "f", "description": "", '
        '"parameters": {"type": "object", "properties": {}}}}]',
    ]


def test_a_template_sees_no_tools_as_none_and_a_turn_without_calls_as_one_without() -> None:
    template = ChatTemplate("{{ tools is none }} {{ 'tool_calls' in messages[0] }}")
    assert shown(template, Message(Role.ASSISTANT, "Hi")) == "True False"
