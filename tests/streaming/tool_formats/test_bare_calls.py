"""Calls without markers."""

import json

import pytest

from octavo.core.channels import Channel
from octavo.core.tools import Tool, ToolUse
from octavo.streaming.tool_calls import CallLog, new_tool_machine
from streaming.tool_formats.samples import TOOLS, calls_of, run

NOW = '{"name": "now", "arguments": {}}'


def settled(text: str) -> str:
    """What of an answer's first piece is told before more of it comes."""
    machine = new_tool_machine(ToolUse(TOOLS, "hermes"), CallLog("request", lambda delta: None))
    return "".join(piece for channel, piece in machine.push([(Channel.ANSWER, text)]) if channel is Channel.ANSWER)


@pytest.mark.parametrize(
    "text",
    [
        '{"city":',
        '{\n  "items": [1,',
        '{"name": "Paris",',
        '{"name": 3,',
        '{"type": "object",',
        '{"id": 7, "name": "Bob",',
        '{"function": "cos",',
        "{}",
        "{x",
        "[1,",
        '["now",',
        "[{}",
        '[{"city":',
        "[[",
        "[Paris](",
        "[now,",
        "```json\n[1,",
        '```json\n{"city":',
        "```python\n[now()]",
        "```\nnow()",
        "```json\nnow()",
        "```text",
        "```\nls -l",
    ],
)
def test_what_cannot_be_a_call_is_told_at_once(text: str) -> None:
    assert settled(text) == text


@pytest.mark.parametrize("text", ['{"name": "now",', '{"arguments": {', "[now(", '[{"function": {', "```json\n[", "``"])
def test_what_may_be_a_call_is_held_back(text: str) -> None:
    assert settled(text) == ""


@pytest.mark.parametrize(
    "text",
    [
        f"Write {NOW} there.",
        f"1. {NOW}",
        "It is [now()]",
        '{"name": "now", "arguments": []}',
        '{"name": "now", "arguments": 3}',
        '{"name": "now", "arguments": "[]"}',
        '{"name": "now", "arguments": {',
        '{"name": null, "arguments": {}}',
        '{"arguments": {}}',
        '{"tool_calls": []}',
        '{"tool_calls": [{"name": "then"}]}',
        f"[[{NOW}]]",
        "[]",
        '[get_weather("Paris")]',
        "[get_weather(city=Paris)]",
        "[get_weather(city='Paris]",
        "[now(",
        "[now(=1)]",
    ],
)
def test_what_is_no_call_after_all_is_text(text: str) -> None:
    event = run(text, "hermes")

    assert (event.text, calls_of(event)) == (text, [])


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "now", "arguments": "{}"}',
        '{"name": "now", "arguments": null}',
        '{"arguments": {}, "name": "now"}',
        '{"id": "1", "name": "now", "args": {}}',
        '{"tool_call_id": "1", "index": 0, "tool": "now", "args": {}}',
        '{"function": "now", "input": {},}',
        '{"function_call": {"name": "now", "arguments": "{}"}}',
        '{"type": "tool_use", "id": "1", "name": "now", "input": {}}',
        f"[\n  {NOW}\n]",
        f"[{NOW},]",
        "[ now( ) ]",
        "[now()",
        f"[{NOW}",
        f'{{"tool_calls": [{NOW}',
        "[now.call()]",
        f"```json\n{NOW}",
        f"  {NOW}  ",
    ],
)
def test_spellings_of_one_call_are_understood(text: str) -> None:
    event = run(text, "hermes")

    assert (event.text.strip(), calls_of(event)) == ("", [("now", {})])


DATA = [
    '[{"name": "get_weather", "description": "Gets the weather"}]',
    '[{"name": "search", "age": 3}]',
    '{"tool": "search", "id": 5}',
    '{"function": "now"}',
    '{"id": "1", "name": "now"}',
    '{"name": "now", "arguments": {}, "result": 7}',
    '{"name": "now", "tool": "now", "arguments": {}}',
    '{"name": "now", "arguments": {}, "input": {}}',
    '{"role": "assistant", "function": {"name": "now", "arguments": {}}}',
    '{"function": {"name": "now", "arguments": {}}, "result": 7}',
    json.dumps(TOOLS[0].definition),
    json.dumps({"type": "function", "function": TOOLS[0].definition}),
    json.dumps({"name": "get_weather", "parameters": TOOLS[0].parameters}),
    '{"name": "now", "parameters": {"type": "object", "properties": {}}}',
]


@pytest.mark.parametrize("text", [*DATA, *(f"```json\n{each}\n```" for each in DATA)])
def test_json_that_names_a_function_and_calls_none_is_text(text: str) -> None:
    event = run(text, "hermes")

    assert (event.text, calls_of(event)) == (text, [])


@pytest.mark.parametrize("text", ["```python\n[now()]\n```", "```python\nnow()\n```", "```\nnow()\n```"])
def test_python_in_a_fence_is_an_example(text: str) -> None:
    event = run(text, "hermes")

    assert (event.text, calls_of(event)) == (text, [])


def test_behind_a_block_of_code_calls_are_read_again() -> None:
    example = f"```python\nfence = '```'\n[now()]\n{NOW}\n```"

    event = run(f"{example}\n{NOW}", "hermes")

    assert (event.text, calls_of(event)) == (example, [("now", {})])


def test_a_marked_call_is_one_in_a_block_of_code_too() -> None:
    event = run(f"```xml\n<tool_call>{NOW}</tool_call>\n```", "hermes")

    assert calls_of(event) == [("now", {})]


@pytest.mark.parametrize("text", [NOW, f"```json\n{NOW}\n```", "[now()]", f"[{NOW}]", f'{{"tool_calls": [{NOW}]}}'])
def test_it_is_text_where_nothing_but_marked_calls_are_read(text: str) -> None:
    event = run(text, "hermes", reads_unmarked=False)

    assert (event.text, calls_of(event)) == (text, [])


def test_marked_calls_are_read_where_nothing_else_is() -> None:
    event = run(f"{NOW}\n<tool_call>{NOW}</tool_call>", "hermes", reads_unmarked=False)

    assert (event.text, calls_of(event)) == (NOW, [("now", {})])


@pytest.mark.parametrize("arguments", ['{"city": "\\ud800"}', '{"city": 1e999}', json.dumps("[" * 200_000)])
def test_arguments_that_cannot_be_sent_are_text(arguments: str) -> None:
    text = f'{{"name": "get_weather", "arguments": {arguments}}}'

    event = run(text, "hermes")

    assert (event.text, calls_of(event)) == (text, [])


def test_python_has_tuples_and_strings_over_lines() -> None:
    event = run("""[search(query='a\nb', tags=("x", 'y)'), filters={})]""", "hermes")

    assert calls_of(event) == [("search", {"query": "a\nb", "tags": ["x", "y)"], "filters": {}})]


def test_names_may_have_dots_and_hyphens() -> None:
    tools = [Tool("get-weather.v2", {"name": "get-weather.v2"})]

    event = run('[get-weather.v2(max-days=3, ort="Köln")]', "hermes", tools=tools)

    assert calls_of(event) == [("get-weather.v2", {"max-days": 3, "ort": "Köln"})]
