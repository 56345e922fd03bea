"""A choice's text, finish reason and token count do not depend on how its tokens arrive."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.core.output import FinishReason, TextEvent, TokenChunk
from octavo.core.vocabulary import Vocabulary
from octavo.streaming import ChoiceStream

VOCABULARY = Vocabulary(
    pieces=(*(bytes([value]) for value in range(256)), b"", b"ab", "日本".encode()[1:], "a👩".encode()[:3], b"b\n"),
    special_tokens=(),
    eog_tokens=frozenset({256}),
    bos_token=None,
    adds_bos=False,
)
END = 256
Answer = tuple[str, FinishReason | None, int]


def chunks_of(tokens: Sequence[int], cuts: Sequence[int], finish_reason: FinishReason) -> list[TokenChunk]:
    borders = [0, *sorted(cuts), len(tokens)]
    spans = list(pairwise(borders))
    return [
        TokenChunk(tuple(tokens[begin:end]), finish_reason if place == len(spans) - 1 else None)
        for place, (begin, end) in enumerate(spans)
    ]


def events_of(chunks: Sequence[TokenChunk], stop: Sequence[str]) -> list[TextEvent]:
    stream = ChoiceStream(3, VOCABULARY, stop)
    return [event for chunk in chunks if (event := stream.push(chunk)) is not None]


def folded(events: Sequence[TextEvent]) -> Answer:
    return "".join(event.text for event in events), events[-1].finish_reason, sum(event.num_tokens for event in events)


tokens = st.lists(st.one_of(st.sampled_from([97, 98, END, 257, 258, 259, 260]), st.integers(0, 255)), max_size=30)
stops = st.lists(
    st.one_of(
        st.text(alphabet="ab\n", min_size=1, max_size=4), st.sampled_from(["👩", "日", "本", "\ufffd", "a\ufffd"])
    ),
    max_size=3,
)
reasons = st.sampled_from([FinishReason.STOP, FinishReason.LENGTH])


@given(tokens, stops, reasons, st.data())
def test_any_chunking_gives_the_same_answer(
    generated: list[int], stop: list[str], reason: FinishReason, data: st.DataObject
) -> None:
    cuts = data.draw(st.lists(st.integers(0, len(generated)), max_size=10))
    whole = events_of(chunks_of(generated, [], reason), stop)
    assert folded(events_of(chunks_of(generated, cuts, reason), stop)) == folded(whole)


@given(tokens, stops, reasons)
def test_the_answer_is_the_decoded_text_up_to_the_first_stop_string(
    generated: list[int], stop: list[str], reason: FinishReason
) -> None:
    text = b"".join(VOCABULARY.pieces[token] for token in generated).decode(errors="replace")
    starts = [start for string in stop if (start := text.find(string)) >= 0]
    events = events_of(chunks_of(generated, range(len(generated)), reason), stop)
    answer, finish_reason, num_tokens = folded(events)
    assert answer == text[: min(starts, default=len(text))]
    assert finish_reason is (FinishReason.STOP if starts else reason)
    assert num_tokens == len(generated) or starts


@given(tokens, stops, reasons)
def test_only_the_last_event_has_a_finish_reason_and_only_it_may_be_empty(
    generated: list[int], stop: list[str], reason: FinishReason
) -> None:
    *earlier, last = events_of(chunks_of(generated, range(len(generated)), reason), stop)
    assert all(event.text and event.finish_reason is None for event in earlier)
    assert last.finish_reason is not None
    assert {event.index for event in [*earlier, last]} == {3}


@pytest.mark.parametrize("text", ["a👩‍👩‍👧‍👦 b stop c", "日本語の停止。後", "aaabaab"])
@pytest.mark.parametrize("stop", ["stop", "停止", "👧", "aab", "👩‍👩‍👧‍👦 b", "。"])
def test_one_byte_tokens_never_show_a_part_of_the_stop_string_or_of_a_character(text: str, stop: str) -> None:
    kept = text.split(stop)[0]
    events = events_of(chunks_of(text.encode(), range(len(text.encode())), FinishReason.LENGTH), [stop])
    sent = ""
    for event in events:
        sent += event.text
        assert kept.startswith(sent)
    assert sent == kept
    assert events[-1].finish_reason is (FinishReason.STOP if stop in text else FinishReason.LENGTH)


def test_nothing_is_said_while_text_is_held_and_its_tokens_are_counted_later() -> None:
    stream = ChoiceStream(0, VOCABULARY, ["abc"])
    assert stream.push(TokenChunk((257,))) is None
    assert stream.push(TokenChunk((END,))) is None
    assert stream.push(TokenChunk((120,))) == TextEvent(0, "abx", 3)


def test_a_found_stop_string_finishes_the_choice_before_the_engine_does() -> None:
    stream = ChoiceStream(0, VOCABULARY, ["b"])
    assert stream.push(TokenChunk((97,))) == TextEvent(0, "a", 1)
    assert stream.push(TokenChunk((98, 97, 97))) == TextEvent(0, "", 1, FinishReason.STOP)
    assert stream.is_finished
    assert stream.push(TokenChunk((97,), FinishReason.LENGTH)) is None


def test_a_match_that_waited_for_a_longer_one_makes_the_last_chunk_a_stop() -> None:
    stream = ChoiceStream(0, VOCABULARY, ["bcd", "c"])
    assert stream.push(TokenChunk(tuple(b"abc"))) == TextEvent(0, "a", 3)
    assert not stream.is_finished
    assert stream.push(TokenChunk((END,), FinishReason.LENGTH)) == TextEvent(0, "b", 1, FinishReason.STOP)


def test_an_answer_of_no_tokens_is_one_empty_event() -> None:
    assert events_of([TokenChunk((), FinishReason.LENGTH)], ["a"]) == [TextEvent(3, "", 0, FinishReason.LENGTH)]


def test_a_character_that_stays_unfinished_is_replaced_in_the_last_event() -> None:
    chunks = [TokenChunk((0xF0,)), TokenChunk((0x9F,), FinishReason.LENGTH)]
    assert events_of(chunks, []) == [TextEvent(3, "\ufffd", 2, FinishReason.LENGTH)]
