"""What holds for every tool format: its syntax, its reader, and the grammars that are made of it go together."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llguidance import LLMatcher

from octavo.constraints import calls_grammar, text_with_calls_grammar
from octavo.constraints.library import small_tokenizer
from octavo.core.channels import PLAIN, ChannelFormat
from octavo.core.grammar import Grammar
from octavo.core.vocabulary import SpecialToken, Vocabulary
from octavo.streaming.tool_formats import BY_NAME, FORMATS, GENERIC, ToolFormat, format_of
from streaming.tool_formats.samples import TOOLS, Call, calls_of, run
from streaming.tool_formats.samples_c import MODELS

CALLS: tuple[Call, ...] = (
    ("search", {"query": 'é "]}</tool_call>\n{', "tags": ["a", "b"], "filters": {"a": [1, {"b": None}]}}),
    ("now", {}),
    ("add", {"a": -1.5, "b": 1e3}),
)
END = 256
VOCABULARY = Vocabulary(
    (*(bytes([value]) for value in range(256)), b""),
    (SpecialToken(END, "<|octavo_end|>", is_control=True),),
    frozenset({END}),
    None,
    False,
)
every_format = pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.name)


def channels_of(format: ToolFormat) -> ChannelFormat:
    return MODELS[format.name].channels if format.name in MODELS else PLAIN


def written(format: ToolFormat, *calls: Call) -> str:
    """The calls in the syntax of the format."""
    syntax = format.syntax
    texts = (
        f"{syntax.begin}{name}{syntax.middle}{json.dumps(arguments, ensure_ascii=False)}{syntax.end}"
        for name, arguments in calls
    )
    return syntax.opening + syntax.separator.join(texts) + syntax.closing


def some_calls(format: ToolFormat) -> tuple[Call, ...]:
    return CALLS if format.syntax.is_repeatable else CALLS[:1]


def is_allowed(grammar: Grammar, text: str) -> bool:
    """As a whole answer."""
    matcher, tokens = LLMatcher(small_tokenizer(VOCABULARY), grammar.definition, log_level=0), list(text.encode())
    assert not matcher.get_error()
    return matcher.try_consume_tokens(tokens) == len(tokens) and matcher.is_accepting()


def test_names_are_different_and_the_generic_one_is_among_them() -> None:
    assert len(BY_NAME) == len(FORMATS)
    assert GENERIC in FORMATS
    assert format_of("{{ messages }}") is GENERIC


@every_format
@given(cuts=st.lists(st.integers(0, 600), max_size=12))
def test_calls_in_its_syntax_are_read_whether_they_were_forced_or_chosen(format: ToolFormat, cuts: list[int]) -> None:
    calls = some_calls(format)
    for is_forced in (True, False):
        event = run(written(format, *calls), format.name, cuts=cuts, channels=channels_of(format), is_forced=is_forced)
        assert calls_of(event) == list(calls)
        assert (event.text, event.reasoning) == ("", "")


@every_format
def test_forced_calls_are_allowed_in_its_syntax_and_nothing_else_is(format: ToolFormat) -> None:
    calls = some_calls(format)
    grammar = calls_grammar(format.syntax, TOOLS, PLAIN, VOCABULARY, max_calls=len(calls))
    assert is_allowed(grammar, written(format, *calls))
    assert is_allowed(grammar, written(format, calls[0]))
    wrong = [("search", {"query": 1}), ("search", {}), ("unknown", {})]
    for text in ("", "Well. " + written(format, *calls), *(written(format, call) for call in wrong)):
        assert not is_allowed(grammar, text)
    too_many = written(format, *calls, calls[0])
    assert not is_allowed(grammar, too_many)


@pytest.mark.parametrize("format", [format for format in FORMATS if format.trigger], ids=lambda format: format.name)
def test_where_a_trigger_marks_calls_text_is_free_and_calls_are_valid(format: ToolFormat) -> None:
    grammar = text_with_calls_grammar(format.trigger, format.syntax, TOOLS, PLAIN, VOCABULARY)
    right, wrong = written(format, *CALLS), written(format, ("search", {"query": 1}))
    assert is_allowed(grammar, "Just text, {}.")
    assert is_allowed(grammar, f"Let me see. {right} And now {right}")
    assert not is_allowed(grammar, f"Let me see. {wrong}")
    assert not is_allowed(grammar, f"It begins with {format.trigger}")
