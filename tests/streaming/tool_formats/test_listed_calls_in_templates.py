"""Formats whose calls are lists in JSON or in Python: they are what the real templates write for an assistant."""

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import pytest

from octavo.core.tools import CallSyntax
from octavo.streaming.tool_formats import BY_NAME, format_of
from prompting.llama_cpp_templates import templates
from streaming.tool_formats.samples import Call, calls_of, run, tool

rendering = pytest.importorskip("transformers.utils.chat_template_utils")

# Template; its format; what a rendering of calls has: all of them, one alone, or no calls at all.
TABLE = """
Apertus-8B-Instruct                            apertus           all
Apriel-1.6-15b-Thinker-fixed                   apriel            all
Bielik-11B-v3.0-Instruct                       hermes            all
Cohere2MoE                                     command-r7b       all
CohereForAI-c4ai-command-r-plus-tool_use       command-r-plus    all
CohereForAI-c4ai-command-r7b-12-2024-tool_use  command-r7b       all
GigaChat3-10B-A1.8B                            gigachat-3        one
GigaChat3.1-10B-A1.8B                          gigachat-3.1      one
HuggingFaceTB-SmolLM3-3B                       hermes            none
LFM2-8B-A1B                                    lfm2              none
LFM2.5-8B-A1B                                  lfm2              all
LFM2.5-Instruct                                lfm2              none
Mistral-Small-3.2-24B-Instruct-2506            mistral           all
NVIDIA-Nemotron-Nano-v2                        nemotron-nano-v2  all
Reka-Edge                                      hermes            all
fireworks-ai-llama-3-firefunction-v2           firefunction      all
ibm-granite-granite-3.3-2B-Instruct            granite           none
ibm-granite-granite-4.0                        hermes            all
ibm-granite-granite-4.1                        hermes            all
llama-cpp-rwkv-world                           hermes            none
meetkai-functionary-medium-v3.1                functionary-v3.1  all
meetkai-functionary-medium-v3.2                functionary-v3.2  all
meta-llama-Llama-3.1-8B-Instruct               llama             one
meta-llama-Llama-3.2-3B-Instruct               llama             one
meta-llama-Llama-3.3-70B-Instruct              llama             one
microsoft-Phi-3.5-mini-instruct                hermes            none
mistralai-Ministral-3-14B-Reasoning-2512       mistral           all
mistralai-Mistral-Nemo-Instruct-2407           mistral-nemo      all
unsloth-Apriel-1.5                             apriel            all
unsloth-mistral-Devstral-Small-2507            mistral           all
"""
ROWS = [tuple(line.split()) for line in TABLE.strip().splitlines()]
NUMBERS = {"all": (1, 2), "one": (1,), "none": ()}
CASES = [(template, name, number) for template, name, calls in ROWS for number in NUMBERS[calls]]

NOT_ITS_SYNTAX = {
    "LFM2.5-8B-A1B": "Python",
    "Mistral-Small-3.2-24B-Instruct-2506": "with ids",
    "mistralai-Mistral-Nemo-Instruct-2407": "with ids",
    "Apriel-1.6-15b-Thinker-fixed": "with ids, which its instructions do not ask for",
    "unsloth-Apriel-1.5": "with ids, which its instructions do not ask for",
}

CALLS: Sequence[Call] = [
    ("search", {"query": "zażółć }]", "limit": 3, "tags": ["a", "b"], "filters": {"a": {"b": [1, True]}}}),
    ("get_weather", {"city": "東京"}),
]
TOOLS = (
    tool(
        "search",
        query={"type": "string", "description": "words"},
        limit={"type": "integer", "description": "how many"},
        tags={"type": "array", "items": {"type": "string"}, "description": "all of them"},
        filters={"type": "object", "additionalProperties": {"type": "string"}, "description": "more"},
    ),
    tool("get_weather", ["city"], city={"type": "string", "description": "where"}),
)
VARIABLES = {"bos_token": "", "eos_token": "</s>", "functions": "[]", "datetime": "today"}

