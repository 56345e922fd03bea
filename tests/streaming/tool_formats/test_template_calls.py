"""What real templates write for calls in a history is what is read from an answer."""

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import product
from typing import Any

import pytest

from octavo.errors import TemplateError
from octavo.prompting.guard import RenderGuard
from octavo.prompting.sandbox import TemplateSandbox
from octavo.streaming.tool_formats import BY_NAME, format_of
from prompting.llama_cpp_templates import templates
from streaming.tool_formats.samples import Call, calls_of, run

FORMAT_OF = {
    "ByteDance-Seed-OSS": "seed-oss",
    "GLM-4.6": "glm",
    "GLM-4.7-Flash": "glm",
    "Kimi-K2-Instruct": "kimi-k2",
    "Kimi-K2-Thinking": "kimi-k2",
    "MiMo-VL": "hermes",
    "MiniMax-M1": "minimax-m1",
    "MiniMax-M2": "minimax-m2",
    "MiniMax-M3": "minimax-m3",
    "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": "qwen3-coder",
    "NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use": "hermes",
    "NousResearch-Hermes-3-Llama-3.1-8B-tool_use": "hermes",
    "Qwen-QwQ-32B": "hermes",
    "Qwen-Qwen2.5-7B-Instruct": "hermes",
    "Qwen-Qwen3-0.6B": "hermes",
    "Qwen3-Coder": "qwen3-coder",
    "Qwen3.5-4B": "qwen3-coder",
    "Spark2.5": "glm",
    "StepFun3.5-Flash": "qwen3-coder",
    "deepseek-ai-DeepSeek-R1-Distill-Llama-8B": "deepseek-r1",
    "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B": "deepseek-r1",
    "deepseek-ai-DeepSeek-V3.1": "deepseek-v3.1",
    "deepseek-ai-DeepSeek-V3.2": "deepseek-v3.2",
    "deepseek-ai-DeepSeek-V4": "deepseek-v4",
    "deepseek-ai-DeepSeek-V4-Flash-0731": "deepseek-v4",
    "inclusionai-ling-3.0-flash": "glm",
    "llama-cpp-deepseek-r1": "deepseek-r1",
    "moonshotai-Kimi-K2": "kimi-k2",
    "openbmb-MiniCPM5-1B": "minicpm",
    "poolside-Laguna-S-2.1": "glm",
    "poolside-Laguna-XS-2.1": "glm",
    "poolside-Laguna-XS.2": "glm",
    "tencent-Hy3": "hunyuan",
}
CHANGES_LISTS = {"Kimi-K2-Instruct", "Kimi-K2-Thinking"}
"""These render no calls: neither our sandbox nor Hugging Face's lets a template do so. They write as Kimi-K2 does."""

CALLS: Sequence[Sequence[Call]] = (
    [("get_weather", {"city": "Paris"})],
    [("get_weather", {"city": 'Köln\n</tool_call> & "Umgebung" 東京', "days": 3, "celsius": True})],
    [
        (
            "search",
            {"query": "12", "limit": 5, "tags": ["it's", '<b>"</b>', "4"], "filters": {"a": {"b": [1, 2.5, False]}}},
        )
    ],
    [("now", {})],
    [("add", {"a": -1.5, "b": 2}), ("get_weather", {"city": "null"}), ("now", {})],
)


@cache
def compiled(name: str) -> Any:
    return TemplateSandbox().compiled(templates()[name])


def rendered(name: str, messages: Sequence[Mapping[str, Any]], *, is_prompt: bool = False) -> str:
    """Without tools, which change nothing in the turns."""
    variables = {
        "messages": messages,
        "tools": [],
        "add_generation_prompt": is_prompt,
        "bos_token": "",
        "eos_token": "",
    }
    return TemplateSandbox().render(compiled(name), variables, RenderGuard(2))


def turn(name: str, calls: Sequence[Call]) -> str:
    """What the template writes for an assistant who calls, behind what a prompt ends with.

    Templates differ in whether they take arguments as an object or as its JSON, and contents that are empty or null.
    """
    user = {"role": "user", "content": "Hello"}
    prompt = rendered(name, [user], is_prompt=True)
    for writes_json, content in product((False, True), ("", None)):
        message = {"role": "assistant", "content": content, "tool_calls": [_wire(call, writes_json) for call in calls]}
        try:
            conversation = rendered(name, [user, message])
        except TemplateError:
            continue
        written = conversation.removeprefix(_shared_head(prompt, conversation))
        if all(call in written for call, _ in calls):
            return written
    raise AssertionError("the template writes no calls")


def _shared_head(prompt: str, conversation: str) -> str:
    """A prompt may begin a reasoning that the conversation does not have."""
    length = next((at for at, (one, other) in enumerate(zip(prompt, conversation, strict=False)) if one != other), None)
    return re.sub("<[^>]*$", "", prompt[:length])


def _wire(call: Call, writes_json: bool) -> Mapping[str, Any]:
    name, arguments = call
    function = {"name": name, "arguments": json.dumps(arguments) if writes_json else arguments}
    return {"type": "function", "id": "call_0", "function": function}


@pytest.mark.parametrize("calls", CALLS, ids=lambda calls: calls[0][0])
@pytest.mark.parametrize("name", sorted(FORMAT_OF.keys() - CHANGES_LISTS))
def test_the_calls_that_a_template_writes_are_read(name: str, calls: Sequence[Call]) -> None:
    format = BY_NAME[FORMAT_OF[name]]
    event = run(turn(name, calls), format.name)
    assert calls_of(event) == list(calls)
    assert not any(text in event.text for text in (*format.starts, *format.markers))


@pytest.mark.parametrize("name", FORMAT_OF)
def test_the_format_is_told_from_the_template(name: str) -> None:
    assert format_of(templates()[name]).name == FORMAT_OF[name]


@pytest.mark.parametrize("name", sorted(set(FORMAT_OF.values()) - {"hermes"}))
def test_other_templates_show_other_signs(name: str) -> None:
    signs = BY_NAME[name].signs
    strangers = [other for other in templates() if other not in FORMAT_OF]
    assert not [other for other in strangers if all(sign in templates()[other] for sign in signs)]
