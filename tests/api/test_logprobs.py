"""Log-probabilities in the wire's forms."""

import math
from typing import Any

import pytest
from hypothesis import given

from octavo.api.logprobs import chat_logprobs, completion_logprobs, no_logprobs
from octavo.api.schemas.logprobs import ChatLogprobs, CompletionLogprobs
from octavo.core.output import Alternative, LogprobEntry
from support.checks import strict_json

from .builders import ENTRIES, encoded, entry

LISTS = ("tokens", "token_logprobs", "top_logprobs", "text_offset")


def completion(*entries: LogprobEntry) -> dict[str, Any]:
    return strict_json(encoded(completion_logprobs(entries)))


def test_a_token_is_told_with_its_bytes_and_the_others_of_its_place() -> None:
    top = (Alternative(" the", b" the", -0.25), Alternative("<|end|>", None, -1.5))
    content = [
        {
            "token": "é",
            "logprob": -2.5,
            "bytes": [0xC3, 0xA9],
            "top_logprobs": [
                {"token": " the", "logprob": -0.25, "bytes": [32, 116, 104, 101]},
                {"token": "<|end|>", "logprob": -1.5, "bytes": None},
            ],
        }
    ]
    assert chat_logprobs([entry("é", -2.5, top=top)]) == {"content": content, "refusal": None}
    assert completion(entry("é", -2.5, top=top, offset=7)) == {
        "content": content,
        "tokens": ["é"],
        "token_logprobs": [-2.5],
        "top_logprobs": [{" the": -0.25, "<|end|>": -1.5, "é": -2.5}],
        "text_offset": [7],
    }


def test_nothing_generated_is_empty_lists_for_who_asked_and_null_for_others() -> None:
    assert chat_logprobs([]) == {"content": [], "refusal": None}
    assert completion() == {"content": [], **{name: [] for name in LISTS}}
    assert no_logprobs([]) is None
    assert no_logprobs([entry("a", -1.0)]) is None


def test_the_first_token_of_an_echoed_prompt_is_null_in_the_lists_and_not_in_the_content() -> None:
    wire = completion(entry("a", None, offset=0), entry("b", -1.0, offset=1))
    assert [item["token"] for item in wire["content"]] == ["b"]
    assert wire["tokens"] == ["a", "b"]
    assert wire["token_logprobs"] == [None, -1.0]
    assert wire["top_logprobs"] == [None, {"b": -1.0}]
    assert wire["text_offset"] == [0, 1]


def test_a_prompt_token_that_is_not_in_the_text_is_only_in_the_content() -> None:
    wire = completion(entry("a", -3.0, offset=None), entry("b", -1.0, offset=0))
    assert [item["token"] for item in wire["content"]] == ["a", "b"]
    assert wire["tokens"] == ["b"]
    assert wire["text_offset"] == [0]


def test_bytes_that_are_no_text_are_marked_in_the_lists() -> None:
    half = LogprobEntry(r"\xe6\xbc", b"\xe6\xbc", -1.0, (Alternative(r"\xa2", b"\xa2", -2.0),), offset=0)
    wire = completion(half)
    assert wire["tokens"] == [r"bytes:\xe6\xbc"]
    assert wire["top_logprobs"] == [{r"bytes:\xa2": -2.0, r"bytes:\xe6\xbc": -1.0}]
    assert wire["content"][0]["token"] == r"\xe6\xbc"
    assert wire["content"][0]["bytes"] == [0xE6, 0xBC]


def test_a_text_that_looks_like_written_bytes_is_not_marked() -> None:
    assert completion(entry(r"\xe6", -1.0, offset=0))["tokens"] == [r"\xe6"]


def test_of_two_tokens_with_one_name_the_more_probable_is_told() -> None:
    top = (Alternative("a", b"a", -0.5), Alternative("a", None, -1.0))
    assert completion(entry("b", -3.0, top=top, offset=0))["top_logprobs"] == [{"a": -0.5, "b": -3.0}]


def test_the_chosen_token_has_its_own_value_under_its_name() -> None:
    top = (Alternative("a", None, -0.5), Alternative("c", b"c", -0.7))
    assert completion(entry("a", -3.0, top=top, offset=0))["top_logprobs"] == [{"a": -3.0, "c": -0.7}]


@pytest.mark.parametrize("impossible", [-math.inf, -1e30, math.nan])
def test_what_json_cannot_say_is_the_floor(impossible: float) -> None:
    wire = completion(entry("a", impossible, top=(Alternative("b", b"b", impossible),), offset=0))
    assert wire["token_logprobs"] == [-9999.0]
    assert wire["top_logprobs"] == [{"b": -9999.0, "a": -9999.0}]
    assert wire["content"][0]["logprob"] == wire["content"][0]["top_logprobs"][0]["logprob"] == -9999.0


@given(ENTRIES)
def test_the_lists_have_one_length_and_the_schema_documents_them(entries: list[LogprobEntry]) -> None:
    wire = completion(*entries)
    CompletionLogprobs.model_validate(wire)
    ChatLogprobs.model_validate(chat_logprobs(entries))
    assert len({len(wire[name]) for name in LISTS}) == 1
    assert [item["token"] for item in wire["content"]] == [e.token for e in entries if e.logprob is not None]


@given(ENTRIES)
def test_the_chosen_token_is_always_among_the_top_and_at_most_one_more_than_asked_for(
    entries: list[LogprobEntry],
) -> None:
    wire = completion(*entries)
    in_text = [each for each in entries if each.offset is not None]
    for token, logprob, top, each in zip(
        wire["tokens"], wire["token_logprobs"], wire["top_logprobs"], in_text, strict=True
    ):
        assert (top is None) == (logprob is None)
        if top is not None:
            assert top[token] == logprob
            assert len(top) <= len(each.top) + 1
