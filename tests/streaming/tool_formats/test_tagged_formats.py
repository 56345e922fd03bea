"""Formats whose calls are JSON or parameters between tags: what holds for all of them."""

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.core.tools import CallSyntax
from octavo.streaming.tool_formats import BY_NAME
from streaming.tool_formats.samples import Call, Sample, calls_of, run, run_sample
from streaming.tool_formats.samples_a import SAMPLES

SIZE = 500_000
FORMATS = sorted({sample.format for sample in SAMPLES})
CALLS: Sequence[Call] = [
    ("get_weather", {"city": "Köln\n</tool_call>", "celsius": True}),
    ("now", {}),
    ("search", {"query": '"}]', "filters": {"a": [{"b": None}]}}),
]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: f"{sample.format} {sample.text[:40]}")
def test_calls_are_told_and_their_text_is_not(sample: Sample) -> None:
    event = run_sample(sample)
    assert calls_of(event) == list(sample.calls)
    assert event.text == sample.content


@given(st.sampled_from(SAMPLES), st.data())
def test_any_split_gives_the_same_calls_and_the_same_text(sample: Sample, data: st.DataObject) -> None:
    cuts = data.draw(st.sets(st.integers(1, len(sample.text.encode()))))
    event = run_sample(sample, sorted(cuts))
    assert calls_of(event) == list(sample.calls)
    assert event.text == sample.content


@given(st.sampled_from(SAMPLES), st.data())
def test_a_truncated_text_gives_its_first_calls_or_is_text(sample: Sample, data: st.DataObject) -> None:
    text = sample.text[: data.draw(st.integers(0, len(sample.text)))]
    event = run(text, sample.format)
    calls = calls_of(event)
    assert calls == list(sample.calls[: len(calls)])
    assert calls or event.text == text


@given(st.sampled_from(SAMPLES), st.data())
def test_damaged_text_raises_nothing_and_calls_no_unknown_function(sample: Sample, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(sample.text)))
    end = data.draw(st.integers(start, min(start + 20, len(sample.text))))
    event = run(sample.text[:start] + data.draw(st.text(max_size=5)) + sample.text[end:], sample.format)
    assert {name for name, _ in calls_of(event)} <= {"get_weather", "search", "add", "now"}


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
def test_half_a_megabyte_of_starts_is_text(name: str) -> None:
    start = BY_NAME[name].starts[0]
    text = (f"{start} " * (SIZE // len(start)))[:SIZE]
    assert run(text, name, cuts=range(0, SIZE, 1000)).text == text


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
def test_half_a_megabyte_of_calls_without_their_end_comes_to_its_end(name: str) -> None:
    begun = next(sample.text for sample in SAMPLES if sample.format == name)[:-40]
    text = (begun * (SIZE // len(begun) + 1))[:SIZE]
    event = run(text, name, cuts=range(0, SIZE, 1000))
    assert {call for call, _ in calls_of(event)} <= {"get_weather", "now"}


@pytest.mark.parametrize("name", FORMATS)
def test_nobody_may_call_what_is_not_offered(name: str) -> None:
    text = written(BY_NAME[name].syntax, [("sing", {})])
    event = run(text, name)
    assert (event.text, event.tool_calls) == (text, ())


@pytest.mark.parametrize("name", FORMATS)
def test_calls_in_the_syntax_of_forced_ones_are_calls_when_they_are_not_forced(name: str) -> None:
    event = run(f"Yes. {written(BY_NAME[name].syntax, CALLS)}", name)
    assert (event.text, calls_of(event)) == ("Yes.", CALLS)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: f"{sample.format} {sample.text[:40]}")
def test_markers_that_are_control_tokens_are_read_as_markers(sample: Sample) -> None:
    tags = [text for text in BY_NAME[sample.format].texts if text[0] in "]<" and text[-1] == ">"]
    event = run(sample.text, sample.format, controls=sorted(tags, key=len, reverse=True))
    assert calls_of(event) == list(sample.calls)
    assert event.text == sample.content


def written(syntax: CallSyntax, calls: Sequence[Call]) -> str:
    texts = [
        f"{syntax.begin}{name}{syntax.middle}{json.dumps(arguments, ensure_ascii=False)}{syntax.end}"
        for name, arguments in calls
    ]
    return f"{syntax.opening}{syntax.separator.join(texts)}{syntax.closing}"
