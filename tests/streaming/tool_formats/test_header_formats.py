"""Laws of the formats whose calls stand in messages of their own, or in texts that no reader may see."""

import json
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from octavo.core.messages import Message, Role
from octavo.core.tools import Tool, ToolCall
from octavo.prompting.chat_template import ChatTemplate
from octavo.prompting.reasoning import channel_format
from octavo.streaming.tool_formats import FORMATS, format_of
from prompting.llama_cpp_templates import templates
from streaming.tool_formats.samples import TOOLS, Sample, calls_of, run
from streaming.tool_formats.samples_c import MODELS, SAMPLES, run_in_channels

TEMPLATES = {
    "openai-gpt-oss-120b": "harmony",
    "muse-glimmer": "muse",
    "upstage-Solar-Open-100B": "solar",
    "Kimi-K3": "kimi-k3",
    "google-gemma-4-31B-it": "gemma-4",
    "google-gemma-4-31B-it-interleaved": "gemma-4",
}

samples = st.sampled_from(list(SAMPLES.values()))


@pytest.mark.parametrize("has_controls", [True, False])
@pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES)
def test_calls_are_told_and_the_rest_is_answer_or_reasoning(sample: Sample, has_controls: bool) -> None:
    event = run_in_channels(sample, has_controls=has_controls)
    assert calls_of(event) == sample.calls
    assert event.text == sample.content
    assert event.reasoning == ("Hm." if "Hm." in sample.text else "")


@given(samples, st.lists(st.integers(1, 400), max_size=12), st.booleans())
def test_any_split_gives_the_same_event(sample: Sample, cuts: list[int], has_controls: bool) -> None:
    whole = run_in_channels(sample, has_controls=has_controls)
    split = run_in_channels(sample, cuts=cuts, has_controls=has_controls)
    assert structs.replace(split, num_tokens=0) == structs.replace(whole, num_tokens=0)


@given(samples.filter(lambda sample: sample.format != "gemma-4"), st.integers(0, 400))
def test_an_answer_that_is_cut_tells_the_calls_that_are_complete_and_no_header(sample: Sample, length: int) -> None:
    """Gemma's calls stand in the answer, which shows what is no call."""
    length = whole_tokens(sample, length)
    event = run_in_channels(replace(sample, text=sample.text[:length]))
    assert calls_of(event) == sample.calls[: len(event.tool_calls) // 2]
    assert sample.content.startswith(event.text)
    assert "Hm.".startswith(event.reasoning)


def whole_tokens(sample: Sample, length: int) -> int:
    """The length up to which no control token is cut."""
    spans = [
        match.span() for name in MODELS[sample.format].controls for match in re.finditer(re.escape(name), sample.text)
    ]
    return next((begin for begin, end in spans if begin < length < end), length)


@pytest.mark.parametrize("sample", [each for each in SAMPLES.values() if each.format != "gemma-4"])
def test_without_tools_no_part_of_a_call_in_another_channel_is_shown(sample: Sample) -> None:
    model = MODELS[sample.format]
    event = run(sample.text, sample.format, controls=model.controls, channels=model.channels, tools=())
    assert event.text == sample.content
    assert event.tool_calls == ()


@pytest.fixture(scope="module")
def sources() -> dict[str, str]:
    return templates()


def test_signs_are_those_of_these_templates_alone(sources: dict[str, str]) -> None:
    own = set(TEMPLATES.values())
    by_signs = {
        (name, form.name)
        for name, source in sources.items()
        for form in FORMATS
        if form.name in own and all(sign in source for sign in form.signs)
    }
    assert by_signs == set(TEMPLATES.items())


CALLS = (
    ToolCall("call_1", "search", '{"query": "a \\"b\\"", "limit": 5, "tags": ["c", "d"], "filters": {"e": true}}'),
    ToolCall("call_2", "now", "{}"),
)


def written(template: ChatTemplate, calls: tuple[ToolCall, ...], tools: tuple[Tool, ...]) -> tuple[str, str]:
    """The prompt, and how the template writes the answer to it."""
    asked = Message(Role.USER, "What was asked?")
    answer = Message(Role.ASSISTANT, "", tool_calls=calls, reasoning="Hm.")
    variables = {"enable_thinking": True}
    prompt = template.render([asked], bos_token="", eos_token="", tools=tools, variables=variables)
    variables = {**variables, "add_generation_prompt": False}
    whole = template.render([asked, answer], bos_token="", eos_token="", tools=tools, variables=variables)
    assert whole.startswith(prompt)
    return prompt, whole.removeprefix(prompt)


@pytest.mark.parametrize("calls", [CALLS[:1], CALLS], ids=["one call", "two calls"])
@pytest.mark.parametrize("name", TEMPLATES)
def test_calls_as_the_template_writes_them_are_read(
    name: str, calls: tuple[ToolCall, ...], sources: dict[str, str]
) -> None:
    template = ChatTemplate(sources[name])
    form = format_of(template.source)
    assert form.name == TEMPLATES[name]
    prompt, text = written(template, calls, TOOLS)
    channels = channel_format(template, prompt)
    event = run(ENDS.sub("", text), form.name, controls=MODELS[form.name].controls, channels=channels)
    assert calls_of(event) == calls_of_history(calls)
    assert event.text == ""
    assert event.reasoning == "Hm."


ENDS = re.compile(r"(<\|tool_response>|<turn\|>\n|<\|eot\|>)\Z")
"""Tokens that end a generation, which are never part of its text, and what is behind them."""


def calls_of_history(calls: tuple[ToolCall, ...]) -> list[tuple[str, object]]:
    return [(call.name, json.loads(call.arguments)) for call in calls]
