"""Complete calls stay calls, whatever comes behind them in their section or list."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.core.channels import Channel
from octavo.core.tools import ToolCallDelta, ToolUse, joined_calls
from octavo.streaming.tool_calls import CallLog, new_tool_machine
from octavo.streaming.tool_formats import BY_NAME, ToolFormat
from streaming.tool_formats.samples import TOOLS, Sample, calls_of, run
from streaming.tool_formats.samples_a import SAMPLES as TAGGED
from streaming.tool_formats.samples_b import SAMPLES as LISTED
from streaming.tool_formats.samples_c import MODELS

REPEATABLE = [
    format
    for format in BY_NAME.values()
    if format.syntax.is_repeatable and format.name not in MODELS and not format.name.startswith("gigachat")
]
several = pytest.mark.parametrize("format", REPEATABLE, ids=lambda format: format.name)
NOW = ("now", {})
CUT = '{"ci'
OBJECT = '{"name": "now", "arguments": {}}'


def written(format: ToolFormat, name: str, arguments: str, *, num_before: int = 1) -> str:
    """Calls of now, then one of that name, up to its arguments."""
    syntax = format.syntax
    calls = f"{syntax.begin}now{syntax.middle}{{}}{syntax.end}{syntax.separator}" * num_before
    return f"{syntax.opening}{calls}{syntax.begin}{name}{syntax.middle}{arguments}"


def told(format: str, text: str) -> Sequence[str]:
    """The names of the calls that are told before more of the text comes."""
    deltas: list[ToolCallDelta] = []
    machine = new_tool_machine(ToolUse(TOOLS, format), CallLog("request", deltas.append))
    machine.push([(Channel.ANSWER, text)])
    return [delta.name for delta in deltas if delta.name]


@several
def test_a_call_that_is_cut_leaves_those_before_it(format: ToolFormat) -> None:
    event = run(written(format, "get_weather", CUT, num_before=2), format.name)
    assert calls_of(event) == [NOW, NOW]
    assert event.text.endswith(CUT)
    assert "now" not in event.text


@several
def test_a_call_of_an_unknown_function_leaves_those_before_it(format: ToolFormat) -> None:
    syntax = format.syntax
    event = run(written(format, "sing", "{}") + syntax.end + syntax.closing, format.name)
    assert calls_of(event) == [NOW]
    assert "sing" in event.text
    assert "now" not in event.text


@several
def test_a_call_is_told_when_the_next_one_begins(format: ToolFormat) -> None:
    assert told(format.name, written(format, "get_weather", "", num_before=2)) == ["now", "now"]


@given(st.sampled_from([*TAGGED, *LISTED]), st.booleans(), st.data())
def test_any_split_of_damaged_text_gives_the_same_event(sample: Sample, is_forced: bool, data: st.DataObject) -> None:
    begin, end = sorted(data.draw(st.integers(0, len(sample.text))) for _ in range(2))
    parts = [sample.text[:begin], sample.text[end:], *(each for each in BY_NAME[sample.format].texts)]
    text = "".join(data.draw(st.lists(st.sampled_from(parts), max_size=4)))
    cuts = data.draw(st.lists(st.integers(1, len(text.encode()) + 1), max_size=20))
    whole, split = (run(text, sample.format, cuts=each, is_forced=is_forced) for each in ((), cuts))
    assert (split.text, joined_calls(split.tool_calls)) == (whole.text, joined_calls(whole.tool_calls))


@pytest.mark.parametrize(
    ("format", "text", "content"),
    [
        ("hermes", f"<tool_call>{OBJECT}\n{OBJECT[:9]}", OBJECT[:9]),
        ("hermes", f"<tool_call>[{OBJECT}, {OBJECT[:9]}", f", {OBJECT[:9]}"),
        ("hermes", f"<tool_call>{OBJECT}</tool_call> and so on", "and so on"),
        ("hermes", f"<tool_call>{OBJECT} and so on", "and so on"),
        ("hermes", f"[{OBJECT}, 3]", ", 3]"),
        ("hermes", f"```json\n{OBJECT}\nand so on\n```", "and so on\n```"),
        ("hermes", f'{{"tool_calls": [{OBJECT}, {OBJECT[:9]}', f", {OBJECT[:9]}"),
        ("lfm2", "<|tool_call_start|>[now(), sing()]", ", sing()]"),
        ("apertus", '<|tools_prefix|>[{"now": {}}, {"sing": {}}]', ', {"sing": {}}]'),
        ("functionary-v3.1", "<function=now>{} and so on", "and so on"),
        ("gemma-4", "<|tool_call>call:now{}{}", "{}"),
    ],
)
def test_only_what_is_behind_the_last_complete_call_is_text(format: str, text: str, content: str) -> None:
    event = run(text, format)
    assert (event.text, calls_of(event)) == (content, [NOW])


@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("hermes", f"<tool_call>{OBJECT}</tool_"),
        ("lfm2", "<|tool_call_start|>[now()]<|tool_call_e"),
        ("deepseek-v3.1", "<｜tool▁call▁begin｜>now<｜tool▁sep｜>{}<｜tool▁call▁e"),
        ("qwen3-coder", "<tool_call>\n<function=now>\n</function>\n</tool_"),
        ("functionary-v3.1", "<function=now>{}</func"),
        ("hermes", f"```json\n{OBJECT}\n``"),
    ],
)
def test_an_end_marker_that_is_cut_is_no_text(format: str, text: str) -> None:
    event = run(text, format)
    assert (event.text, calls_of(event)) == ("", [NOW])


def test_white_space_between_a_call_without_its_end_and_text_stays_where_there_is_text_before() -> None:
    assert run(f"One.\n\n<tool_call>{OBJECT}\n\nTwo.", "hermes").text == "One.\n\nTwo."
    assert run(f"<tool_call>{OBJECT}\n\nTwo.", "hermes").text == "Two."


@pytest.mark.parametrize("format", ["hermes", "lfm2", "deepseek-v3.1", "mistral"])
@pytest.mark.parametrize("space", ["\n", "\t", "\r\n"])
def test_strings_may_run_over_lines(format: str, space: str) -> None:
    arguments = f'{{"query": "a{space}b"}}'
    syntax = BY_NAME[format].syntax
    text = f"{syntax.opening}{syntax.begin}search{syntax.middle}{arguments}{syntax.end}{syntax.closing}"
    assert calls_of(run(text, format)) == [("search", {"query": f"a{space}b"})]


def test_strings_in_arguments_that_are_a_string_may_run_over_lines() -> None:
    text = '<tool_call>{"name": "search", "arguments": "{\\"query\\": \\"a\\nb\\"}"}</tool_call>'
    assert calls_of(run(text, "hermes")) == [("search", {"query": "a\nb"})]


def test_recipients_that_are_no_functions_are_reserved() -> None:
    reserved = {name: format.reserved_names for name, format in BY_NAME.items() if format.reserved_names}
    assert reserved == {"muse": {"self", "user"}, "functionary-v3.2": {"all"}}
