"""Formats whose calls are lists in JSON or in Python: what holds for all of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.streaming.tool_formats import BY_NAME
from streaming.tool_formats.samples import Sample, calls_of, run, run_sample
from streaming.tool_formats.samples_b import SAMPLES

HEADINGS = ("all\n", ">>>all\n", "<|message_sep|>", "Ok.<|message_sep|>")
"""Of what is text of the answer; they are none themselves."""

STARTS = sorted({(sample.format, start) for sample in SAMPLES for start in BY_NAME[sample.format].starts})


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: f"{sample.format} {sample.text[:60]}")
def test_calls_are_told_and_their_text_is_not(sample: Sample) -> None:
    event = run_sample(sample)

    assert calls_of(event) == list(sample.calls)
    assert event.text == sample.content


@given(st.sampled_from(SAMPLES), st.data())
def test_any_split_of_the_text_gives_the_same_event(sample: Sample, data: st.DataObject) -> None:
    cuts = data.draw(st.lists(st.integers(1, len(sample.text.encode())), max_size=30))
    whole = run_sample(sample)

    event = run_sample(sample, cuts)

    assert (event.text, calls_of(event)) == (whole.text, calls_of(whole))


@given(st.sampled_from(SAMPLES), st.data())
def test_a_truncated_text_gives_its_first_calls_or_is_text(sample: Sample, data: st.DataObject) -> None:
    text = sample.text[: data.draw(st.integers(0, len(sample.text)))]

    event = run(text, sample.format)

    calls = calls_of(event)
    assert calls == sample.calls[: len(calls)]
    if not calls and not text.startswith(HEADINGS):
        assert event.text == text


@given(st.sampled_from(SAMPLES), st.data())
def test_damaged_text_raises_nothing(sample: Sample, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(sample.text)))
    rest = sample.text[place + data.draw(st.integers(0, 3)) :]

    run(sample.text[:place] + data.draw(st.text(max_size=3)) + rest, sample.format)


@pytest.mark.parametrize(("format", "start"), STARTS)
def test_starts_without_calls_are_text(format: str, start: str) -> None:
    text = f"{start}\n" * (20_000 // len(start)) + "."

    assert run(text, format).text == text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("format", "look_alike"),
    [
        ("hermes", "{\n"),
        ("hermes", "[\n{"),
        ("hermes", '{"name": "get_weather", "arguments": {"city": "x'),
        ("hermes", '{"name": "get_weather", "arguments": {}\n'),
        ("hermes", "```json\n[get_weather(city='"),
        ("lfm2", "<|tool_call_start|>[get_weather(city=["),
        ("llama", "<function=get_weather"),
        ("mistral", "[TOOL_CALLS]get_weather[ARGS]"),
        ("functionary-v3.2", ">>>a\n"),
    ],
)
def test_half_a_megabyte_of_look_alikes_is_text(format: str, look_alike: str) -> None:
    text = look_alike * (500_000 // len(look_alike)) + "."

    assert run(text, format).text == text
