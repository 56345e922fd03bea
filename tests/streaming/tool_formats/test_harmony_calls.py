"""What gpt-oss writes that is no call is hidden with its header."""

import pytest

from streaming.tool_formats.samples import Sample, calls_of
from streaming.tool_formats.samples_c import run_in_channels

FINAL = "<|end|><|start|>assistant<|channel|>final<|message|>Done."


@pytest.mark.parametrize("has_controls", [True, False])
@pytest.mark.parametrize(
    "text",
    [
        "<|channel|>commentary to=functions.unknown <|constrain|>json<|message|>{}",
        " to=functions.unknown<|channel|>commentary<|message|>{}",
        "<|channel|>commentary to=functions.now<|message|>no JSON",
        "<|channel|>commentary to=functions.now<|message|>[]",
        '<|channel|>commentary to=functions.get_weather<|message|>{"city": "Par',
        '<|channel|>commentary to=browser.search code<|message|>{"query": "to=now"}',
        "<|channel|>analysis to=python code<|message|>print(to=now)",
        " to=functions.now<|channel|>commentary json",
    ],
)
def test_a_wrong_call_is_hidden_and_the_answer_behind_it_is_not(text: str, has_controls: bool) -> None:
    event = run_in_channels(Sample("harmony", text + FINAL, "Done.", []), has_controls=has_controls)
    assert calls_of(event) == []
    assert event.text == "Done."


def test_a_call_behind_a_wrong_one_is_found() -> None:
    text = (
        "<|channel|>commentary to=functions.unknown<|message|>{}<|call|>"
        "<|start|>assistant<|channel|>commentary to=functions.now<|message|>{}"
    )
    assert calls_of(run_in_channels(Sample("harmony", text, "", []))) == [("now", {})]


def test_an_answer_may_speak_of_recipients() -> None:
    event = run_in_channels(Sample("harmony", "<|channel|>final<|message|>Write to=functions.now {} there.", "", []))
    assert event.text == "Write to=functions.now {} there."
    assert calls_of(event) == []
