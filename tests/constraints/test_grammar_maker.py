"""Making and checking what clients give: in its own thread, within its time, once."""

import asyncio
import json
import threading
import time

import pytest

from octavo.constraints import GrammarMaker, Part, Recipe, answer_grammar, grammar_part, maker, regex_part, schema_part
from octavo.constraints.budget import check_time, time_budget
from octavo.core.channels import PLAIN
from octavo.core.grammar import ANY_TEXT, Grammar
from octavo.engine.scripted import ByteTokenizer
from octavo.errors import Overloaded, UnsupportedGrammar
from support.languages import Language

VOCABULARY = ByteTokenizer([]).vocabulary


def grammar_of(part: Part) -> Grammar:
    return answer_grammar(part, PLAIN, VOCABULARY)


def recipe(part: Part, key: str = "key") -> Recipe:
    return Recipe("response_format", key, lambda: grammar_of(part))


async def test_without_a_recipe_an_answer_may_be_any_text() -> None:
    assert await GrammarMaker(1.0).made(None, VOCABULARY) == ANY_TEXT


async def test_what_was_made_is_kept_and_told_apart_by_key_and_vocabulary() -> None:
    grammars, num_made = GrammarMaker(1.0), 0

    def make() -> Grammar:
        nonlocal num_made
        num_made += 1
        return grammar_of(regex_part("a"))

    same = Recipe("response_format", "a", make)
    answers = await asyncio.gather(*(grammars.made(same, VOCABULARY) for _ in range(20)))
    assert set(answers) == {grammar_of(regex_part("a"))}
    assert num_made == 1
    await grammars.made(Recipe("response_format", "b", make), VOCABULARY)
    await grammars.made(same, ByteTokenizer([]).vocabulary)
    assert num_made == 3


async def test_no_more_is_kept_than_the_bound_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maker, "MAX_KEPT", 1000)
    grammars, made = GrammarMaker(5.0), list[str]()

    def recipe_of(letter: str) -> Recipe:
        def make() -> Grammar:
            made.append(letter)
            return grammar_of(regex_part(letter * 400))

        return Recipe("response_format", letter, make)

    for letter in "abcca":
        await grammars.made(recipe_of(letter), VOCABULARY)
    assert "".join(made) == "abca"


async def test_errors_name_the_field_and_are_not_kept() -> None:
    grammars = GrammarMaker(1.0)
    with pytest.raises(UnsupportedGrammar, match=r"^response_format: The grammar cannot be compiled: ") as caught:
        await grammars.made(recipe(regex_part("(")), VOCABULARY)
    assert caught.value.param == "response_format"
    assert await grammars.made(recipe(regex_part("a")), VOCABULARY)


async def test_what_takes_too_long_is_refused_and_waiting_does_not_count() -> None:
    def endless() -> Grammar:
        while True:
            check_time()

    def sleeping() -> Grammar:
        time.sleep(0.3)
        return grammar_of(regex_part("a"))

    grammars = GrammarMaker(0.2)
    with pytest.raises(UnsupportedGrammar, match=r"more than 0\.2 s"):
        await grammars.made(Recipe("tools", "endless", endless), VOCABULARY)
    assert await grammars.made(Recipe("tools", "sleeping", sleeping), VOCABULARY)


async def test_the_event_loop_turns_while_a_grammar_is_made_and_too_many_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(maker, "MAX_WAITING", 2)
    grammars, gate = GrammarMaker(5.0), threading.Event()

    def waiting() -> Grammar:
        assert gate.wait(60)
        return grammar_of(regex_part("a"))

    running = [asyncio.create_task(grammars.made(Recipe("tools", n, waiting), VOCABULARY)) for n in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(Overloaded):
        await grammars.made(Recipe("tools", "late", waiting), VOCABULARY)
    gate.set()
    assert len(await asyncio.gather(*running)) == 2
    assert await grammars.made(Recipe("tools", "late", waiting), VOCABULARY)


async def test_the_deepest_grammars_that_are_allowed_do_not_end_the_process() -> None:
    grammars = GrammarMaker(5.0)
    rules = [f"a{i}: a{i + 1}" for i in range(900)]
    chains = {
        "rules": "\n".join(["start: a0", *rules, 'a900: "x"']),
        "terminals": "\n".join(["start: A0", *(rule.upper() for rule in rules), 'A900: "x"']),
        "gbnf": "\n".join(["root ::= a0", *(rule.replace(":", " ::=") for rule in rules), 'a900 ::= "x"']),
    }
    for name, text in chains.items():
        assert await grammars.made(recipe(grammar_part(text), name), VOCABULARY)
    deep = {"$defs": {f"d{i}": {"items": {"$ref": f"#/$defs/d{i + 1}"}} for i in range(1500)} | {"d1500": {}}}
    assert await grammars.made(recipe(schema_part({**deep, "$ref": "#/$defs/d0"}), "schema"), VOCABULARY)


@pytest.mark.parametrize(
    "text",
    [
        "start: " + " ".join(['"a"?'] * 4000),
        "\n".join(["start: a0", *(f"a{i}: a{i + 1}" for i in range(3500)), 'a3500: "x"']),
        'start: "a" @answer',
        "start: @other",
        "start: start",
        "start: <|unknown|>",
        "start: <[99999]>",
        'start: %json {"type": "object", "not": {}}',
        "root ::= (",
        'nothing: "a"',
        "",
    ],
)
async def test_what_is_no_grammar_or_too_large_is_refused_in_words_for_clients(text: str) -> None:
    with pytest.raises(UnsupportedGrammar) as caught:
        await GrammarMaker(2.0).made(
            Recipe("response_format", text, lambda: grammar_of(grammar_part(text))), VOCABULARY
        )
    assert "\n" not in caught.value.message
    assert not any(word in caught.value.message for word in ("panic", "backtrace", "<state>", "1 | "))


@pytest.mark.parametrize(
    ("part", "good", "bad"),
    [
        (regex_part(r"\d{3}-[a-z]+/x"), ["123-a/x"], ["123-a/xy", "12-a/x", " 123-a/x"]),
        (regex_part("a\nb"), ["a\nb"], ["a b"]),
        (grammar_part('start: "a" item ("," item)*\nitem: /[0-9]+/'), ["a1,22"], ["a", "a1,", "b1"]),
        (grammar_part('root ::= "a" item ("," item)*\nitem ::= [0-9]+'), ["a1,22"], ["a", "a1,"]),
        (grammar_part('start: %json {"type": "integer", "minimum": 3}'), ["3", "12"], ["2", "x"]),
    ],
)
def test_patterns_and_grammars_mean_the_whole_answer(part: Part, good: list[str], bad: list[str]) -> None:
    language = Language(grammar_of(part))
    assert [text for text in good if text.encode() not in language] == []
    assert [text for text in bad if text.encode() in language] == []


def test_a_budget_ends_with_its_block() -> None:
    with pytest.raises(UnsupportedGrammar), time_budget(-1.0):
        check_time()
    check_time()
    with time_budget(60):
        check_time()


def test_a_grammar_is_one_json_document() -> None:
    assert json.loads(grammar_of(regex_part("é")).definition) == {"grammars": [{"lark_grammar": "start: /é/"}]}
