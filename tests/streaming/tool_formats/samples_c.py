"""Answers of models that mark calls by headers or channels, and how these models begin an answer."""

from collections.abc import Sequence
from dataclasses import dataclass

from octavo.core.channels import ChannelFormat
from octavo.core.output import TextEvent
from octavo.prompting.chat_template import ChatTemplate
from octavo.prompting.reasoning import channel_format
from streaming.tool_formats.samples import TOOLS as COMMON_TOOLS
from streaming.tool_formats.samples import Sample, run, tool


@dataclass(frozen=True, slots=True)
class Model:
    """signs: of its channels, in its template. prompt_end: what an answer goes on from.
    controls: tokens that it may have for parts of its markers.
    """

    signs: str
    prompt_end: str
    controls: Sequence[str]

    @property
    def channels(self) -> ChannelFormat:
        return channel_format(ChatTemplate("{# " + self.signs + " #}"), self.prompt_end)


MODELS = {
    "harmony": Model(
        "<|channel|>analysis<|message|>",
        "<|start|>assistant",
        ("<|start|>", "<|channel|>", "<|message|>", "<|constrain|>", "<|end|>", "<|call|>"),
    ),
    "muse": Model("to=self<|message|>", "<|start|>assistant", ("<|start|>", "<|message|>", "<|eom|>")),
    "solar": Model(
        "<|begin|>assistant<|think|>",
        "<|begin|>assistant",
        (
            *("<|begin|>", "<|think|>", "<|content|>", "<|end|>", "<|tool_calls|>"),
            *("<|tool_call:begin|>", "<|tool_call:name|>", "<|tool_call:args|>", "<|tool_call:end|>"),
        ),
    ),
    "kimi-k3": Model("<|open|> <|close|> <|sep|>", "<|open|>think<|sep|>", ("<|open|>", "<|close|>", "<|sep|>")),
    "gemma-4": Model(
        "<channel|>", "<|turn>model\n", ("<|channel>", "<channel|>", "<|tool_call>", "<tool_call|>", '<|"|>')
    ),
}

TOOLS = (*COMMON_TOOLS, tool("final"))
PARIS = ("get_weather", {"city": "Paris"})
TO_WEATHER = "to=functions.get_weather"
ATEM = (
    '<atem:function_calls>\n<atem:invoke name="{}">\n<atem:parameter name="{}">{}</atem:parameter>\n'
    "</atem:invoke>\n</atem:function_calls>"
)
ATEM_PARIS = ATEM.format("get_weather", "city", "Paris")
ATEM_TAGS = ATEM.format("search", "tags", '["a", "b"]')
ATEM_LINES = ATEM.format("search", "query", " 1 < 2\n")
SOLAR_PARIS = (
    '<|tool_call:begin|>q1w2e3r4t5<|tool_call:name|>get_weather<|tool_call:args|>{"city": "Paris"}<|tool_call:end|>'
)
K3_PARIS = (
    '<|open|>call tool="get_weather" index="1"<|sep|><|open|>argument key="city" type="string"<|sep|>Paris'
    "<|close|>argument<|sep|><|close|>call<|sep|>"
)
K3_HEAD = "Hm.<|close|>think<|sep|><|open|>response<|sep|>"

