"""Whole answers, as grammars."""

import json
from collections.abc import Sequence

from octavo.constraints.parts import Part
from octavo.constraints.schema import prepared
from octavo.constraints.spelling import spelled, spelled_until
from octavo.core.channels import Channel, ChannelFormat
from octavo.core.grammar import Grammar
from octavo.core.tools import CallSyntax, Tool
from octavo.core.vocabulary import Vocabulary
from octavo.errors import UnsupportedGrammar

MAX_CALLS = 16
"""Of an answer that must be calls: enough for who needs several, an end for a model that finds none."""

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
    calls, arguments = _calls(syntax, tools, vocabulary, max_calls=max_calls)
    return _behind_thought([{"lark_grammar": f"start: calls\n{calls}"}, *arguments], channels, vocabulary)


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
    calls, arguments = _calls(syntax, tools, vocabulary, max_calls=max_calls)
    either = {"lark_grammar": f"start: {_opening(channels, vocabulary)} @plain | calls\n{calls}"}
    return _behind_thought([either, {"name": "plain", **part}, *arguments], channels, vocabulary)


def _calls(
    syntax: CallSyntax, tools: Sequence[Tool], vocabulary: Vocabulary, *, max_calls: int
) -> tuple[str, list[Part]]:
    """The rule `calls` with what it is made of, and the grammars of the arguments."""
    separated = f"({spelled(syntax.separator, vocabulary)} call){{0,{max_calls - 1}}}" if max_calls > 1 else ""
    rules = [
        f"calls: {spelled(syntax.opening, vocabulary)} call {separated} {spelled(syntax.closing, vocabulary)}",
        f"call: {' | '.join(f'call_{index}' for index in range(len(tools)))}",
        *(f"call_{index}: {_call(syntax, tool, index, vocabulary)}" for index, tool in enumerate(tools)),
    ]
    return "\n".join(rules), [_arguments(tool, index) for index, tool in enumerate(tools)]


def _call(syntax: CallSyntax, tool: Tool, index: int, vocabulary: Vocabulary) -> str:
    before = spelled(syntax.begin + tool.name + syntax.middle, vocabulary)
    return f"{before} @arguments_{index} {spelled(syntax.end, vocabulary)}"


def _arguments(tool: Tool, index: int) -> Part:
    try:
        return {"name": f"arguments_{index}", "lark_grammar": prepared(tool.parameters, must_be_object=True)}
    except UnsupportedGrammar as error:
        raise UnsupportedGrammar(f"{tool.name}: {error.message}") from error


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
