import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.api.body import _read_with_reasons, check_structure, read_object
from octavo.api.json_structure import PIECE
from octavo.errors import InvalidRequest

MAX_ITEMS = 100_000


def parse_json(body: bytes, *, max_depth: int, max_items: int) -> dict[str, Any]:
    asyncio.run(check_structure(body, max_depth=max_depth, max_items=max_items))
    return read_object(body)


scalars = st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(st.characters(exclude_categories=["Cs"]))
values = st.recursive(scalars | texts, lambda inner: st.lists(inner) | st.dictionaries(texts, inner), max_leaves=20)
objects = st.dictionaries(texts, values, max_size=5)


def depth(value: Any) -> int:
    if isinstance(value, dict | list):
        parts = value.values() if isinstance(value, dict) else value
        return 1 + max(map(depth, parts), default=0)
    return 0


@given(objects, st.booleans())
def test_every_json_object_is_read_as_it_was_written(value: dict[str, Any], is_ascii: bool) -> None:
    assert parse_json(json.dumps(value, ensure_ascii=is_ascii).encode(), max_depth=64, max_items=MAX_ITEMS) == value


@given(objects, st.integers(1, 6))
def test_nesting_is_refused_exactly_beyond_the_limit(value: dict[str, Any], max_depth: int) -> None:
    body = json.dumps(value).encode()
    if depth(value) <= max_depth:
        assert parse_json(body, max_depth=max_depth, max_items=MAX_ITEMS) == value
    else:
        with pytest.raises(InvalidRequest, match="nested too deeply"):
            parse_json(body, max_depth=max_depth, max_items=MAX_ITEMS)


def items(value: Any) -> int:
    """Lists, objects and members."""
    if isinstance(value, dict):
        return 1 + sum(1 + items(part) for part in value.values())
    return 1 + sum(map(items, value)) if isinstance(value, list) else 0


@given(objects, st.integers(1, 12))
def test_structure_is_refused_exactly_beyond_the_limit(value: dict[str, Any], max_items: int) -> None:
    body = json.dumps(value).encode()
    if items(value) <= max_items:
        assert parse_json(body, max_depth=64, max_items=max_items) == value
    else:
        with pytest.raises(InvalidRequest, match="too many lists, objects and members"):
            parse_json(body, max_depth=64, max_items=max_items)


NUMBERS = ("-0", "1e999", "-1e400", "1.7976931348623159e308", "5e-324", "01", "1.", ".5", "+1", "1E+5", "9" * 30, "NaN")
SURROGATES = ("\\ud800", "\\ud83d\\u0041", "\\ud800\\ud800", "\\udc00\\ud83d", "\\udc00", "\\ud83d\\ude00", "\\ud83dx")
STRINGS = (*SURROGATES, "\\\\ud800", "\\x", "\\u12", "\x00", "\x1f", "\x7f", "\u2028", "\\/")
SNIPPETS = (*NUMBERS, *(f'"{string}"' for string in STRINGS), '"a"', ":", ",", "{", "}", "[", "]", " ", "\ufeff", "//")


@given(
    st.lists(st.sampled_from(SNIPPETS), max_size=5),
    st.sampled_from(['{"a": %s}', '{"a": [%s], "a": 1}', "{%s}", "[%s]"]),
)
def test_what_is_read_fast_is_what_is_read_slowly_and_with_reasons(parts: list[str], frame: str) -> None:
    body = (frame % "".join(parts)).encode()

    def read(decode: Callable[[bytes], Any]) -> str:
        try:
            return repr(decode(body))
        except InvalidRequest as error:
            return f"{error.param}: {error.message}"

    assert read(read_object) == read(_read_with_reasons)


NOT_UTF8 = (b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x80")


@pytest.mark.parametrize("body", [*(b'{"a": "%s"}' % data for data in NOT_UTF8), b'{"\xff": 1}'])
def test_bytes_that_are_no_utf8_are_refused(body: bytes) -> None:
    with pytest.raises(InvalidRequest, match="not UTF-8"):
        parse_json(body, max_depth=64, max_items=MAX_ITEMS)


@pytest.mark.parametrize("text", ["x", "[", "\\", '"'])
async def test_others_have_turns_while_a_large_body_is_looked_through(text: str) -> None:
    value = {"brackets": "[" * MAX_ITEMS, "a": text * 2**20}  # so many that all of it has to be looked through
    body = json.dumps(value).encode()
    reading = asyncio.create_task(check_structure(body, max_depth=64, max_items=MAX_ITEMS))
    num_turns = 0
    while not reading.done():
        await asyncio.sleep(0)
        num_turns += 1
    await reading
    assert num_turns >= 2 * len(body) // PIECE
    assert read_object(body) == value


@given(st.binary(max_size=200))
def test_any_bytes_are_an_object_or_an_invalid_request(body: bytes) -> None:
    with suppress(InvalidRequest):
        assert isinstance(parse_json(body, max_depth=64, max_items=MAX_ITEMS), dict)


def test_brackets_inside_strings_are_no_structure() -> None:
    text = '[{"\\"[' * 1000
    value = {"a": text, text: [1]}
    assert parse_json(json.dumps(value).encode(), max_depth=2, max_items=5) == value


@pytest.mark.parametrize("escaped", ["\\ud83d\\ude00", "\\\\ud83d", "\\\\\\\\ud83d", "\\u00e9"])
def test_whole_characters_may_be_escaped(escaped: str) -> None:
    body = f'{{"a": "{escaped}"}}'.encode()
    assert parse_json(body, max_depth=64, max_items=MAX_ITEMS) == json.loads(body)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "[[1e999]]", "9" * 5000])
def test_a_number_that_does_not_exist_names_its_field(number: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_json(f'{{"a": 1, "b": {number}}}'.encode(), max_depth=64, max_items=MAX_ITEMS)
    assert caught.value.param == "b"


def test_structure_is_counted_to_its_end_among_very_many_strings() -> None:
    value = {"a": ["[" for _ in range(5000)], "b": [[[["{"] * 5000]]]}
    body = json.dumps(value).encode()
    assert parse_json(body, max_depth=5, max_items=8) == value
    with pytest.raises(InvalidRequest, match="nested too deeply"):
        parse_json(body, max_depth=4, max_items=8)
    with pytest.raises(InvalidRequest, match="too many lists, objects and members"):
        parse_json(body, max_depth=5, max_items=7)
