"""What single formats that write lists in JSON or in Python have of their own, and what none takes for a call."""

import pytest

from octavo.core.channels import Channel
from octavo.core.tools import ToolUse
from octavo.streaming.tool_calls import CallLog, new_tool_machine
from octavo.streaming.tool_formats import BY_NAME
from streaming.tool_formats.samples import TOOLS, calls_of, run
from streaming.tool_formats.samples_b import NOW, PARIS

FORMATS = [
    "apertus",
    "apriel",
    "command-r-plus",
    "command-r7b",
    "firefunction",
    "functionary-v3.1",
    "functionary-v3.2",
    "gigachat-3",
    "gigachat-3.1",
    "granite",
    "lfm2",
    "llama",
    "mistral",
    "mistral-nemo",
    "nemotron-nano-v2",
    "phi",
]
SINGLE = {"gigachat-3", "gigachat-3.1"}
"""They are taught one call at a time."""

ARGUMENTS = '{"city": "Paris"}'


def composed(format: str, name: str, arguments: str, number: int = 1) -> str:
    syntax = BY_NAME[format].syntax
    call = f"{syntax.begin}{name}{syntax.middle}{arguments}{syntax.end}"
    return syntax.opening + syntax.separator.join([call] * number) + syntax.closing


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("is_forced", [False, True])
def test_its_own_syntax_is_read(format: str, is_forced: bool) -> None:
    number = 1 if format in SINGLE else 2

    event = run(composed(format, "get_weather", ARGUMENTS, number), format, is_forced=is_forced)

    assert (event.text, calls_of(event)) == ("", [PARIS] * number)


@pytest.mark.parametrize("format", FORMATS)
def test_control_tokens_are_read_by_their_names(format: str) -> None:
    text = composed(format, "get_weather", ARGUMENTS)
    controls = [
        each for each in BY_NAME[format].texts if each.startswith(("<|", "[T", "[A")) and each.endswith((">", "]"))
    ]

    event = run(text, format, controls=controls)

    assert (event.text, calls_of(event)) == ("", [PARIS])


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("then", "{}"),
        ("now", "{"),
        ("now", "[]"),
        ("now", "3"),
        ("now", "{x}"),
        ("", "{}"),
        ("now", "{]}"),
    ],
)
def test_wrong_calls_are_text(format: str, name: str, arguments: str) -> None:
    text = composed(format, name, arguments)

    event = run(text, format)

    assert not calls_of(event)
    assert event.text == text


@pytest.mark.parametrize("format", FORMATS)
def test_only_the_first_call_counts_where_no_other_may_be_made(format: str) -> None:
    event = run(composed(format, "now", "{}", 3), format, is_parallel=False)

    assert (event.text, calls_of(event)) == ("", [NOW])


def test_a_message_to_the_user_does_not_end_an_answer_that_may_have_one_call() -> None:
    event = run("all\nHello.", "functionary-v3.2", is_parallel=False)

    assert event.text == "Hello."


@pytest.mark.parametrize("format", ["lfm2", "nemotron-nano-v2", "apriel", "command-r7b", "phi", "apertus"])
def test_a_call_is_one_without_the_end_marker_that_text_stands_for(format: str) -> None:
    text = f"{composed(format, 'now', '{}').removesuffix(BY_NAME[format].markers[0])} and so on"

    event = run(text, format)

    assert (event.text, calls_of(event)) == ("and so on", [NOW])


@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("mistral", "[TOOL_CALLS]then[A"),
        ("functionary-v3.1", "<function=then>"),
        ("functionary-v3.2", "then\n"),
        ("functionary-v3.2", "Well, "),
        ("command-r-plus", "Action: n/a"),
        ("firefunction", "functools is a"),
        ("lfm2", "<|tool_call_start|>[then("),
    ],
)
def test_what_cannot_be_a_call_is_told_at_once(format: str, text: str) -> None:
    machine = new_tool_machine(ToolUse(TOOLS, format), CallLog("request", lambda delta: None))

    segments = machine.push([(Channel.ANSWER, text)])

    assert "".join(piece for channel, piece in segments if channel is Channel.ANSWER).rstrip() == text.rstrip()
