"""Python literals as JSON values."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.streaming.tool_formats.python_values import value_of
from octavo.streaming.tool_formats.reader import NotACall, Reader, Reading

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8)


@given(VALUES)
def test_what_python_writes_is_read_as_the_same_value(value: Any) -> None:
    assert value_of(repr(value)) == value


@given(VALUES)
def test_what_json_writes_is_read_as_the_same_value(value: Any) -> None:
    assert value_of(json.dumps(value)) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("(1, 'a',)", [1, "a"]),
        ("[1, 2, ]", [1, 2]),
        ('{"a": true, "b": None,}', {"a": True, "b": None}),
        ("'line\nline'", "line\nline"),
        (r'"\d+\."', r"\d+\."),
        (r"'it\'s \x41\u00e9\U0001f600'", "it's Aé😀"),
        (r"'\xzz \Uffffffff'", r"\xzz \Uffffffff"),
        ("'a, (b] #'", "a, (b] #"),
        ("1e5", 100_000),
    ],
)
def test_spellings_of_python_are_understood(text: str, value: Any) -> None:
    assert value_of(text) == value


@pytest.mark.parametrize(
    "text",
    ["x", "f(1)", "1 + 2", "{1, 2}", "{1: 2}", "b'a'", "[1 2]", "nan", "9" * 5_000, "", "'a' 'b'"],
)
def test_what_json_has_no_value_for_is_no_call(text: str) -> None:
    with pytest.raises(NotACall):
        value_of(text)


@given(VALUES, st.sampled_from((", b=1", ")", "]", " ")), st.data())
def test_a_reader_finds_the_end_of_a_literal(value: Any, rest: str, data: st.DataObject) -> None:
    text = repr(value) + rest
    cut = data.draw(st.integers(0, len(text)))

    reader = Reader()
    reading = reader.python()
    read = _read_on(reader, reading, text[:cut])
    if read is None:
        read = _read_on(reader, reading, text[cut:])

    assert read == repr(value)


def _read_on(reader: Reader, reading: Reading[str], text: str) -> str | None:
    reader.feed(text)
    try:
        next(reading)
    except StopIteration as done:
        return str(done.value)
    return None
