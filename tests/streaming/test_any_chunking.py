"""What a choice says does not depend on how its tokens arrive; laws over every kind of choice."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from octavo.core.output import FinishReason, TokenChunk
from octavo.core.request import Choice, LogprobParams
from octavo.streaming import ChoiceStream, ContentFilter
from streaming.builders import (
    ALL_LOGPROBS,
    BOS,
    END,
    FORMATS,
    VOCABULARY,
    answer_to,
    choice,
    chunks_of,
    events_of,
    folded,
    num_places,
    text_of,
)

FILTERS = (None, ContentFilter(["(?i)BA"]), ContentFilter([r"b\b", "a b|👩", "a.*c(?!d)"]))
SPOKEN = [
    *b"ab\n ",
    *range(END, VOCABULARY.size),
    *map(tuple, (b"<think>", b"</think>", b"analysis", b"final", "👩".encode(), "日".encode(), "\ufffd".encode())),
]

words = st.one_of(st.sampled_from(SPOKEN), st.sampled_from([*b"abc<>\n", 0xF0, 0x9F, 0x91, 0xE6, 0x80]))
tokens = st.lists(words, max_size=25).map(
    lambda parts: [token for part in parts for token in (part if isinstance(part, tuple) else (part,))]
)
stops = st.lists(
    st.one_of(
        st.text(alphabet="ab\n ", min_size=1, max_size=4),
        st.sampled_from(["👩", "日", "\ufffd", "a\ufffd", "</think>", "<th", "xy"]),
    ),
    max_size=3,
)
choices = st.builds(
    choice,
    prompt=tokens.map(lambda prompt: [BOS, *prompt]) | tokens.filter(bool),
    stop=stops,
    includes_stop=st.booleans(),
    echo=st.booleans(),
    channels=st.sampled_from(FORMATS),
    stop_tokens=st.sampled_from([(), (98,), (END,)]),
    min_tokens=st.sampled_from([0, 0, 1, 5]),
    ignore_eos=st.booleans(),
    logprobs=st.builds(LogprobParams, st.booleans(), st.booleans(), st.just(1)),
)
filters = st.sampled_from(FILTERS)


@st.composite
def cases(draw: st.DrawFn, all_choices: st.SearchStrategy[Choice] = choices) -> tuple[Choice, list[int], ContentFilter]:
    return draw(all_choices), draw(tokens), draw(filters)


all_listed = choices.map(
    lambda of: choice(
        prompt=of.request.prompt_tokens,
        stop=of.stop,
        includes_stop=of.includes_stop,
        echo=of.echo,
        channels=of.channels,
        logprobs=ALL_LOGPROBS,
    )
)


@given(cases(), st.data())
def test_any_chunking_gives_the_same_answer(
    case: tuple[Choice, list[int], ContentFilter | None], data: st.DataObject
) -> None:
    of, generated, content_filter = case
    cuts = data.draw(st.lists(st.integers(0, num_places(of, generated)), max_size=8))
    by_token = answer_to(of, generated, content_filter=content_filter)
    assert folded(events_of(of, generated, [], content_filter=content_filter)) == by_token
    assert folded(events_of(of, generated, cuts, content_filter=content_filter)) == by_token


@given(cases())
def test_entries_never_change_the_text(case: tuple[Choice, list[int], ContentFilter | None]) -> None:
    of, generated, content_filter = case
    answers = [
        answer_to(
            choice(
                prompt=of.request.prompt_tokens,
                stop=of.stop,
                echo=of.echo,
                channels=of.channels,
                min_tokens=of.request.min_tokens,
                logprobs=logprobs,
            ),
            generated,
            content_filter=content_filter,
        )
        for logprobs in (LogprobParams(), LogprobParams(of_output=True), LogprobParams(of_prompt=True), ALL_LOGPROBS)
    ]
    assert len({(answer.text, answer.reasoning, answer.finish_reason, answer.num_tokens) for answer in answers}) == 1


@given(cases(all_listed))
def test_text_and_entries_agree_at_every_moment(case: tuple[Choice, list[int], ContentFilter | None]) -> None:
    of, generated, content_filter = case
    text = ""
    entries = []
    for event in events_of(of, generated, content_filter=content_filter):
        text += event.text
        entries += [entry for entry in event.entries if entry.offset is not None]
        assert text_of(entries) == text
    offsets = [entry.offset for entry in entries]
    assert offsets == sorted(offsets)


@given(cases(all_listed))
def test_an_offset_is_where_the_tokens_bytes_begin_in_the_text(
    case: tuple[Choice, list[int], ContentFilter | None],
) -> None:
    of, generated, content_filter = case
    answer = answer_to(of, generated, content_filter=content_filter)
    entries = [entry for entry in answer.entries if entry.offset is not None]
    for place, entry in enumerate(entries):
        before = text_of(entries[:place])
        assert entry.offset in (len(before), len(before) - 1)
        if entry.bytes and "\ufffd" not in answer.text and not is_continued(entry.bytes):
            assert entry.offset == len(before)


def is_continued(data: bytes) -> bool:
    return 0x80 <= data[0] < 0xC0


@given(cases(all_listed), st.lists(st.integers(0, 20), max_size=5))
def test_chunks_that_are_joined_are_the_chunk_that_was_cut(
    case: tuple[Choice, list[int], ContentFilter | None], places: list[int]
) -> None:
    of, generated, _ = case
    [whole] = chunks_of(of, generated)
    length = len(whole.prompt_logprobs) + len(whole.tokens)
    assert TokenChunk.joined(chunks_of(of, generated, [min(place, length) for place in places])) == whole


@given(cases())
def test_nothing_is_said_twice_and_only_the_last_event_ends_and_may_be_empty(
    case: tuple[Choice, list[int], ContentFilter | None],
) -> None:
    of, generated, content_filter = case
    *earlier, last = events_of(of, generated, content_filter=content_filter)
    assert all(event.text or event.reasoning or event.entries for event in earlier)
    assert all(event.finish_reason is None for event in earlier)
    assert last.finish_reason is not None
    assert {event.index for event in (*earlier, last)} == {3}


@given(cases())
def test_a_choice_ended_from_outside_says_all_that_has_come(
    case: tuple[Choice, list[int], ContentFilter | None],
) -> None:
    of, generated, content_filter = case
    stream = ChoiceStream(of, VOCABULARY, content_filter)
    events = [stream.push(chunk) for chunk in chunks_of(of, generated, [], reason=None)]
    if not stream.is_finished:
        events.append(stream.end(FinishReason.CANCELLED))
    answer = folded([event for event in events if event is not None])
    to_the_end = answer_to(of, generated, content_filter=content_filter)
    assert answer.finish_reason in (FinishReason.CANCELLED, to_the_end.finish_reason)
    assert replace(answer, finish_reason=None) == replace(to_the_end, finish_reason=None)