HIDDEN = re.compile(r"<think>\s*</think>|</think>|<\|(START_THINKING|END_THINKING|CHATBOT_TOKEN)\|>")
"""What belongs to the prompt or to channels."""
END = re.compile(
    r"<\|(eot_id|eom_id|im_end|END_OF_TURN_TOKEN|end_of_text|assistant_end)\|>|\n<\|end\|>|</s>|\n<SPECIAL_12>|\n*<sep>"
    r"|\[7[7, ]*\]$|<\|START_OF_TURN_TOKEN\|>|<\|message_sep\|>\s*function result"
)
"""What ends a turn, or begins the next one where nothing does."""


@cache
def source_of(template: str) -> str:
    return templates()[template]


def written(template: str, calls: Sequence[Call]) -> str:
    """What a template writes for an assistant behind the prompt that asks for it."""
    source = source_of(template)
    for arguments_of in (dict, json.dumps):
        try:
            return _written(source, [_wire_call(name, arguments_of(arguments)) for name, arguments in calls])
        except (TypeError, ValueError):  # the template wants it the other way
            continue
    raise AssertionError(f"{template} cannot be rendered")


def _written(source: str, calls: Sequence[Mapping[str, Any]]) -> str:
    user = {"role": "user", "content": "What is new?"}
    assistant = {"role": "assistant", "content": "", "reasoning_content": "", "tool_calls": calls}
    results = [{"role": "tool", "content": "7", "tool_call_id": call["id"], "name": "x"} for call in calls]
    prompt = _rendered(source, [user], add_generation_prompt=True)
    whole = _rendered(source, [user, assistant, *results])
    num_same = next(
        (place for place, pair in enumerate(zip(prompt, whole, strict=False)) if len({*pair}) > 1), len(prompt)
    )
    same = re.sub(r"<[^>]*$", "", whole[:num_same])  # but for the beginning of another marker
    answer = HIDDEN.sub("", whole[len(same) :])
    return answer[: end.start()] if (end := END.search(answer)) else answer


def _rendered(source: str, messages: Sequence[Mapping[str, Any]], **settings: Any) -> str:
    definitions = [{"type": "function", "function": each.definition} for each in TOOLS]
    rendered, _ = rendering.render_jinja_template(
        [list(messages)], tools=definitions, chat_template=source, **settings, **VARIABLES
    )
    return str(rendered[0])


def _wire_call(name: str, arguments: Any) -> Mapping[str, Any]:
    return {"id": "a1b2c3d4e", "type": "function", "function": {"name": name, "arguments": arguments}}


def composed(syntax: CallSyntax, calls: Sequence[Call]) -> str:
    texts = [
        f"{syntax.begin}{name}{syntax.middle}{json.dumps(arguments, ensure_ascii=False)}{syntax.end}"
        for name, arguments in calls
    ]
    return f"{syntax.opening}{syntax.separator.join(texts)}{syntax.closing}"


@pytest.mark.parametrize(("template", "format", "calls"), ROWS)
def test_a_template_tells_its_format(template: str, format: str, calls: str) -> None:
    assert format_of(source_of(template)).name == format


@pytest.mark.parametrize(("template", "format", "number"), CASES)
def test_what_a_template_writes_is_read_as_the_same_calls(template: str, format: str, number: int) -> None:
    calls = CALLS[:number]

    event = run(written(template, calls), format, tools=TOOLS)

    assert calls_of(event) == calls
    assert not event.text.strip()


@pytest.mark.parametrize(("template", "format", "number"), [each for each in CASES if each[0] not in NOT_ITS_SYNTAX])
def test_forced_calls_are_what_a_template_writes(template: str, format: str, number: int) -> None:
    calls = [("get_weather", {"city": "Paris"})] * number

    text = re.sub(r'"tool_call_id": "\d"', '"tool_call_id": "0"', written(template, calls))
    assert "".join(text.split()) == "".join(composed(BY_NAME[format].syntax, calls).split())