SAMPLES = {
    "harmony": Sample(
        "harmony",
        f"<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary {TO_WEATHER} "
        '<|constrain|>json<|message|>{"city": "Paris"}',
        "",
        [PARIS],
    ),
    "harmony, recipient first": Sample(
        "harmony", f' {TO_WEATHER}<|channel|>commentary json<|message|>{{"city": "Paris"}}', "", [PARIS]
    ),
    "harmony, recipient first, nothing said of JSON": Sample(
        "harmony", f' {TO_WEATHER}<|channel|>commentary<|message|>{{"city": "Paris"}}', "", [PARIS]
    ),
    "harmony, in the thoughts": Sample(
        "harmony", f'<|channel|>analysis {TO_WEATHER}<|message|>{{"city": "Paris"}}', "", [PARIS]
    ),
    "harmony, without a namespace": Sample(
        "harmony", '<|channel|>commentary to=get_weather code<|message|>{"city": "Paris"}', "", [PARIS]
    ),
    "harmony, a preamble and two calls": Sample(
        "harmony",
        "<|channel|>commentary<|message|>I look it up.<|end|>"
        f'<|start|>assistant<|channel|>commentary {TO_WEATHER}<|message|>{{"city": "Paris"}}<|call|>'
        "<|start|>assistant to=functions.now<|channel|>commentary<|message|>{}<|call|>",
        "I look it up.",
        [PARIS, ("now", {})],
    ),
    "harmony, a function of a channel's name": Sample(
        "harmony", "<|channel|>commentary to=functions.final<|message|>{}", "", [("final", {})]
    ),
    "muse": Sample(
        "muse",
        f" to=self<|message|>Hm.<|eom|><|start|>assistant to=get_weather<|message|>{ATEM_PARIS}",
        "",
        [PARIS],
    ),
    "muse, said and called": Sample(
        "muse",
        " to=user<|message|>I look it up.<|eom|>"
        f"<|start|>assistant to=get_weather<|message|>{ATEM_PARIS}<|eom|>"
        f"<|start|>assistant to=search<|message|>{ATEM_TAGS}",
        "I look it up.",
        [PARIS, ("search", {"tags": ["a", "b"]})],
    ),
    "muse, lines within a value": Sample(
        "muse",
        f" to=search<|message|>{ATEM_LINES}",
        "",
        [("search", {"query": " 1 < 2\n"})],
    ),
    "solar": Sample(
        "solar",
        f"<|think|>Hm.<|end|><|begin|>assistant<|tool_calls|>{SOLAR_PARIS}{SOLAR_PARIS}<|calls|>",
        "",
        [PARIS, PARIS],
    ),
    "solar, said and called": Sample(
        "solar",
        f"<|content|>I look it up.<|end|><|begin|>assistant<|tool_calls|>{SOLAR_PARIS}",
        "I look it up.",
        [PARIS],
    ),
    "kimi k3": Sample(
        "kimi-k3",
        f"{K3_HEAD}I look it up.<|close|>response<|sep|><|open|>tools<|sep|>{K3_PARIS}{K3_PARIS}<|close|>tools<|sep|>"
        "<|close|>message<|sep|>",
        "I look it up.",
        [PARIS, PARIS],
    ),
    "kimi k3, of several types": Sample(
        "kimi-k3",
        'Hm.<|close|>think<|sep|><|open|>tools<|sep|><|open|>call tool="search" index="1"<|sep|>'
        '<|open|>argument key="query" type="string"<|sep|>5<|close|>argument<|sep|>'
        '<|open|>argument key="limit" type="number"<|sep|>5<|close|>argument<|sep|>'
        '<|open|>argument key="&quot;a&amp;b&quot;" type="array"<|sep|>["c"]<|close|>argument<|sep|>'
        "<|close|>call<|sep|><|close|>tools<|sep|>",
        "",
        [("search", {"query": "5", "limit": 5, '"a&b"': ["c"]})],
    ),
    "kimi k3, in JSON": Sample(
        "kimi-k3",
        f'{K3_HEAD}<|close|>response<|sep|><|open|>tools<|sep|><|open|>call tool="get_weather" index="1"<|sep|>'
        '<|open|>json type="object"<|sep|>{"city": "Paris"}<|close|>json<|sep|><|close|>call<|sep|>',
        "",
        [PARIS],
    ),
    "kimi k3, called instead of answered": Sample("kimi-k3", f"Hm.<|open|>tools<|sep|>{K3_PARIS}", "", [PARIS]),
    "gemma 4": Sample(
        "gemma-4",
        '<|channel>thought\nHm.\n<channel|><|tool_call>call:get_weather{city:<|"|>Paris<|"|>}<tool_call|>',
        "",
        [PARIS],
    ),
    "gemma 4, said and called": Sample(
        "gemma-4",
        'I look it up.<|tool_call>call:search{query:<|"|>{a: "b"}<|"|>,limit:3,tags:[<|"|>c<|"|>,<|"|><|"|>],'
        'filters:{new:true,old:None,<|"|>d<|"|>:{},"e": 1.5}}<tool_call|><|tool_call>call:now{}<tool_call|>',
        "I look it up.",
        [
            (
                "search",
                {
                    "query": '{a: "b"}',
                    "limit": 3,
                    "tags": ["c", ""],
                    "filters": {"new": True, "old": None, "d": {}, "e": 1.5},
                },
            ),
            ("now", {}),
        ],
    ),
    "gemma 4, in JSON": Sample("gemma-4", '<|tool_call>call:get_weather{"city": "Paris"}', "", [PARIS]),
}


def run_in_channels(sample: Sample, *, cuts: Sequence[int] = (), has_controls: bool = True) -> TextEvent:
    """As run, for a model that begins where its prompt ends."""
    model = MODELS[sample.format]
    controls = model.controls if has_controls else ()
    return run(sample.text, sample.format, cuts=cuts, controls=controls, channels=model.channels, tools=TOOLS)
