"""Lists of calls between markers of their own. Apriel 1.5 and 1.6, Nemotron Nano 2, Phi 4 mini, Granite 3 (later ones
write as Hermes does) and Firefunction 2:

<tool_calls>[{"name": "get_weather", "arguments": {"city": "Paris"}}]</tool_calls>
<TOOLCALL>[{"name": "get_weather", "arguments": {"city": "Paris"}}]</TOOLCALL>
<|tool_call|>[{"name": "get_weather", "arguments": {"city": "Paris"}}]<|/tool_call|>
<|tool_call|>[{"name": "get_weather", "arguments": {"city": "Paris"}}]
functools[{"name": "get_weather", "arguments": {"city": "Paris"}}]

LFM2 and LFM2.5, in Python, or in JSON where the system prompt asks for it:

<|tool_call_start|>[get_weather(city="Paris"), now()]<|tool_call_end|>

Command R7B, and Cohere's later models:

<|START_ACTION|>[
    {"tool_call_id": "0", "tool_name": "get_weather", "parameters": {"city": "Paris"}}
]<|END_ACTION|>
"""

from octavo.core.tools import CallSyntax
from octavo.streaming.tool_formats import hermes
from octavo.streaming.tool_formats.base import CallReading, ToolFormat, Tools
from octavo.streaming.tool_formats.reader import Reader
from octavo.streaming.tool_formats.unmarked import read_several


def list_syntax(opening: str, closing: str) -> CallSyntax:
    """Of a list in JSON. opening, closing: with the list's brackets."""
    return CallSyntax(
        opening=opening,
        begin='{"name": "',
        middle='", "arguments": ',
        end="}",
        separator=", ",
        closing=closing,
    )


def _format(name: str, sign: str, starts: tuple[str, ...], ends: tuple[str, ...], syntax: CallSyntax) -> ToolFormat:
    """starts, ends: what may stand before and behind the calls, those of the syntax first."""

    def read(reader: Reader, tools: Tools) -> CallReading:
        yield from reader.one_of(starts)
        yield from read_several(reader, tools, ends, starts=starts)

    return ToolFormat(name=name, signs=(sign,), starts=starts, read=read, syntax=syntax, markers=ends)


def _pair(name: str, start: str, end: str, *, sign: str = "", more_starts: tuple[str, ...] = ()) -> ToolFormat:
    """sign: where it is not the start."""
    return _format(name, sign or start, (start, *more_starts), (end,), list_syntax(f"{start}[", f"]{end}"))


FUNCTOOLS = "functools"
ACTION, ACTION_END = "<|START_ACTION|>", "<|END_ACTION|>"
TOOL_CALL = "<|tool_call|>"

APRIEL = _pair("apriel", "<tool_calls>", "</tool_calls>", sign="<tool_calls>[")
NEMOTRON_NANO_V2 = _pair("nemotron-nano-v2", "<TOOLCALL>", "</TOOLCALL>")
PHI = _pair("phi", TOOL_CALL, "<|/tool_call|>", sign="<|/tool|>", more_starts=(FUNCTOOLS,))
LFM2 = _pair("lfm2", "<|tool_call_start|>", "<|tool_call_end|>", sign="List of tools: ")
GRANITE = _format("granite", TOOL_CALL, (TOOL_CALL, hermes.START), (hermes.END,), list_syntax(f"{TOOL_CALL}[", "]"))
FIREFUNCTION = _format("firefunction", f"{FUNCTOOLS}[", (FUNCTOOLS,), (), list_syntax(f"{FUNCTOOLS}[", "]"))
COMMAND_R7B = _format(
    "command-r7b",
    ACTION,
    (ACTION,),
    (ACTION_END,),
    CallSyntax(
        opening=f"{ACTION}[\n",
        begin='    {"tool_call_id": "0", "tool_name": "',
        middle='", "parameters": ',
        end="}",
        separator=",\n",
        closing=f"\n]{ACTION_END}",
    ),
)
