"""Kimi K3's tags, their attributes, and what is no call."""

import pytest

from streaming.tool_formats.samples import Sample, calls_of
from streaming.tool_formats.samples_c import K3_PARIS, PARIS, run_in_channels

HEAD = "<|close|>think<|sep|><|open|>tools<|sep|>"
CALL = '<|open|>call tool="search" index="1"<|sep|>'
END = "<|close|>call<|sep|>"


def argument(key: str, type: str, text: str) -> str:
    return f'<|open|>argument key="{key}" type="{type}"<|sep|>{text}<|close|>argument<|sep|>'


@pytest.mark.parametrize(
    ("type", "text", "value"),
    [
        ("string", ' <b> "5" \n', ' <b> "5" \n'),
        ("string", "", ""),
        ("number", "5", 5),
        ("number", "-0.5", -0.5),
        ("boolean", "true", True),
        ("null", "null", None),
        ("array", '[1, "a"]', [1, "a"]),
        ("object", '{"a": {}}', {"a": {}}),
    ],
)
def test_a_value_is_of_the_type_that_its_tag_says(type: str, text: str, value: object) -> None:
    event = run_in_channels(Sample("kimi-k3", HEAD + CALL + argument("query", type, text) + END, "", []))
    assert calls_of(event) == [("search", {"query": value})]


@pytest.mark.parametrize(
    "call",
    [
        '<|open|>call tool="unknown" index="1"<|sep|>' + END,
        '<|open|>call index="1"<|sep|>' + END,
        CALL + argument("limit", "number", "five") + END,
        CALL + argument("query", "string", "a"),
        CALL + "words" + END,
        CALL + '<|open|>json type="object"<|sep|>[]<|close|>json<|sep|>' + END,
        '<|open|>call tool="search" ',
    ],
)
def test_what_is_no_call_is_hidden_and_does_not_hide_the_next(call: str) -> None:
    event = run_in_channels(Sample("kimi-k3", HEAD + call, "", []))
    assert (calls_of(event), event.text) == ([], "")
    event = run_in_channels(Sample("kimi-k3", HEAD + call + "\n" + HEAD + K3_PARIS, "", []))
    assert (calls_of(event), event.text) == ([PARIS], "")


def test_calls_stand_beside_each_other() -> None:
    event = run_in_channels(Sample("kimi-k3", f"{HEAD}\n{K3_PARIS}\n{K3_PARIS}<|close|>tools<|sep|>", "", []))
    assert calls_of(event) == [PARIS, PARIS]
