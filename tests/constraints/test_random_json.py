"""What looks for holes in grammars finds those of grammars that have some."""

import json
import random

import pytest

from octavo.core.grammar import Grammar
from support.json_schema_judge import problem, validator
from support.languages import Language
from support.random_json import MOODS, Mood, moods_for, random_text, random_texts

ANY_STRING = r'/"([^"\\\x00-\x1f]|\\["\\bfnrt]|\\u[0-9a-f]{4})*"/'

# What is wrong; a grammar in which it is; the schema that the grammar is meant to stand for.
HOLES = {
    "half a character": (f"start: {ANY_STRING}", {"type": "string"}),
    "two escapes that are one character": (
        r'start: /"([^"\\\x00-\x1f]|\\u[0-9a-f]{4}){2}"/',
        {"type": "string", "minLength": 2},
    ),
    "too large a number": (r"start: /-?[1-9][0-9]*([eE][+-]?[0-9]+)?/", {"type": "number"}),
    "a number with a point": (r"start: /(0|[1-9][0-9]*)(\.[0-9]+)?/", {"type": "integer"}),
    "not enough of a number": (r"start: /(0|[1-9][0-9]*)/", {"minimum": 10}),
    "a name written by escapes": (
        r'start: "{" /"([^"\\f]|\\u[0-9a-f]{4})*":/ ("1" | "true") "}"',
        {"properties": {"foo": {"type": "boolean"}}},
    ),
    "a name twice": (
        r'start: "{" pair "," pair "}"' + "\n" + r'pair: /"[a-z]+":1/',
        {"properties": {"one": True, "two": True}, "minProperties": 2},
    ),
    "a number that is too near": (
        r"start: /[0-2](\.[0-9]+)?/",
        {"type": "number", "exclusiveMaximum": 3},
    ),
    "too long": (r'start: /"[^"\\\x00-\x1f]*"/', {"type": "string", "maxLength": 50}),
}


def language(lark: str) -> Language:
    return Language(Grammar(json.dumps({"grammars": [{"lark_grammar": lark}]})))


@pytest.mark.parametrize("name", HOLES)
def test_random_texts_find_a_hole(name: str) -> None:
    lark, schema = HOLES[name]
    judge = validator(schema)
    found = [problem(text, judge) for _, text in random_texts(language(lark), schema, name, rounds=5)]
    assert any(found)
    assert not all(found)


@pytest.mark.parametrize("mood", MOODS, ids=lambda mood: mood.name)
def test_a_random_text_is_one_of_its_language(mood: Mood) -> None:
    strings = language(f'start: "[" {ANY_STRING} ("," {ANY_STRING})* "]"')
    text = random_text(strings, mood, (), random.Random(1))
    assert text in strings
    assert text[:-1] not in strings
    assert text + b"]" not in strings


def test_the_same_seed_gives_the_same_texts() -> None:
    words = language(f"start: {ANY_STRING}")
    first, again, other = (list(random_texts(words, {"const": "x"}, seed)) for seed in ("a", "a", "b"))
    assert first == again
    assert first != other
    assert [mood.name for mood, _ in first] == [mood.name for mood in moods_for({"const": "x"})]


def test_what_is_no_grammar_is_no_language() -> None:
    with pytest.raises(ValueError, match=r"(?i)unknown"):
        language("start: nothing")
