"""How model families mark their reasoning, told from their chat templates."""

import re
from dataclasses import dataclass
from functools import lru_cache

from octavo.core.channels import Channel, ChannelFormat
from octavo.core.messages import Message, Role
from octavo.errors import TemplateError
from octavo.prompting.chat_template import ChatTemplate

REASONING, ANSWER, HIDDEN = Channel.REASONING, Channel.ANSWER, Channel.HIDDEN


@dataclass(frozen=True, slots=True)
class Family:
    """signs: texts that together are found in the sources of this family's templates alone.

    markers, quotable: as in ChannelFormat.
    """

    signs: tuple[str, ...]
    markers: tuple[tuple[str, Channel], ...]
    quotable: frozenset[str] = frozenset()


def _pair(start: str, end: str, *, signs: tuple[str, ...] = (), more: tuple[str, ...] = ()) -> Family:
    """Reasoning between two markers, of which every template knows the second: it cuts a history there.

    more: markers that may stand around the answer.
    """
    markers = ((start, REASONING), (end, ANSWER), *((each, ANSWER) for each in more))
    return Family(signs or (end,), markers, frozenset({start, end}))


NO_FAMILY = Family((), ())

FAMILIES = (
    # gpt-oss: <|channel|>analysis<|message|>…<|end|><|start|>assistant<|channel|>final<|message|>…
    # A header with a recipient is a tool call's, and leads to none of the channels.
    Family(
        ("<|channel|>analysis<|message|>",),
        (
            ("<|start|>assistant", HIDDEN),
            ("<|channel|>", HIDDEN),
            ("analysis<|message|>", REASONING),
            ("commentary<|message|>", ANSWER),
            ("final<|message|>", ANSWER),
            ("final json<|message|>", ANSWER),
            ("final <|constrain|>json<|message|>", ANSWER),
            ("<|end|>", HIDDEN),
        ),
    ),
    # Muse: <|start|>assistant to=self<|message|>…<|eom|><|start|>assistant to=user<|message|>…
    Family(
        ("to=self<|message|>",),
        (
            ("<|start|>assistant", HIDDEN),
            ("to=self<|message|>", REASONING),
            ("to=user<|message|>", ANSWER),
            ("<|message|>", ANSWER),
            ("<|eom|>", HIDDEN),
        ),
    ),
    # Solar Open: <|begin|>assistant<|think|>…<|end|><|begin|>assistant<|content|>…
    Family(
        ("<|begin|>assistant<|think|>",),
        (
            ("<|begin|>assistant", HIDDEN),
            ("<|think|>", REASONING),
            ("<|content|>", ANSWER),
            ("<|tool_calls|>", HIDDEN),
            ("<|end|>", HIDDEN),
        ),
    ),
    # Kimi K3: <|open|>think<|sep|>…<|close|>think<|sep|><|open|>response<|sep|>…<|close|>response<|sep|>
    Family(
        ("<|open|>", "<|close|>", "<|sep|>"),
        (
            ("<|open|>think<|sep|>", REASONING),
            ("<|close|>think<|sep|>", HIDDEN),
            ("<|open|>response<|sep|>", ANSWER),
            ("<|close|>response<|sep|>", HIDDEN),
        ),
    ),
    # Command A and R7B
    Family(
        ("<|END_THINKING|>",),
        (
            ("<|START_THINKING|>", REASONING),
            ("<|END_THINKING|>", ANSWER),
            ("<|START_RESPONSE|>", ANSWER),
            ("<|END_RESPONSE|>", ANSWER),
            ("<|START_TEXT|>", ANSWER),
            ("<|END_TEXT|>", ANSWER),
        ),
    ),
    # Granite 3.3
    _pair(
        "<think>",
        "</think>",
        signs=("<think></think>", "<response></response>"),
        more=("<response>", "</response>"),
    ),
    # Hunyuan
    _pair("<think>", "</think>", signs=("</think>", "</answer>"), more=("<answer>", "</answer>")),
    # Granite 3.2, in its own two spellings
    Family(
        ("Here is my thought process:", "Here is my response:"),
        (
            ("Here is my thought process:", REASONING),
            ("Here's my thought process:", REASONING),
            ("Here is my response:", ANSWER),
            ("Here's my response:", ANSWER),
        ),
    ),
    # Apriel
    Family(
        ("[BEGIN FINAL RESPONSE]",),
        (
            ("Here are my reasoning steps:", REASONING),
            ("[BEGIN FINAL RESPONSE]", ANSWER),
            ("[END FINAL RESPONSE]", ANSWER),
        ),
    ),
    _pair("<think>", "</think>"),
    _pair("[THINK]", "[/THINK]"),  # Magistral, Ministral
    _pair("<seed:think>", "</seed:think>"),  # Seed-OSS
    _pair("◁think▷", "◁/think▷"),  # Kimi
    _pair("<|channel>thought", "<channel|>"),  # Gemma 4
    _pair("<|inner_prefix|>", "<|inner_suffix|>"),  # Apertus
    _pair("<thought>", "</thought>"),  # EXAONE Deep
    _pair("<reasoning>", "</reasoning>"),  # Reka Flash
)
"""The first whose signs are found is a template's."""

_THOUGHT, _SAID = "what was thought", "what was said"
_SHOWN_PAIR = re.compile(
    rf"(?P<start>(?P<open>[<\[◁])(?P<name>[^<>\[\]◁▷\s/]+)(?P<close>[>\]▷]))\s*{_THOUGHT}\s*"
    rf"(?P<end>(?P=open)/(?P=name)(?P=close))\s*{_SAID}"
)


def channel_format(template: ChatTemplate, prompt: str) -> ChannelFormat:
    """What an answer to a prompt that the template rendered will look like.

    It begins in the channel of the marker that the prompt ends with, white space apart, else in ANSWER.
    """
    family = family_of(template)
    end = prompt.rstrip()
    at_end = [(len(text), channel) for text, channel in family.markers if end.endswith(text)]
    return ChannelFormat(family.markers, max(at_end, default=(0, ANSWER))[1], family.quotable)


@lru_cache(maxsize=8)
def family_of(template: ChatTemplate) -> Family:
    """The template's family, else the pair that it shows around a reasoning, else none."""
    for family in FAMILIES:
        if all(sign in template.source for sign in family.signs):
            return family
    return _shown_pair(template)


def _shown_pair(template: ChatTemplate) -> Family:
    """An opening and a closing tag of one name with nothing else between a turn's reasoning and its content."""
    messages = [Message(Role.USER, "what was asked"), Message(Role.ASSISTANT, _SAID, reasoning=_THOUGHT)]
    try:
        shown = template.render(messages, bos_token="", eos_token="")
    except TemplateError:
        return NO_FAMILY
    shown_pair = _SHOWN_PAIR.search(shown)
    return _pair(shown_pair["start"], shown_pair["end"]) if shown_pair else NO_FAMILY
