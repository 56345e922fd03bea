"""Every token of the answer has its entry, with its own share of the text."""

import pytest

from octavo.core.output import Alternative, FinishReason, LogprobEntry, TextEvent, TokenChunk, TokenLogprob
from octavo.core.request import LogprobParams
from octavo.streaming import ChoiceStream, ContentFilter
from streaming.builders import (
    A_LEAD,
    AB,
    B_LINE,
    BOS,
    END,
    JA_END,
    MESSAGE,
    VOCABULARY,
    answer_to,
    choice,
    events_of,
)

OUTPUT = LogprobParams(of_output=True, num_top=1)
WOMAN = "👩".encode()


def test_an_entry_has_its_tokens_text_bytes_and_place() -> None:
    answer = answer_to(choice(logprobs=OUTPUT), [120, AB])
    assert answer.entries == (
        LogprobEntry("x", b"x", -0.0, (Alternative("x", b"x", -0.5),), 0),
        LogprobEntry("ab", b"ab", -1 / 16, (Alternative("ab", b"ab", -0.5),), 1),
    )


def test_entries_come_only_where_they_are_asked_for() -> None:
    assert answer_to(choice(), [120, AB]).entries == ()


def test_tokens_of_one_character_have_their_own_entries_that_come_together() -> None:
    events = events_of(choice(logprobs=OUTPUT), [*WOMAN, 120])
    assert [event.text for event in events] == ["👩", "x"]
    assert [entry.bytes for entry in events[0].entries] == [bytes([byte]) for byte in WOMAN]
    assert [entry.token for entry in events[0].entries] == [r"\xf0", r"\x9f", r"\x91", r"\xa9"]
    assert [entry.offset for entry in events[0].entries] == [0, 0, 0, 0]


def test_a_text_ends_where_a_token_does_so_that_its_entry_can_come_along() -> None:
    events = events_of(choice(logprobs=OUTPUT), [A_LEAD, *WOMAN[2:], 120])
    assert [event.text for event in events] == ["a👩", "x"]
    assert [entry.offset for entry in events[0].entries] == [0, 1, 1]
    assert events[0].entries[0].token == r"\x61\xf0\x9f"


def test_a_stop_string_holds_back_entries_as_long_as_their_text() -> None:
    stream = ChoiceStream(choice(stop=["b!"], logprobs=OUTPUT), VOCABULARY)
    scores = [TokenLogprob(token, -1.0) for token in (AB, 120)]
    assert stream.push(TokenChunk((AB,), logprobs=(scores[0],))) is None
    event = stream.push(TokenChunk((120,), logprobs=(scores[1],)))
    assert event is not None
    assert event.text == "abx"
    assert [entry.token for entry in event.entries] == ["ab", "x"]
    assert (event.num_tokens, event.logprob_sum) == (2, -2.0)


def test_a_token_that_a_stop_string_cuts_in_two_keeps_its_first_part() -> None:
    answer = answer_to(choice(stop=["b!"], logprobs=OUTPUT), [120, AB, *b"!", *b"never"])
    assert answer.text == "xa"
    assert answer.names == ["x", "a"]
    assert answer.bytes == [b"x", b"a"]
    assert answer.num_tokens == 3
    assert answer.logprob_sum == -(0 + 1 + 2) / 16


def test_a_token_behind_a_cut_has_no_entry() -> None:
    answer = answer_to(choice(stop=["ab"], logprobs=OUTPUT), [120, AB])
    assert (answer.text, answer.bytes, answer.num_tokens) == ("x", [b"x"], 2)


def test_a_stop_string_that_is_included_has_entries_up_to_its_end() -> None:
    answer = answer_to(choice(stop=["xa"], includes_stop=True, logprobs=OUTPUT), [120, AB])
    assert (answer.text, answer.bytes) == ("xa", [b"x", b"a"])


def test_a_filter_cuts_tokens_in_two_as_well() -> None:
    answer = answer_to(choice(logprobs=OUTPUT), [AB, *b"ad"], content_filter=ContentFilter(["bad"]))
    assert (answer.text, answer.names, answer.bytes) == ("a", ["a"], [b"a"])
    assert answer.entries[0].top == (), "what was cut is not told as an alternative to itself"


def test_a_cut_within_the_tokens_of_a_character_gives_it_to_the_right_ones() -> None:
    answer = answer_to(choice(stop=["日"], logprobs=OUTPUT), [*WOMAN[:3], WOMAN[3], *"日".encode()])
    assert (answer.text, answer.bytes) == ("👩", [bytes([byte]) for byte in WOMAN])
    answer = answer_to(choice(stop=["本"], logprobs=OUTPUT), [*"日".encode()[:1], JA_END])
    assert (answer.text, answer.bytes) == ("日", [b"\xe6", b"\x97\xa5"])


