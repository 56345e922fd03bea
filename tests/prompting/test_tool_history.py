"""Conversations in the shapes that templates take."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompting_builders import assistant, system, user

from octavo.core.messages import Message, Role
from octavo.core.tools import Tool, ToolCall
from octavo.prompting.tool_history import shaped
from octavo.prompting.tool_prompt import tool_prompt
from octavo.prompting.tool_shape import NO_TOOL_SHAPE, ToolShape

A, B = ToolCall("a", "f", '{"x":1}'), ToolCall("b", "g", "{}")
TOOLS = [Tool("f", {"name": "f", "parameters": {"type": "object"}})]
PROMPT = tool_prompt(TOOLS)
WRITTEN = '<tool_call>\n{"name": "f", "arguments": {"x": 1}}\n</tool_call>'


def calls(*given: ToolCall, said: str = "") -> Message:
    return Message(Role.ASSISTANT, said, tool_calls=given)


def result(content: str, id: str | None, name: str | None = None) -> Message:
    return Message(Role.TOOL, content, name=name, tool_call_id=id)


def test_what_a_template_knows_is_left_as_it_is() -> None:
    messages = [system("s"), user("u"), calls(A, B, said="t"), result("1", "a", "f"), result("2", "b", "g")]
    assert shaped(messages, TOOLS, ToolShape()) == messages


def test_a_result_gets_the_name_of_its_call() -> None:
    messages = [calls(A, B), result("2", "b"), result("1", "a", "mine"), result("3", "lost")]
    assert shaped(messages, (), ToolShape())[1:] == [result("2", "b", "g"), result("1", "a", "mine"), messages[3]]


def test_a_result_without_an_id_is_that_of_the_first_call_without_a_result() -> None:
    messages = [calls(A, B), result("1", None), result("2", None), result("3", None)]
    assert shaped(messages, (), ToolShape())[1:] == [result("1", "a", "f"), result("2", "b", "g"), result("3", None)]
    assert shaped([calls(A, B), result("2", None, "g")], (), ToolShape())[1:] == [result("2", "b", "g")]


def test_calls_are_told_one_at_a_time_each_with_its_result() -> None:
    messages = [
        calls(A, B, said="t"),
        result("2", "b", "g"),
        result("1", "a", "f"),
        result("3", "c"),
        user("u"),
        calls(A),
    ]
    assert shaped(messages, (), ToolShape(has_parallel_calls=False)) == [
        *(calls(A, said="t"), result("1", "a", "f"), calls(B), result("2", "b", "g"), result("3", "c")),
        *(user("u"), calls(A)),
    ]


def test_results_that_answer_no_call_that_is_left_keep_their_order() -> None:
    results = [result("1", "c"), result("2", "a"), result("3", "a"), result("4", "c")]
    told = shaped([calls(A, B), *results], (), ToolShape(has_parallel_calls=False))
    assert [each.content for each in told if each.role is Role.TOOL] == ["2", "1", "3", "4"]


@given(
    named=st.lists(st.sampled_from("fg"), max_size=5),
    given=st.lists(st.tuples(st.sampled_from([None, "0", "1", "2", "x"]), st.sampled_from([None, "f", "g"]))),
)
def test_a_result_without_an_id_answers_the_first_call_of_its_name_that_has_no_result(
    named: list[str], given: list[tuple[str | None, str | None]]
) -> None:
    messages = [
        calls(*(ToolCall(str(place), name, "{}") for place, name in enumerate(named))),
        *(result("", id, name) for id, name in given),
    ]
    waiting = {str(place): name for place, name in enumerate(named)}
    for linked, (id, name) in zip(shaped(messages, (), ToolShape())[1:], given, strict=True):
        expected = id or next((call for call, other in waiting.items() if name in (None, other)), None)
        waiting.pop(expected or "", None)
        assert linked.tool_call_id == expected


@pytest.mark.timeout(60)
@pytest.mark.parametrize("shape", [ToolShape(), ToolShape(has_parallel_calls=False), NO_TOOL_SHAPE])
@pytest.mark.parametrize("has_ids", [True, False])
def test_a_message_may_have_very_many_calls_with_results_in_any_order(shape: ToolShape, has_ids: bool) -> None:
    ids = [str(place) for place in range(50_000)]
    called = calls(*(ToolCall(id, f"f{id}", "{}") for id in ids))
    results = [result(id, id if has_ids else None, f"f{id}") for id in reversed(ids)]
    told = shaped([called, *results], (), shape)
    assert all(each.tool_call_id == each.content for each in told if each.role is Role.TOOL)


def test_a_reasoning_is_told_once() -> None:
    thoughtful = replace(calls(A, B), reasoning="hm")
    assert [each.reasoning for each in shaped([thoughtful], (), ToolShape(has_parallel_calls=False))] == ["hm", None]


def test_ids_that_name_a_call_go_on_naming_it_when_they_are_shortened() -> None:
    [call, first, second] = shaped(
        [calls(A, replace(B, id="abcDEF123")), result("1", "a"), result("2", "abcDEF123")],
        (),
        ToolShape(has_short_ids=True),
    )
    assert [each.id for each in call.tool_calls] == [first.tool_call_id, second.tool_call_id]
    assert second.tool_call_id == "abcDEF123"


@given(ids=st.lists(st.text(), unique=True))
def test_short_ids_are_nine_letters_or_digits_and_stay_apart(ids: list[str]) -> None:
    results = shaped([result("", id) for id in ids], (), ToolShape(has_short_ids=True))
    short = [each.tool_call_id or "" for each, id in zip(results, ids, strict=True) if id]
    assert all(len(id) == 9 and id.isascii() and id.isalnum() for id in short)
    assert len(set(short)) == len(short)


def test_calls_that_a_template_does_not_know_are_written_behind_what_was_said() -> None:
    messages = [calls(A, B, said="t"), result("1", "a", "f"), result("2", "b", "g")]
    written, *results = shaped(messages, (), ToolShape(knows_calls=False))
    assert written == assistant(f't\n{WRITTEN}\n<tool_call>\n{{"name": "g", "arguments": {{}}}}\n</tool_call>')
    assert results == messages[1:]


def test_a_call_that_was_cut_is_written_as_far_as_it_got() -> None:
    [written] = shaped([calls(replace(A, arguments='{"x": '))], (), NO_TOOL_SHAPE)
    assert written.content == '<tool_call>\n{"name": "f", "arguments": {"x": }\n</tool_call>'


def test_results_that_a_template_does_not_know_are_told_by_the_user_before_the_user_s_own_words() -> None:
    told = "<tool_response>\n1\n</tool_response>\n<tool_response>\n2\n</tool_response>"
    results = [result("1", "a"), result("2", "b")]
    shape = ToolShape(knows_results=False)
    assert shaped([calls(A, B), *results], (), shape) == [calls(A, B), user(told)]
    assert shaped([*results, assistant("t")], (), shape) == [user(told), assistant("t")]
    assert shaped([*results, user("u"), user("v")], (), shape) == [user(f"{told}\nu"), user("v")]


@pytest.mark.parametrize(
    ("messages", "takes_system", "expected"),
    [
        ([system("s"), user("u")], True, [system(f"s\n\n{PROMPT}"), user("u")]),
        ([system(""), user("u")], True, [system(PROMPT), user("u")]),
        ([user("u"), system("s")], True, [system(PROMPT), user("u"), system("s")]),
        ([user("u")], False, [user(f"{PROMPT}\n\nu")]),
        ([assistant("t"), user("u"), user("v")], False, [assistant("t"), user(f"{PROMPT}\n\nu"), user("v")]),
        ([assistant("t")], False, [user(PROMPT), assistant("t")]),
        ([], True, [system(PROMPT)]),
    ],
)
def test_tools_that_a_template_does_not_know_are_told_once_at_the_beginning(
    messages: list[Message], takes_system: bool, expected: list[Message]
) -> None:
    assert shaped(messages, TOOLS, replace(NO_TOOL_SHAPE, takes_system=takes_system)) == expected


def test_the_prompt_describes_each_tool_in_a_line_and_the_form_of_a_call() -> None:
    tools = [*TOOLS, Tool("g", {"name": "g", "description": "Länge <b>"})]
    assert (
        '<tools>\n{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}\n'
        '{"type": "function", "function": {"name": "g", "description": "Länge <b>"}}\n</tools>\n'
    ) in tool_prompt(tools)
    assert '<tool_call>\n{"name": ' in tool_prompt(tools)
    assert "<tool_response>" in tool_prompt(tools)
