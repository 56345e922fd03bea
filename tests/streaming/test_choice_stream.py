"""A choice's text, finish reason and token count."""

import codecs
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.core.output import FinishReason, TextEvent, TokenChunk
from octavo.streaming import ChoiceStream, ContentFilter
from streaming.builders import AB, END, VOCABULARY, answer_to, choice, events_of, folded

Utf8Decoder = codecs.getincrementaldecoder("utf-8")
CANCELLED, FILTERED, LENGTH, STOP = (
    FinishReason.CANCELLED,
    FinishReason.CONTENT_FILTER,
    FinishReason.LENGTH,
    FinishReason.STOP,
)

tokens = st.lists(st.one_of(st.sampled_from([97, 98, *range(END, VOCABULARY.size)]), st.integers(0, 255)), max_size=30)
stops = st.lists(
    st.one_of(
        st.text(alphabet="ab\n", min_size=1, max_size=4), st.sampled_from(["👩", "日", "本", "\ufffd", "a\ufffd"])
    ),
    max_size=3,
)


def kept(text: str, stop: Sequence[str], *, includes_stop: bool) -> str:
    """The reference: look at the whole text."""
    found = [(start, start + len(string) * includes_stop) for string in stop if (start := text.find(string)) >= 0]
    return text[: min(found)[1]] if found else text


@given(tokens, stops, st.booleans(), st.sampled_from([STOP, LENGTH]))
def test_the_answer_is_the_decoded_text_up_to_the_first_stop_string(
    generated: list[int], stop: list[str], includes_stop: bool, reason: FinishReason
) -> None:
    text = b"".join(VOCABULARY.pieces[token] for token in generated).decode(errors="replace")
    answer = folded(events_of(choice(stop=stop, includes_stop=includes_stop), generated, reason=reason))
    is_stopped = any(string in text for string in stop)
    assert answer.text == kept(text, stop, includes_stop=includes_stop)
    assert answer.finish_reason is (STOP if is_stopped else reason)
    assert answer.num_tokens == len(generated) or is_stopped


@given(tokens, stops, st.integers(0, 8))
def test_stop_strings_are_looked_for_behind_the_text_of_the_first_min_tokens(
    generated: list[int], stop: list[str], min_tokens: int
) -> None:
    data = [VOCABULARY.pieces[token] for token in generated]
    whole = b"".join(data).decode(errors="replace")
    first = Utf8Decoder(errors="replace").decode(b"".join(data[:min_tokens]))
    expected = first + kept(whole.removeprefix(first), stop, includes_stop=False)
    assert answer_to(choice(stop=stop, min_tokens=min_tokens), generated).text == expected


@pytest.mark.parametrize("text", ["a👩‍👩‍👧‍👦 b stop c", "日本語の停止。後", "aaabaab"])
@pytest.mark.parametrize("stop", ["stop", "停止", "👧", "aab", "👩‍👩‍👧‍👦 b", "。"])
def test_one_byte_tokens_never_show_a_part_of_the_stop_string_or_of_a_character(text: str, stop: str) -> None:
    expected = text.split(stop)[0]
    events = events_of(choice(stop=[stop]), text.encode())
    sent = ""
    for event in events:
        sent += event.text
        assert expected.startswith(sent)
    assert sent == expected
    assert events[-1].finish_reason is (STOP if stop in text else LENGTH)


def test_nothing_is_said_while_text_is_held_and_its_tokens_are_counted_later() -> None:
    stream = ChoiceStream(choice(stop=["abc"]), VOCABULARY)
    assert stream.push(TokenChunk((AB,), num_cached=5)) is None
    assert stream.push(TokenChunk((END,))) is None
    assert stream.push(TokenChunk((120,))) == TextEvent(3, "abx", 3, num_cached=5)


def test_a_found_stop_string_finishes_the_choice_before_the_engine_does() -> None:
    stream = ChoiceStream(choice(stop=["b"]), VOCABULARY)
    assert stream.push(TokenChunk((97,))) == TextEvent(3, "a", 1)
    assert stream.push(TokenChunk((98, 97, 97))) == TextEvent(3, "", 1, STOP)
    assert stream.is_finished
    assert stream.push(TokenChunk((97,), LENGTH)) is None


