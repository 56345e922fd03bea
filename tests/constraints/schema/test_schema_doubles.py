"""Numbers are judged by their texts, and by readers who take them for doubles: both find the same."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from prepared_language import language

NO_INTEGER = {"type": "number", "not": {"type": "integer"}}
FLOATS = st.floats(-1e12, 1e12) | st.floats(-1, 1) | st.floats(-1e-15, 1e-15)
BOUNDS = FLOATS.filter(lambda bound: bound == 0 or abs(bound) > 1e-30)


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (NO_INTEGER, b"103020000000005.00000004"),
        (NO_INTEGER, b"3110.000000000000008"),
        (NO_INTEGER, b"-0.99999999999999999"),
        (NO_INTEGER, b"1.0"),
        ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, b"3110.000000000000008"),
        ({"exclusiveMinimum": 1e-20, "exclusiveMaximum": 0.3}, b"0.2999999999999999999999"),
        ({**NO_INTEGER, "minimum": 1e-20, "maximum": 5}, b"4.99999999999999999999"),
        ({"not": {"const": 3110}}, b"3110.000000000000008"),
    ],
)
def test_a_number_that_a_double_takes_for_another_is_not_written(schema: Any, text: bytes) -> None:
    assert text not in language(schema)


@given(st.decimals(-(10**15), 10**15, allow_nan=False, places=12))
def test_what_must_not_be_whole_is_not_whole_as_a_double(number: Decimal) -> None:
    text = format(number.normalize(), "f")
    if text.encode() in language(NO_INTEGER):
        assert not float(text).is_integer()


@pytest.mark.parametrize("text", [b"0.5", b"-0.0000000001", b"12345.0000000001", b"1234567890.12345"])
def test_fractions_of_fifteen_digits_are_written(text: bytes) -> None:
    assert text in language(NO_INTEGER)


@given(st.tuples(BOUNDS, BOUNDS).map(sorted), st.integers(5, 45))
def test_a_number_next_to_an_exclusive_bound_is_beside_it_as_a_double(bounds: list[float], places: int) -> None:
    low, high = bounds
    assume(high - low > abs(high) / 1000 and high - low > abs(low) / 1000)
    allowed = language({"type": "number", "exclusiveMinimum": low, "exclusiveMaximum": high})
    for near in (Decimal(repr(low)) + Decimal(10) ** -places, Decimal(repr(high)) - Decimal(10) ** -places):
        text = format(near, "f")
        if text.encode() in allowed:
            assert low < float(text) < high
