"""Regular expressions that are written for the grammar."""

import json

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from octavo.constraints.schema.formats import FORMATS
from octavo.constraints.schema.pattern_nodes import ESCAPES, PatternError
from octavo.constraints.schema.patterns import parsed, whole
from octavo.constraints.schema.ranges import between

BOUNDS = st.tuples(st.integers(-5000, 5000), st.integers(-5000, 5000)).map(sorted)


def spelled(number: int, places: int) -> str:
    digits = f"{abs(number):0{places + 1}d}"
    sign = "-" if number < 0 else ""
    return f"{sign}{digits[:-places]}.{digits[-places:]}" if places else f"{sign}{digits}"


@given(BOUNDS, st.integers(-6000, 6000), st.integers(0, 3))
def test_a_range_is_matched_and_nothing_else(bounds: list[int], number: int, places: int) -> None:
    low, high = bounds
    text = spelled(number, places)
    short = text.rstrip("0").rstrip(".") if places else text
    if short != "-0":
        assert bool(regex.fullmatch(between(low, high, places), short)) is (low <= number <= high)
    if regex.fullmatch(between(low, high, places), text):
        assert low <= number <= high


@given(BOUNDS.filter(lambda bounds: bounds[0] < bounds[1]))
def test_a_range_takes_no_more_decimals_than_it_has(bounds: list[int]) -> None:
    assert regex.fullmatch(between(*bounds, 2), f"{spelled(bounds[0], 2)}1") is None


PATTERNS = [r"^a+b?$", "ab|^c", r"[a-f\d]{2,3}$", r"^[^\s\"]*$", r"\n|\\", r"^(x|y$)", r"^\u0041\x42[\]\-]", r"a.c"]
PATTERNS += [r"\S$", r"^[^\S\d]*$", r"^\W|\D$"]
TEXTS = st.text(st.sampled_from('abcdefxyAB]-\\"\n\t 12é\u00a0\ufeff\u2028²'), max_size=8)


@pytest.mark.parametrize("source", PATTERNS)
@given(text=TEXTS)
def test_a_pattern_matches_the_spelling_of_what_it_matches(source: str, text: str) -> None:
    pattern = parsed(source)
    body = "".join(f"\\{ESCAPES[code]}" if code in ESCAPES else code for code in text)
    assert json.loads(f'"{body}"') == text
    # Python spells the intersection of classes like Rust does, in its version 1.
    assert bool(regex.fullmatch(pattern.spelled, body, regex.V1)) is pattern.matches(text)
    assert bool(regex.fullmatch(pattern.spelled_widely, body, regex.V1)) is pattern.may_match(text)


@pytest.mark.parametrize(
    "source", ["(?=a)", r"\ba", r"(a)\1", "(?i)a", "a**", "[b-a]", "[]", "(a", "a)", "a{9999}", "a^b", r"\q", "*"]
)
def test_what_a_pattern_cannot_have_is_told(source: str) -> None:
    with pytest.raises(PatternError):
        parsed(source)


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("date", "2024-02-28", "2024-02-30"),
        ("time", "23:59:59Z", "24:00:00Z"),
        ("date-time", "2024-01-31T00:00:00.5+01:00", "2024-01-31"),
        ("duration", "P1Y2M3DT4H5M6S", "P1M1Y"),
        ("email", "a.b@example.com", "a@b@example.com"),
        ("hostname", "a-b.example.com", "-a.example.com"),
        ("ipv4", "255.0.10.1", "256.0.0.1"),
        ("ipv6", "2001:db8::1", "2001::db8::1"),
        ("uuid", "123e4567-e89b-12d3-a456-426614174000", "123e4567"),
        ("uri", "https://example.com/a?b=c#d", "//example.com"),
        ("json-pointer", "/a/b~0", "a"),
    ],
)
def test_a_format_is_enforced(name: str, good: str, bad: str) -> None:
    pattern = whole(FORMATS[name])
    assert pattern.matches(good)
    assert not pattern.matches(bad)
