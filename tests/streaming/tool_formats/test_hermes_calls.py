"""Hermes' format, as models write it and as they miswrite it."""

import pytest

from streaming.tool_formats.samples import calls_of, run

CALL = '{"name": "get_weather", "arguments": {"city": "Paris"}}'
NOW = '{"name": "now", "arguments": {}}'
PARIS = ("get_weather", {"city": "Paris"})


@pytest.mark.parametrize(
    "text",
    [
        f"<tool_call>\n{CALL}\n</tool_call>",
        f"<tool_call>{CALL}</tool_call>",
        f"<tool_call>\r\n  {CALL}  \n\n</tool_call>\n",
        f"<tool_call>\n{CALL}",
        f"<tool_call>\n{CALL}\n",
        f"<tool_call>\n[{CALL}]\n</tool_call>",
        f"<tool_call>\n{CALL}}}\n</tool_call>",
        f"<tool_call>\n{CALL}\n<tool_call>",
        f"<tools>\n{CALL}\n</tools>",
        f"<tool>{CALL}</tool>",
        f"<function_call>{CALL}</function_call>",
        f"<response>\n{CALL}\n</tool_call>",
        '<tool_call>{"arguments": {"city": "Paris"}, "name": "get_weather"}</tool_call>',
        '<tool_call>{"name": "get_weather", "arguments": "{\\"city\\": \\"Paris\\"}"}</tool_call>',
        '<tool_call>{"name": "get_weather", "parameters": {"city": "Paris"}}</tool_call>',
        f'<tool_call>{{"type": "function", "function": {CALL}}}</tool_call>',
    ],
)
def test_one_call_in_many_spellings(text: str) -> None:
    event = run(text, "hermes")
    assert (event.text, calls_of(event)) == ("", [PARIS])


@pytest.mark.parametrize(
    "text",
    [
        f"<tool_call>\n{CALL}\n</tool_call>\n<tool_call>\n{NOW}\n</tool_call>",
        f"<tool_call>\n{CALL}\n{NOW}\n</tool_call>",
        f"<tool_call>\n{CALL},\n{NOW}\n</tool_call>",
        f"<tool_call>\n[{CALL}, {NOW}]\n</tool_call>",
        f"<tool_call>\n{CALL}\n<tool_call>\n{NOW}\n</tool_call>",
    ],
)
def test_two_calls_in_many_spellings(text: str) -> None:
    event = run(text, "hermes")
    assert (event.text, calls_of(event)) == ("", [PARIS, ("now", {})])


@pytest.mark.parametrize(
    "text",
    [
        "<tool_call>",
        "<tool_call> is a tag.",
        '<tool_call>\n{"name": "sing", "arguments": {}}\n</tool_call>',
        '<tool_call>\n{"name": "now", "arguments": [1]}\n</tool_call>',
        '<tool_call>\n{"name": "now", "arguments": {"a": }}\n</tool_call>',
        '<tool_call>\n{"name": "now", "arguments": {\n</tool_call>',
        "<tool_call>\n[]\n</tool_call>",
        "<tool_call>\n</tool_call>",
    ],
)
def test_what_is_no_call_is_text(text: str) -> None:
    event = run(text, "hermes")
    assert (event.text, event.tool_calls) == (text, ())


def test_an_end_within_a_string_ends_nothing() -> None:
    event = run('<tool_call>{"name": "get_weather", "arguments": {"city": "</tool_call>"}}</tool_call>', "hermes")
    assert (event.text, calls_of(event)) == ("", [("get_weather", {"city": "</tool_call>"})])


def test_text_before_between_and_behind_calls_stays() -> None:
    event = run(f"One.\n<tool_call>{CALL}</tool_call>\nTwo.\n<tool_call>{NOW}</tool_call>\nThree.", "hermes")
    assert (event.text, calls_of(event)) == ("One.\nTwo.\nThree.", [PARIS, ("now", {})])


def test_only_the_first_call_counts_where_one_is_allowed() -> None:
    event = run(f"<tool_call>{CALL}</tool_call><tool_call>{NOW}</tool_call>", "hermes", is_parallel=False)
    assert (event.text, calls_of(event)) == ("", [PARIS])