def test_a_match_that_waited_for_a_longer_one_makes_the_last_chunk_a_stop() -> None:
    stream = ChoiceStream(choice(stop=["bcd", "c"]), VOCABULARY)
    assert stream.push(TokenChunk(tuple(b"abc"))) == TextEvent(3, "a", 3)
    assert not stream.is_finished
    assert stream.push(TokenChunk((END,), LENGTH)) == TextEvent(3, "b", 1, STOP)


def test_an_answer_of_no_tokens_is_one_empty_event() -> None:
    assert events_of(choice(stop=["a"]), []) == [TextEvent(3, "", 0, LENGTH, num_cached=7)]


def test_a_character_that_stays_unfinished_is_replaced_in_the_last_event() -> None:
    assert events_of(choice(), [0xF0, 0x9F]) == [TextEvent(3, "\ufffd", 2, LENGTH, num_cached=7)]


def test_a_stop_token_has_no_text() -> None:
    assert answer_to(choice(stop_tokens=[AB]), [120, AB]).text == "x"


def test_a_stop_token_that_is_included_has_its_text() -> None:
    assert answer_to(choice(stop_tokens=[AB], includes_stop=True), [120, AB]).text == "xab"


def test_a_stop_string_that_is_included_ends_the_text_within_a_token() -> None:
    answer = answer_to(choice(stop=["xa"], includes_stop=True), [120, AB, 120])
    assert (answer.text, answer.finish_reason, answer.num_tokens) == ("xa", STOP, 2)


def test_a_choice_that_is_ended_from_outside_gives_out_what_was_held() -> None:
    stream = ChoiceStream(choice(stop=["abc"]), VOCABULARY)
    assert stream.push(TokenChunk(tuple(b"xab"))) == TextEvent(3, "x", 3)
    assert stream.end(CANCELLED) == TextEvent(3, "ab", 0, CANCELLED)
    assert stream.is_finished
    assert stream.push(TokenChunk((97,), LENGTH)) is None


def test_filtered_text_ends_the_choice_with_its_own_reason() -> None:
    answer = answer_to(choice(), b"so bad it is", content_filter=ContentFilter([r"\bbad\b"]))
    assert (answer.text, answer.finish_reason, answer.num_tokens) == ("so ", FILTERED, len("so bad "))


def test_the_filter_cuts_before_a_stop_string_but_does_not_see_what_is_behind_one() -> None:
    content_filter = ContentFilter(["bad"])
    assert answer_to(choice(stop=["."]), b"bad.", content_filter=content_filter).finish_reason is FILTERED
    answer = answer_to(choice(stop=["."]), b"so.bad", content_filter=content_filter)
    assert (answer.text, answer.finish_reason) == ("so", STOP)


def test_a_stop_string_may_end_what_could_have_become_a_filtered_text() -> None:
    answer = answer_to(choice(stop=["."]), b"so ba.d", content_filter=ContentFilter([r"ba\.?d"]))
    assert (answer.text, answer.finish_reason) == ("so ba", STOP)


def test_a_match_at_the_very_end_is_filtered() -> None:
    answer = answer_to(choice(), b"so bad", content_filter=ContentFilter([r"\bbad\b"]))
    assert (answer.text, answer.finish_reason, answer.num_tokens) == ("so ", FILTERED, 6)


def test_a_cut_that_was_undecided_when_a_choice_is_ended_is_the_reason() -> None:
    filtered = ChoiceStream(choice(), VOCABULARY, ContentFilter(["bad"]))
    filtered.push(TokenChunk(tuple(b"so bad")))
    assert filtered.end(CANCELLED).finish_reason is FinishReason.CONTENT_FILTER
    stopped = ChoiceStream(choice(stop=["abc", "b"]), VOCABULARY)
    stopped.push(TokenChunk(tuple(b"xyab")))
    ended = stopped.end(CANCELLED)
    assert (ended.text, ended.finish_reason) == ("a", FinishReason.STOP)
