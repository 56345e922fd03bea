"""What the machines make of calls, shown with Hermes' format."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from octavo.core.channels import Channel
from octavo.core.output import FinishReason, TextEvent, TokenChunk
from octavo.core.request import Choice, LogprobParams
from octavo.core.tools import ToolCallDelta, ToolUse, joined_calls
from octavo.streaming import ChoiceStream, ContentFilter
from octavo.streaming.tool_calls import CallLog, new_tool_machine
from streaming.builders import END, THINK_FORMAT, VOCABULARY, byte_chunks, choice
from streaming.tool_formats.samples import TOOLS, calls_of, run

CALL = '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'
SEARCH = '<tool_call>\n{"name": "search", "arguments": {"query": "é <tool_call>"}}\n</tool_call>'
AUTO = ToolUse(TOOLS, "hermes")
FORCED = replace(AUTO, is_forced=True)


def events(text: str, asked: Choice, end: FinishReason = FinishReason.STOP) -> list[TextEvent]:
    """All events of an answer of one-byte tokens, which an end token ends where it ends by itself."""
    stream = ChoiceStream(asked, VOCABULARY)
    made = [stream.push(chunk) for chunk in byte_chunks(text, end)]
    return [event for event in made if event is not None]


def whole(text: str, use: ToolUse = AUTO, end: FinishReason = FinishReason.STOP, **settings: object) -> TextEvent:
    return TextEvent.joined(events(text, replace(choice(**settings), tools=use), end))  # type: ignore[arg-type]


def test_a_call_is_no_part_of_the_text_and_is_the_reason_of_the_end() -> None:
    event = whole(f"Let me see.\n\n{CALL}\n")
    assert (event.text, calls_of(event), event.finish_reason) == (
        "Let me see.",
        [("now", {})],
        FinishReason.TOOL_CALLS,
    )


def test_calls_are_numbered_in_order_and_have_ids_of_their_own_that_depend_on_the_request_alone() -> None:
    event = whole(f"{CALL}\n{SEARCH}\n{CALL}")
    assert [name for name, _ in calls_of(event)] == ["now", "search", "now"]
    calls = joined_calls(event.tool_calls)
    assert len({call.id for call in calls}) == 3
    assert all(call.id.startswith("call_") for call in calls)
    assert joined_calls(whole(f"{CALL}\n{SEARCH}\n{CALL}").tool_calls) == calls


def test_id_and_name_come_once_and_the_arguments_behind_them() -> None:
    for use in (AUTO, FORCED):
        deltas = whole(f"{SEARCH}\n{CALL}", use).tool_calls
        for index in (0, 1):
            first, *later = [delta for delta in deltas if delta.index == index]
            assert first.id
            assert first.name
            assert later
            assert all((delta.id, delta.name) == ("", "") for delta in later)


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>\n{"name": "unknown", "arguments": {}}\n</tool_call>',
        '<tool_call>\n{"name": "now", "arguments": [1]}\n</tool_call>',
        '<tool_call>\n{"name": "now", "arguments": {"a": }}\n</tool_call>',
        "The tag <tool_call> begins a call.",
        '{"name": "now", "arguments": ',
        "```json\n{}\n```\nis an empty object",
    ],
)
def test_what_turns_out_to_be_no_call_is_text(text: str) -> None:
    event = whole(text)
    assert (event.text, event.tool_calls, event.finish_reason) == (text, (), FinishReason.STOP)


def test_a_call_behind_one_that_went_wrong_is_found() -> None:
    event = whole(f"<tool_call> is how.\n{CALL}")
    assert (event.text, calls_of(event)) == ("<tool_call> is how.", [("now", {})])


@pytest.mark.parametrize("length", range(1, len(CALL)))
def test_a_call_that_is_cut_is_text_unless_only_its_end_marker_is_missing_and_the_reason_stays(length: int) -> None:
    event = whole(CALL[:length], end=FinishReason.LENGTH)
    assert event.finish_reason is FinishReason.LENGTH
    if "}}" in CALL[:length]:
        assert (event.text, calls_of(event)) == ("", [("now", {})])
    else:
        assert event.text == CALL[:length]


@pytest.mark.parametrize("length", range(1, len(SEARCH)))
def test_of_a_forced_call_that_is_cut_there_is_as_much_as_was_written(length: int) -> None:
    event = whole(SEARCH[:length], FORCED, end=FinishReason.LENGTH)
    assert event.finish_reason is FinishReason.LENGTH
    calls = joined_calls(event.tool_calls)
    head, arguments = SEARCH.split(', "arguments": ')
    if len(SEARCH[:length]) >= len(head) + len(', "arguments": '):
        assert [call.name for call in calls] == ["search"]
        assert arguments.removesuffix("}\n</tool_call>").startswith(calls[0].arguments)
    else:
        assert not calls
    assert event.text == ""


def test_arguments_of_a_forced_call_come_as_they_are_written() -> None:
    told = [event.tool_calls for event in events(SEARCH, replace(choice(), tools=FORCED)) if event.tool_calls]
    assert len(told) > len('{"query": ')
    assert "".join(delta.arguments for deltas in told for delta in deltas) == '{"query": "é <tool_call>"}'


def test_text_where_a_call_was_to_be_is_text() -> None:
    assert whole("I would rather not.", FORCED).text == "I would rather not."


def test_where_one_call_is_allowed_the_answer_ends_with_the_first() -> None:
    stream = ChoiceStream(replace(choice(), tools=replace(AUTO, is_parallel=False)), VOCABULARY)
    pushed = [stream.push(chunk) for chunk in byte_chunks(f"{CALL}\n{CALL}", FinishReason.LENGTH)]
    event = TextEvent.joined([event for event in pushed if event is not None])
    assert (calls_of(event), event.finish_reason) == ([("now", {})], FinishReason.TOOL_CALLS)
    assert event.num_tokens == CALL.index("\n</tool_call>")


def test_where_one_call_is_allowed_a_forced_answer_ends_with_it_whatever_the_engine_writes() -> None:
    stream = ChoiceStream(replace(choice(), tools=replace(FORCED, is_parallel=False)), VOCABULARY)
    pushed = [stream.push(chunk) for chunk in byte_chunks(f"{CALL}\n{SEARCH} and so on", FinishReason.LENGTH)]
    event = TextEvent.joined([event for event in pushed if event is not None])
    assert (event.text, calls_of(event), event.finish_reason) == ("", [("now", {})], FinishReason.TOOL_CALLS)
    assert event.num_tokens == len(CALL)


def test_text_behind_a_forced_call_is_the_same_however_it_is_cut() -> None:
    for cuts in ([], range(len(CALL) + 6), [len(CALL)]):
        event = run(f"{CALL} and ", "hermes", cuts=cuts, is_forced=True)
        assert (event.text, calls_of(event)) == (" and ", [("now", {})])


@pytest.mark.parametrize("length", range(CALL.index("\n</tool_call>"), len(CALL)))
def test_a_call_is_told_before_its_end_marker_comes(length: int) -> None:
    deltas: list[ToolCallDelta] = []
    new_tool_machine(AUTO, CallLog("r", deltas.append)).push([(Channel.ANSWER, CALL[:length])])
    assert [delta.name for delta in deltas] == ["now", ""]


def test_text_between_and_behind_calls_keeps_its_white_space() -> None:
    assert whole(f"One.\n\n{CALL}\n\nTwo.\n{CALL}\n").text == "One.\n\nTwo."
    assert whole(f"{CALL}\n\nTwo.").text == "Two."


def test_text_is_given_out_as_it_comes_and_only_a_call_waits() -> None:
    texts = [event.text for event in events(f"ab cd {CALL} e", replace(choice(), tools=AUTO))]
    assert texts[:4] == ["a", "b", " c", "d"]
    assert "".join(texts) == "ab cd e"


def test_a_stop_string_within_a_call_gives_out_the_text_that_waited() -> None:
    event = whole('Well: <tool_call>\n{"name": STOP', stop=["STOP"])
    assert (event.text, event.finish_reason) == ('Well: <tool_call>\n{"name": ', FinishReason.STOP)


def test_a_stop_string_behind_a_call_leaves_the_call() -> None:
    event = whole(f"{CALL}\nSTOP", stop=["STOP"])
    assert (event.text, calls_of(event), event.finish_reason) == ("", [("now", {})], FinishReason.TOOL_CALLS)


def test_calls_in_reasoning_are_reasoning() -> None:
    event = whole(f"<think>Perhaps {CALL}</think>{CALL}", channels=THINK_FORMAT)
    assert event.reasoning == f"Perhaps {CALL}"
    assert calls_of(event) == [("now", {})]


def test_the_content_filter_sees_what_calls_say() -> None:
    asked = replace(choice(), tools=AUTO)
    stream = ChoiceStream(asked, VOCABULARY, ContentFilter(["secret"]))
    text = CALL.replace("{}", '{"a": "secret"}')
    made = [stream.push(chunk) for chunk in byte_chunks(text, FinishReason.STOP)]
    event = TextEvent.joined([event for event in made if event is not None])
    assert event.finish_reason is FinishReason.CONTENT_FILTER
    assert not event.tool_calls
    assert "secret" not in event.text


def test_without_tools_a_call_is_text() -> None:
    assert whole(CALL, ToolUse()).text == CALL


def test_entries_are_those_of_the_text_beside_calls() -> None:
    event = whole(f"Hi é\n{CALL}\nok", logprobs=LogprobParams(of_output=True))
    assert event.text == "Hi é\nok"
    kept = b"".join(entry.bytes or b"" for entry in event.entries)
    assert kept.decode() == event.text
    assert calls_of(event) == [("now", {})]


PARTS = (
    "<tool_call>",
    "</tool_call>",
    '{"name": "now", "arguments": {}}',
    CALL,
    SEARCH,
    "\n",
    " ",
    "x",
    "```json",
    "[",
    "{",
    "é",
)


@given(st.lists(st.sampled_from(PARTS), max_size=8).map("".join), st.sampled_from((AUTO, FORCED)), st.data())
def test_any_chunking_gives_the_same_event(text: str, use: ToolUse, data: st.DataObject) -> None:
    tokens = [*text.encode(), END]
    cuts = sorted(data.draw(st.sets(st.integers(1, len(tokens)), max_size=6)) | {len(tokens)})
    stream = ChoiceStream(replace(choice(), tools=use), VOCABULARY)
    made: list[TextEvent] = []
    start = 0
    for cut in cuts:
        reason = FinishReason.STOP if cut == len(tokens) else None
        event = stream.push(TokenChunk(tuple(tokens[start:cut]), reason))
        made += [event] if event is not None else []
        start = cut
    together = TextEvent.joined(made)
    single = whole(text, use)
    assert structs.replace(together, tool_calls=()) == structs.replace(single, tool_calls=())
    assert joined_calls(together.tool_calls) == joined_calls(single.tool_calls)


@given(st.lists(st.sampled_from(PARTS), max_size=8).map("".join))
def test_without_a_call_nothing_is_lost(text: str) -> None:
    event = whole(text)
    assert event.tool_calls or event.text == text


@pytest.mark.parametrize("part", [*PARTS, '<tool_call>{"', '\n{"name": ', "\n[", "\n```json\n[{"])
def test_half_a_megabyte_of_look_alikes_is_read_to_its_end(part: str) -> None:
    text = part * (500_000 // len(part))
    deltas: list[ToolCallDelta] = []
    machine = new_tool_machine(AUTO, CallLog("r", deltas.append))
    settled = [machine.push([(Channel.ANSWER, text[start : start + 61])]) for start in range(0, len(text), 61)]
    settled.append(machine.flush())
    assert "".join(given for segments in settled for _, given in segments) == text
    shown = "".join(given for segments in settled for channel, given in segments if channel is Channel.ANSWER)
    assert deltas or shown == text


def test_deltas_of_several_calls_join_to_the_calls() -> None:
    deltas = [ToolCallDelta(0, "a", "f", ""), ToolCallDelta(0, "", "", "{"), ToolCallDelta(1, "b", "g", "{}")]
    assert [(call.id, call.arguments) for call in joined_calls([*deltas, ToolCallDelta(1, "", "", "")])] == [
        ("a", "{"),
        ("b", "{}"),
    ]