def test_bytes_that_are_no_character_are_kept_as_they_are() -> None:
    answer = answer_to(choice(logprobs=OUTPUT), [0xFF, 0xF0, 0x9F, 120])
    assert answer.text == "\ufffd\ufffdx"
    assert answer.bytes == [b"\xff", b"\xf0", b"\x9f", b"x"]
    assert [entry.offset for entry in answer.entries] == [0, 1, 1, 2]


@pytest.mark.parametrize("reason", [FinishReason.STOP, FinishReason.LENGTH])
def test_the_token_that_ends_a_generation_is_listed_by_its_name(reason: FinishReason) -> None:
    events = events_of(choice(logprobs=OUTPUT), [120, END], reason=reason)
    assert [(entry.token, entry.bytes, entry.offset) for event in events for entry in event.entries] == [
        ("x", b"x", 0),
        ("<|eot|>", None, 1),
    ]


def test_a_control_token_within_the_text_is_listed_by_its_name() -> None:
    events = events_of(choice(logprobs=OUTPUT), [120, MESSAGE, 121])
    assert [(event.text, [entry.token for entry in event.entries]) for event in events] == [
        ("x", ["x"]),
        ("", ["<|message|>"]),
        ("y", ["y"]),
    ]


def test_a_control_token_within_a_character_comes_with_it() -> None:
    events = events_of(choice(logprobs=OUTPUT), [*WOMAN[:2], MESSAGE, *WOMAN[2:]])
    assert [entry.bytes for entry in events[0].entries] == [b"\xf0", b"\x9f", None, b"\x91", b"\xa9"]


def test_a_stop_token_is_listed_by_its_text_without_bytes() -> None:
    answer = answer_to(choice(stop_tokens=[AB], logprobs=OUTPUT), [120, AB])
    assert (answer.text, answer.names, answer.bytes) == ("x", ["x", "ab"], [b"x", None])


def test_a_stop_token_that_is_included_has_its_bytes() -> None:
    answer = answer_to(choice(stop_tokens=[AB], includes_stop=True, logprobs=OUTPUT), [120, AB])
    assert (answer.text, answer.bytes) == ("xab", [b"x", b"ab"])


def test_alternatives_are_written_as_entries_are() -> None:
    stream = ChoiceStream(choice(logprobs=OUTPUT), VOCABULARY)
    top = ((120, -0.5), (END, -1.0), (A_LEAD, -2.0), (B_LINE, -3.0))
    event = stream.push(TokenChunk((120,), logprobs=(TokenLogprob(120, -0.5, top),)))
    assert event == TextEvent(
        3,
        "x",
        1,
        entries=(
            LogprobEntry(
                "x",
                b"x",
                -0.5,
                (
                    Alternative("x", b"x", -0.5),
                    Alternative("<|eot|>", None, -1.0),
                    Alternative(r"\x61\xf0\x9f", b"a\xf0\x9f", -2.0),
                    Alternative("b\n", b"b\n", -3.0),
                ),
                0,
            ),
        ),
        logprob_sum=-0.5,
    )


def test_entries_of_a_prompt_that_is_not_echoed_have_no_place_and_leave_out_its_first_token() -> None:
    of = choice(prompt=[BOS, 120, AB], logprobs=LogprobParams(of_prompt=True))
    events = events_of(of, [121])
    assert [(entry.token, entry.bytes, entry.offset) for event in events for entry in event.entries] == [
        ("x", b"x", None),
        ("ab", b"ab", None),
    ]
    assert [event.text for event in events] == ["", "", "y"]


@pytest.mark.parametrize(
    ("prompt", "texts"),
    [
        ((120, -7, -8, 121, 122), ["y", "z"]),
        ((120, 121, -7, 122, -8, 123), ["y", "z", "{"]),
        ((-7, -8, 121), ["y"]),  # what is not scored is the first token, and that is the image's
        ((-7, AB, -8, 121), ["ab", "y"]),
    ],
)
def test_only_the_texts_of_a_prompt_with_images_have_entries(prompt: tuple[int, ...], texts: list[str]) -> None:
    stream = ChoiceStream(choice(prompt=prompt, logprobs=LogprobParams(of_prompt=True)), VOCABULARY)
    scores = tuple(TokenLogprob(token, -float(place)) for place, token in enumerate(prompt) if place and token >= 0)
    event = stream.push(TokenChunk((120,), prompt_logprobs=scores))
    assert event is not None
    assert [(entry.token, entry.logprob) for entry in event.entries] == [
        (text, score.logprob) for text, score in zip(texts, scores, strict=True)
    ]
    assert event.text == "x"


def test_images_are_nothing_in_the_text_of_a_prompt() -> None:
    assert answer_to(choice(prompt=(121, -7, 122), echo=True), [120]).text == "yzx"
