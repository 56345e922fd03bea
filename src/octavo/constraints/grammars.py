"""Whole answers, as grammars."""

import json
from collections.abc import Sequence

from octavo.constraints.parts import Part
from octavo.constraints.schema import prepared
from octavo.constraints.spelling import ANY_TEXT, spelled, spelled_until
from octavo.core.channels import Channel, ChannelFormat
from octavo.core.grammar import Grammar
from octavo.core.tools import CallSyntax, Tool
from octavo.core.vocabulary import Vocabulary
from octavo.errors import UnsupportedGrammar

MAX_CALLS = 8
"""Of an answer that must be calls: as many as any case of the function-calling leaderboard needs, and an end for a
model that finds none."""

_SPACE = r"/[ \n]{0,3}/"
"""As models write it behind their markers."""


def answer_grammar(part: Part, channels: ChannelFormat, vocabulary: Vocabulary) -> Grammar:
    """What the part allows, behind what the model writes before its answer."""
    opening = _opening(channels, vocabulary)
    opened = [{"lark_grammar": f"start: {opening} @plain"}, {"name": "plain", **part}] if opening else [part]
    return _behind_thought(opened, channels, vocabulary)


def calls_grammar(
    syntax: CallSyntax, tools: Sequence[Tool], channels: ChannelFormat, vocabulary: Vocabulary, *, max_calls: int
) -> Grammar:
    """At least one and at most max_calls calls of these tools, whose arguments are valid under their schemas.

    Raises UnsupportedGrammar where that cannot be promised.
    """
    first = spelled(syntax.opening + syntax.begin, vocabulary)
    rules = [f"start: {first} calls", *_calls(syntax, tools, vocabulary, max_calls=max_calls)]
    return _behind_thought([_part(rules), *_arguments(tools)], channels, vocabulary)


def answer_or_calls_grammar(
    part: Part,
    syntax: CallSyntax,
    tools: Sequence[Tool],
    channels: ChannelFormat,
    vocabulary: Vocabulary,
    *,
    max_calls: int,
) -> Grammar:
    """Either as answer_grammar or as calls_grammar."""
    first = spelled(syntax.opening + syntax.begin, vocabulary)
    rules = [f"start: {_opening(channels, vocabulary)} @plain | {first} calls"]
    rules += _calls(syntax, tools, vocabulary, max_calls=max_calls)
    return _behind_thought([_part(rules), {"name": "plain", **part}, *_arguments(tools)], channels, vocabulary)


def text_with_calls_grammar(
    trigger: str, syntax: CallSyntax, tools: Sequence[Tool], channels: ChannelFormat, vocabulary: Vocabulary
) -> Grammar:
    """Any text, in which the trigger is always the beginning of calls as in calls_grammar.

    trigger: what syntax.opening and syntax.begin, joined, begin with.
    """
    first = spelled((syntax.opening + syntax.begin).removeprefix(trigger), vocabulary)
    opening = _opening(channels, vocabulary)
    rules = [
        f"start: {f'({opening})?' if opening else ''} (trigger {first} calls)* ANY_TEXT",
        f"ANY_TEXT: {ANY_TEXT}",
        *spelled_until(trigger, vocabulary, rule="trigger"),
        *_calls(syntax, tools, vocabulary, max_calls=MAX_CALLS),
    ]
    return _behind_thought([_part(rules), *_arguments(tools)], channels, vocabulary)


def _calls(syntax: CallSyntax, tools: Sequence[Tool], vocabulary: Vocabulary, *, max_calls: int) -> list[str]:
    """The rule `calls`, behind the beginning of the first of them, with what it is made of."""
    num_more = max_calls - 1 if syntax.is_repeatable else 0
    more = f"({spelled(syntax.separator + syntax.begin, vocabulary)} call){{0,{num_more}}}" if num_more else ""
    return [
        f"calls: call {more} {spelled(syntax.closing, vocabulary)}",
        f"call: {' | '.join(f'call_{index}' for index in range(len(tools)))}",
        *(f"call_{index}: {_call(syntax, tool, index, vocabulary)}" for index, tool in enumerate(tools)),
    ]


def _call(syntax: CallSyntax, tool: Tool, index: int, vocabulary: Vocabulary) -> str:
    name = spelled(tool.name + syntax.middle, vocabulary)
    return f"{name} @arguments_{index} {spelled(syntax.end, vocabulary)}"


def _arguments(tools: Sequence[Tool]) -> list[Part]:
    return [{"name": f"arguments_{index}", "lark_grammar": _arguments_of(tool)} for index, tool in enumerate(tools)]


def _arguments_of(tool: Tool) -> str:
    try:
        return prepared(tool.parameters, must_be_object=True)
    except UnsupportedGrammar as error:
        raise UnsupportedGrammar(f"{tool.name}: {error.message}") from error


def _part(rules: Sequence[str]) -> Part:
    return {"lark_grammar": "\n".join(rules)}


def _opening(channels: ChannelFormat, vocabulary: Vocabulary) -> str:
    return f"{spelled(channels.answer, vocabulary)} {_SPACE}" if channels.answer else ""


def _behind_thought(parts: Sequence[Part], channels: ChannelFormat, vocabulary: Vocabulary) -> Grammar:
    """Reasoning up to its end, which has begun or may begin, then the first of the parts."""
    begin, end = channels.thought
    if not end:
        return _grammar(*parts)
    has_begun = channels.initial is Channel.REASONING
    thought = f"thought {_SPACE}" if has_begun else f"({spelled(begin, vocabulary)} thought {_SPACE})?"
    rules = "\n".join([f"start: {thought} @answer", *spelled_until(end, vocabulary, rule="thought")])
    return _grammar({"lark_grammar": rules}, {"name": "answer", **parts[0]}, *parts[1:])


def _grammar(*parts: Part) -> Grammar:
    return Grammar(json.dumps({"grammars": parts}, ensure_ascii=False))
