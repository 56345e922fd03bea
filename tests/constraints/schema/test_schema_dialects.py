"""Regular expressions that dialects read differently: what all agree on is generated, and nothing else."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prepared_language import allows

from octavo.constraints.schema.patterns import parsed

SPACE = "\t\n\v\f\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
WORD = "A-Za-z0-9_"
ECMA = {
    # In the notation of Python, what ECMA 262 means by a pattern.
    r"\s": f"[{SPACE}]",
    r"^\S+$": rf"^[^{SPACE}]+\Z",
    r"^[^\s]": f"^[^{SPACE}]",
    r"[^\S]$": rf"[{SPACE}]\Z",
    r"^\d": "^[0-9]",
    r"\D": "[^0-9]",
    r"^[\da]+$": r"^[0-9a]+\Z",
    r"^\w+$": rf"^[{WORD}]+\Z",
    r"[^\W]": f"[{WORD}]",
    r"\W$": rf"[^{WORD}]\Z",
    r"^.+$": "^[^\n\r\u2028\u2029]+\\Z",
    r"a$|^b": r"a\Z|^b",
}
TEXTS = st.text(st.sampled_from("ab_1 \n\r\x1c\x85\u00a0\u2028\u3000\ufeff\u0663\u00b2\u00e9\u4e94-"), max_size=4)


@pytest.mark.parametrize("source", ECMA)
@given(text=TEXTS)
def test_a_pattern_is_read_as_all_dialects_agree(source: str, text: str) -> None:
    pattern = parsed(source)
    found = [re.search(source, text) is not None, re.search(ECMA[source], text) is not None]
    assert not pattern.matches(text) or all(found)
    assert pattern.may_match(text) or not any(found)


@pytest.mark.parametrize("text", ["", "a b", "é", "a\u00e9"])
@pytest.mark.parametrize("source", [r"^\S*$", r"^\D*$", r"^.*$"])
def test_what_no_dialect_takes_otherwise_is_no_matter_of_dispute(source: str, text: str) -> None:
    assert parsed(source).matches(text) is parsed(source).may_match(text)


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"pattern": r"^\S$"}, ["a", "é"], [" ", "\ufeff", "\u00a0", "\u3000"]),
        ({"pattern": r"^\s$"}, [" ", "\n"], ["a", "\u200b"]),
        ({"pattern": r"^[^\s]$"}, ["a"], ["\ufeff", "\u00a0"]),
        ({"not": {"pattern": r"\s"}}, ["ab"], [1, "a b", "a\u00a0b", "\ufeff"]),
        ({"not": {"pattern": r"\d"}}, ["a"], ["1", "\u0663"]),
        ({"not": {"pattern": "^a$"}}, ["ab"], ["a", "a\n"]),
        ({"enum": ["\ufeff", "x"], "pattern": r"\s"}, [], ["\ufeff", "x"]),
        ({"enum": ["\ufeff", "x"], "not": {"pattern": r"\s"}}, ["x"], ["\ufeff"]),
        (
            {"patternProperties": {r"^\s": {"type": "integer"}}, "additionalProperties": {"type": "null"}},
            [{" a": 1, "b": None}],
            [{" a": None}, {"\ufeff": None}, {"\u00a0": None}],
        ),
        (
            {
                "required": ["\ufeff"],
                "patternProperties": {r"^\s": {"enum": [1, None]}},
                "additionalProperties": {"enum": [2, None]},
            },
            [{"\ufeff": None}],
            [{"\ufeff": 1}, {"\ufeff": 2}],
        ),
    ],
)
def test_a_value_is_valid_in_every_dialect(schema: Any, good: list[Any], bad: list[Any]) -> None:
    schema = schema if good else {"anyOf": [{"type": "null"}, schema]}
    assert [value for value in good if not allows(schema, value)] == []
    assert [value for value in bad if allows(schema, value)] == []
