"""Answers as models write them, and what is to be told of them."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from octavo.core.channels import PLAIN, ChannelFormat
from octavo.core.output import FinishReason, TextEvent, TokenChunk
from octavo.core.tools import Tool, ToolUse, joined_calls
from octavo.core.vocabulary import SpecialToken, Vocabulary
from octavo.streaming import ChoiceStream
from streaming.builders import choice

Call = tuple[str, Any]
"""Name and arguments."""


@dataclass(frozen=True, slots=True)
class Sample:
    """format: name of the tool format. text: what the model writes. content: what of it is the answer's text."""

    format: str
    text: str
    content: str
    calls: Sequence[Call]


def tool(name: str, required: Sequence[str] = (), /, **properties: Mapping[str, Any]) -> Tool:
    parameters = {"type": "object", "properties": properties, "required": list(required)}
    return Tool(name, {"name": name, "description": f"What {name} does", "parameters": parameters})


TOOLS = (
    tool("get_weather", ["city"], city={"type": "string"}, days={"type": "integer"}, celsius={"type": "boolean"}),
    tool(
        "search",
        ["query"],
        query={"type": "string"},
        limit={"type": "integer"},
        tags={"type": "array", "items": {"type": "string"}},
        filters={"type": "object"},
    ),
    tool("add", ["a", "b"], a={"type": "number"}, b={"type": "number"}),
    tool("now"),
)


def run(
    text: str,
    format: str,
    *,
    cuts: Sequence[int] = (),
    controls: Sequence[str] = (),
    channels: ChannelFormat = PLAIN,
    tools: Sequence[Tool] = TOOLS,
    is_parallel: bool = True,
    is_forced: bool = False,
    reads_unmarked: bool = True,
) -> TextEvent:
    """All that is told of an answer, as one event.

    cuts: places in the UTF-8 of the text where a token ends; without any, the text is one token.
    controls: texts that are control tokens of the vocabulary, each a token of its own.
    """
    vocabulary, tokens = _tokenized(text, cuts, controls)
    use = ToolUse(tuple(tools), format, is_forced, is_parallel, reads_unmarked)
    stream = ChoiceStream(replace(choice(channels=channels), tools=use), vocabulary)
    chunks = [*(TokenChunk((token,)) for token in tokens), TokenChunk((), FinishReason.STOP)]
    return TextEvent.joined([event for chunk in chunks if (event := stream.push(chunk)) is not None])


def run_sample(sample: Sample, cuts: Sequence[int] = ()) -> TextEvent:
    return run(sample.text, sample.format, cuts=cuts)


def calls_of(event: TextEvent) -> list[Call]:
    return [(call.name, json.loads(call.arguments)) for call in joined_calls(event.tool_calls)]


def _tokenized(text: str, cuts: Sequence[int], controls: Sequence[str]) -> tuple[Vocabulary, range]:
    """A vocabulary of this text's tokens, and these in order, behind the one that the prompt has."""
    data = text.encode()
    names = re.compile(b"|".join(re.escape(control.encode()) for control in controls) or b"(?!)")
    spans = [match.span() for match in names.finditer(data)]
    inner = {cut for cut in cuts if cut < len(data) and not any(begin < cut < end for begin, end in spans)}
    borders = sorted({0, len(data), *inner, *(border for span in spans for border in span)})
    tokens = [(data[begin:end], (begin, end) in spans) for begin, end in pairwise(borders)]
    vocabulary = Vocabulary(
        pieces=(b"", *(b"" if is_control else piece for piece, is_control in tokens)),
        special_tokens=tuple(
            SpecialToken(place, piece.decode(), is_control=True)
            for place, (piece, is_control) in enumerate(tokens, 1)
            if is_control
        ),
        eog_tokens=frozenset(),
        bos_token=None,
        adds_bos=False,
    )
    return vocabulary, range(1, len(tokens) + 1)
