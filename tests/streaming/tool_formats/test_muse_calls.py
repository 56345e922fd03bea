"""Muse's values, whose types the function's schema tells, and what is no call."""

import pytest

from streaming.tool_formats.samples import Sample, calls_of
from streaming.tool_formats.samples_c import ATEM, ATEM_PARIS, PARIS, run_in_channels


@pytest.mark.parametrize(
    ("name", "key", "text", "value"),
    [
        ("get_weather", "city", "5", "5"),
        ("get_weather", "city", " true \n", " true \n"),
        ("get_weather", "days", "5", 5),
        ("get_weather", "celsius", "false", False),
        ("add", "a", "0.5", 0.5),
        ("search", "filters", '{"new": true}', {"new": True}),
        ("search", "query", '<a href="b">', '<a href="b">'),
    ],
)
def test_a_value_is_of_the_type_that_the_schema_says(name: str, key: str, text: str, value: object) -> None:
    call = f" to={name}<|message|>{ATEM.format(name, key, text)}"
    assert calls_of(run_in_channels(Sample("muse", call, "", []))) == [(name, {key: value})]


def test_a_call_without_arguments_has_none() -> None:
    call = ' to=now<|message|><atem:function_calls>\n<atem:invoke name="now">\n</atem:invoke>'
    assert calls_of(run_in_channels(Sample("muse", call, "", []))) == [("now", {})]


@pytest.mark.parametrize(
    "call",
    [
        ATEM.format("unknown", "city", "Paris"),
        ATEM_PARIS.removesuffix("</atem:invoke>\n</atem:function_calls>"),
        '<atem:function_calls>\n<atem:invoke name="now">words</atem:invoke>',
        '{"city": ["Paris"}',
        '<atem:invoke name="get_wea',
    ],
)
def test_what_is_no_call_is_hidden_up_to_the_next_message(call: str) -> None:
    text = f" to=get_weather<|message|>{call}<|eom|><|start|>assistant to=user<|message|>Done."
    event = run_in_channels(Sample("muse", text, "Done.", []))
    assert (calls_of(event), event.text) == ([], "Done.")


def test_several_calls_may_stand_in_one_message() -> None:
    event = run_in_channels(Sample("muse", f" to=get_weather<|message|>{ATEM_PARIS}\n{ATEM_PARIS}", "", []))
    assert calls_of(event) == [PARIS, PARIS]
