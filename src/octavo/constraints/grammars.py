"""Whole answers, as grammars."""

import json
from collections.abc import Sequence

from octavo.constraints.parts import Part
from octavo.constraints.schema import prepared
from octavo.constraints.spelling import spelled
from octavo.core.channels import Channel, ChannelFormat
from octavo.core.grammar import Grammar
from octavo.core.tools import CallSyntax, Tool
from octavo.core.vocabulary import Vocabulary

MAX_CALLS = 16
"""Of an answer that must be calls: enough for who needs several, an end for a model that finds none."""

_SPACE = r"/[ \n]{0,3}/"
_ANY = "/(?s:.*)/"


def answer_grammar(part: Part, channels: ChannelFormat, vocabulary: Vocabulary) -> Grammar:
    """What the part allows, behind what the model writes before its answer."""
    before = [*_thought(channels, vocabulary), spelled(channels.answer, vocabulary)]
    return _grammar(before, part)


def calls_grammar(
    syntax: CallSyntax, tools: Sequence[Tool], channels: ChannelFormat, vocabulary: Vocabulary, *, max_calls: int
) -> Grammar:
    """At least one and at most max_calls calls of these tools, whose arguments are valid under their schemas.

    Raises UnsupportedGrammar where that cannot be promised.
    """
    names = [f"call_{index}" for index in range(len(tools))]
    separated = f"({spelled(syntax.separator, vocabulary)} call){{0,{max_calls - 1}}}" if max_calls > 1 else ""
    rules = [
        f"start: {spelled(syntax.opening, vocabulary)} call {separated} {spelled(syntax.closing, vocabulary)}",
        f"call: {' | '.join(names)}",
        *(f"{name}: {_call(syntax, tool, vocabulary)}" for name, tool in zip(names, tools, strict=True)),
    ]
    return _grammar(_thought(channels, vocabulary), {"lark_grammar": "\n".join(rules)})


def _call(syntax: CallSyntax, tool: Tool, vocabulary: Vocabulary) -> str:
    before = spelled(syntax.begin + tool.name + syntax.middle, vocabulary)
    arguments = json.dumps(prepared(tool.parameters, must_be_object=True))
    return f"{before} %json {arguments} {spelled(syntax.end, vocabulary)}"


def _thought(channels: ChannelFormat, vocabulary: Vocabulary) -> list[str]:
    """Reasoning up to its end, which has begun or may begin."""
    begin, end = channels.thought
    if not end:
        return []
    terms = f"{_ANY} {spelled(end, vocabulary)} {_SPACE}"
    if channels.initial is Channel.REASONING:
        return [terms]
    return [f"({spelled(begin, vocabulary)} {terms})?"]


def _grammar(before: Sequence[str], part: Part) -> Grammar:
    grammars = [part]
    if any(before):
        grammars = [{"lark_grammar": f"start: {' '.join(before)} @answer"}, {"name": "answer", **part}]
    return Grammar(json.dumps({"grammars": grammars}, ensure_ascii=False))
