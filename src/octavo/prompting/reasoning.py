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

    The rest as in ChannelFormat.
    """

    signs: tuple[str, ...]
    markers: tuple[tuple[str, Channel], ...]
    quotable: frozenset[str] = frozenset()
    thought: tuple[str, str] = ("", "")
    answer: str = ""
    headers: frozenset[str] = frozenset()
    ends_in_answer: bool = False


def _pair(start: str, end: str, *, signs: tuple[str, ...] = (), more: tuple[str, ...] = (), answer: str = "") -> Family:
    """Reasoning between two markers, of which every template knows the second: it cuts a history there.

    more: markers that may stand around the answer.
    """
    markers = ((start, REASONING), (end, ANSWER), *((each, ANSWER) for each in more))
    return Family(signs or (end,), markers, frozenset({start, end}), (start, end), answer)


def _with_headers(
    signs: tuple[str, ...], markers: tuple[tuple[str, Channel], ...], thought: tuple[str, str], answer: str
) -> Family:
    """Messages with headers, of which those that end with <|message|> are to the reader if they name nobody else."""
    headers = frozenset(text for text, _ in markers if text.endswith("<|message|>"))
    return Family(signs, markers, frozenset(), thought, answer, headers)


def _command(answer: str, *, signs: tuple[str, ...] = ()) -> Family:
    """Cohere's reasoning, and what stands before an answer."""
    start, end = "<|START_THINKING|>", "<|END_THINKING|>"
    around = (answer, answer.replace("START", "END"))
    markers = ((start, REASONING), (end, ANSWER), *((each, ANSWER) for each in around))
    return Family((end, *signs), markers, frozenset(), (start, end), answer)


NO_FAMILY = Family((), ())

FAMILIES = (
    # gpt-oss: <|channel|>analysis<|message|>…<|end|><|start|>assistant<|channel|>final<|message|>…
    # A call names its recipient before the channel or behind it, or both:
    # <|start|>assistant to=functions.f<|channel|>commentary <|constrain|>json<|message|>…
    _with_headers(
        ("<|channel|>analysis<|message|>",),
        (
            ("<|start|>assistant", HIDDEN),
            ("<|channel|>analysis<|message|>", REASONING),
            ("<|channel|>analysis to=", HIDDEN),
            ("<|channel|>commentary<|message|>", ANSWER),
            ("<|channel|>commentary to=", HIDDEN),
            ("<|channel|>final<|message|>", ANSWER),
            ("<|channel|>final json<|message|>", ANSWER),
            ("<|channel|>final <|constrain|>json<|message|>", ANSWER),
            ("<|end|>", HIDDEN),
        ),
        thought=("<|channel|>analysis<|message|>", "<|end|><|start|>assistant"),
        answer="<|channel|>final<|message|>",
    ),
    # Muse: <|start|>assistant to=self<|message|>…<|eom|><|start|>assistant to=user<|message|>…
    _with_headers(
        ("to=self<|message|>",),
        (
            ("<|start|>assistant", HIDDEN),
            ("to=self<|message|>", REASONING),
            ("to=user<|message|>", ANSWER),
            ("<|message|>", ANSWER),
            ("<|eom|>", HIDDEN),
        ),
        thought=(" to=self<|message|>", "<|eom|><|start|>assistant"),
        answer=" to=user<|message|>",
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
        thought=("<|think|>", "<|end|><|begin|>assistant"),
        answer="<|content|>",
    ),
    # Kimi K3: <|open|>think<|sep|>…<|close|>think<|sep|><|open|>response<|sep|>…<|close|>response<|sep|>
    Family(
        ("<|open|>", "<|close|>", "<|sep|>"),
        (
            ("<|open|>think<|sep|>", REASONING),
            ("<|close|>think<|sep|>", HIDDEN),
            ("<|open|>response<|sep|>", ANSWER),
            ("<|close|>response<|sep|>", HIDDEN),
            ("<|open|>tools<|sep|>", HIDDEN),
            ("<|close|>tools<|sep|>", HIDDEN),
        ),
        thought=("<|open|>think<|sep|>", "<|close|>think<|sep|>"),
        answer="<|open|>response<|sep|>",
    ),
    # Functionary 3.2, whose prompts end with ">>>": all\n…>>>get_weather\n{…}. Calls are a tool format's.
    Family(
        (">>>${recipient}",),
        (("all\n", ANSWER), (">>>all\n", ANSWER)),
        answer="all\n",
        ends_in_answer=True,
    ),
    _command("<|START_TEXT|>", signs=("<|START_TEXT|>",)),
    _command("<|START_RESPONSE|>"),  # Command A and R7B
    # Granite 3.3
    _pair(
        "<think>",
        "</think>",
        signs=("<think></think>", "<response></response>"),
        more=("<response>", "</response>"),
    ),
    # Hunyuan
    _pair(
        "<think>",
        "</think>",
        signs=("</think>", "</answer>"),
        more=("<answer>", "</answer>"),
        answer="<answer>",
    ),
    # Granite 3.2, in its own two spellings
    Family(
        ("Here is my thought process:", "Here is my response:"),
        (
            ("Here is my thought process:", REASONING),
            ("Here's my thought process:", REASONING),
            ("Here is my response:", ANSWER),
            ("Here's my response:", ANSWER),
        ),
        thought=("Here is my thought process:", "Here is my response:"),
    ),
    # Apriel
    Family(
        ("[BEGIN FINAL RESPONSE]",),
        (
            ("Here are my reasoning steps:", REASONING),
            ("[BEGIN FINAL RESPONSE]", ANSWER),
            ("[END FINAL RESPONSE]", ANSWER),
        ),
        thought=("Here are my reasoning steps:", "[BEGIN FINAL RESPONSE]"),
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

    It begins in the channel of the marker that the prompt ends with, white space apart, else in ANSWER. Where that
    marker leads to ANSWER, the reasoning is over.
    """
    family = family_of(template)
    marker, initial = _last_marker(family, prompt)
    is_answering = marker != "" and initial is ANSWER
    return ChannelFormat(
        family.markers,
        initial,
        family.quotable,
        thought=("", "") if is_answering else family.thought,
        answer="" if is_answering and family.answer.endswith(marker) else family.answer,
        headers=family.headers,
        ends_in_answer=family.ends_in_answer,
    )


def _last_marker(family: Family, prompt: str) -> tuple[str, Channel]:
    """The longest that the prompt ends with, and its channel."""
    end = prompt.rstrip()
    return max((each for each in family.markers if end.endswith(each[0])), key=_length, default=("", ANSWER))


def _length(marker: tuple[str, Channel]) -> int:
    return len(marker[0])


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
