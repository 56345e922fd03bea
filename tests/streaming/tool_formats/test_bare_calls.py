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
        "```python\nimport os",
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
        f"[{NOW}, 3]",
        f"[[{NOW}]]",
        "[]",
        '[get_weather("Paris")]',
        "[get_weather(city=Paris)]",
        "[get_weather(city='Paris]",
        "[now()",
        "[now(",
        "[now(=1)]",
        f"```json\n{NOW}\nand so on\n```",
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
        '{"id": "1", "name": "now"}',
        '{"tool": "now", "args": {}}',
        '{"function": "now", "input": {},}',
        '{"function_call": {"name": "now", "arguments": "{}"}}',
        '{"type": "tool_use", "id": "1", "name": "now", "input": {}}',
        f"[\n  {NOW}\n]",
        f"[{NOW},]",
        "[ now( ) ]",
        "[now.call()]",
        f"```json\n{NOW}",
        f"  {NOW}  ",
    ],
)
def test_spellings_of_one_call_are_understood(text: str) -> None:
    event = run(text, "hermes")

    assert (event.text.strip(), calls_of(event)) == ("", [("now", {})])


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
