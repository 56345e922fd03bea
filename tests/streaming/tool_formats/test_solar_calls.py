"""What Solar Open writes that is no call is hidden."""

import pytest

from streaming.tool_formats.samples import Sample, calls_of
from streaming.tool_formats.samples_c import PARIS, SOLAR_PARIS, run_in_channels


@pytest.mark.parametrize(
    "call",
    [
        SOLAR_PARIS.replace("get_weather", "unknown"),
        SOLAR_PARIS.replace('{"city": "Paris"}', "Paris"),
        SOLAR_PARIS.replace('{"city": "Paris"}', '["Paris"]'),
        SOLAR_PARIS.replace("<|tool_call:name|>", ""),
        "words",
    ],
)
def test_what_is_no_call_is_hidden_and_the_message_behind_it_is_not(call: str) -> None:
    text = f"<|tool_calls|>{call}<|calls|><|begin|>assistant<|content|>Done.<|end|>"
    event = run_in_channels(Sample("solar", text, "Done.", []))
    assert (calls_of(event), event.text) == ([], "Done.")


def test_a_call_behind_a_wrong_one_is_found() -> None:
    text = f"<|tool_calls|>{SOLAR_PARIS.replace('get_weather', 'unknown')}{SOLAR_PARIS}"
    assert calls_of(run_in_channels(Sample("solar", text, "", []))) == [PARIS]


def test_the_section_s_marker_may_be_missing_behind_a_thought() -> None:
    text = f"<|think|>Hm.<|end|><|begin|>assistant{SOLAR_PARIS}"
    assert calls_of(run_in_channels(Sample("solar", text, "", []))) == [PARIS]
