"""Gemma's own notation of values, and what is none of it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.tool_formats.samples import Sample, calls_of
from streaming.tool_formats.samples_c import run_in_channels

QUOTE = '<|"|>'

keys = st.text("abc_1", min_size=1, max_size=5)
texts = st.text().filter(lambda text: "<" not in text)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**15), 10**15) | st.floats(-1e9, 1e9) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)


def written(value: object) -> str:
    """As the template writes an argument."""
    match value:
        case str():
            return QUOTE + value + QUOTE
        case bool():
            return json.dumps(value)
        case dict():
            return "{" + ",".join(f"{key}:{written(item)}" for key, item in value.items()) + "}"
        case list():
            return "[" + ",".join(map(written, value)) + "]"
        case _:
            return str(value)


@given(st.dictionaries(keys, values, max_size=4))
def test_values_come_back_as_the_template_writes_them(arguments: dict[str, object]) -> None:
    text = f"<|tool_call>call:search{written(arguments)}<tool_call|>"
    event = run_in_channels(Sample("gemma-4", text, "", []))
    assert calls_of(event) == [("search", arguments)]
    assert event.text == ""


@pytest.mark.parametrize(
    "text",
    [
        "<|tool_call>call:unknown{}<tool_call|>",
        "<|tool_call>call:now<tool_call|>",
        "<|tool_call>call:now{<tool_call|>",
        "<|tool_call>call:now{a:}<tool_call|>",
        "<|tool_call>call:now{a:Paris}<tool_call|>",
        "<|tool_call>call:now{a:1 b:2}<tool_call|>",
        '<|tool_call>call:now{a:<|"|>b}<tool_call|>',
        "<|tool_call>call:now{a:" + "[" * 100 + "]" * 100 + "}<tool_call|>",
        "<|tool_call>",
    ],
)
def test_what_is_no_call_is_text(text: str) -> None:
    event = run_in_channels(Sample("gemma-4", text, "", []))
    assert calls_of(event) == []
    assert event.text == text


def test_white_space_between_the_parts_of_a_call_means_nothing() -> None:
    event = run_in_channels(Sample("gemma-4", "<|tool_call>call:search { limit : 3 , tags: [ ] } <tool_call|>", "", []))
    assert calls_of(event) == [("search", {"limit": 3, "tags": []})]
    assert event.text == ""
