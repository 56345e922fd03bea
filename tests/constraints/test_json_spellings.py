"""Every spelling of a value is read as the value."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from support.json_spellings import orders, spellings

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
NUMBERS = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


@given(VALUES)
def test_a_value_s_spellings_are_all_of_them_the_value(value: Any) -> None:
    texts = spellings(value)
    assert len(texts) == 6
    assert all(json.loads(text) == value for text in texts.values())
    assert b"\\" not in texts["compact"].replace(b"\\u0000", b"") or "\\" in json.dumps(value)


@given(VALUES)
def test_a_value_in_another_order_is_the_value(value: Any) -> None:
    found = list(orders(value))
    assert value in found
    assert len({json.dumps(each) for each in found}) == len(found)
    assert all(each == value for each in found)


def test_orders_are_those_of_all_objects() -> None:
    texts = [json.dumps(each) for each in orders([{"a": {"c": 1, "d": 2}, "b": 3}, {"e": 4}])]
    assert texts == [
        '[{"a": {"c": 1, "d": 2}, "b": 3}, {"e": 4}]',
        '[{"a": {"d": 2, "c": 1}, "b": 3}, {"e": 4}]',
        '[{"b": 3, "a": {"c": 1, "d": 2}}, {"e": 4}]',
        '[{"b": 3, "a": {"d": 2, "c": 1}}, {"e": 4}]',
    ]


def test_spellings_differ_where_they_can() -> None:
    assert spellings({"ü": [1, 1.5, 1e300]}) == {
        "spaced": '{"ü": [1, 1.5, 1e+300]}'.encode(),
        "compact": '{"ü":[1,1.5,1e+300]}'.encode(),
        "ASCII": rb'{"\u00fc": [1, 1.5, 1e+300]}',
        "escaped": rb'{"\u00fc": [1, 1.5, 1e+300]}',
        "with a point": '{"ü": [1.0, 1.5, 1e+300]}'.encode(),
        "with an exponent": '{"ü": [1e0, 1.5e0, 1e+300]}'.encode(),
    }
