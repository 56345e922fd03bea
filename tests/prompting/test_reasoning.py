"""What templates tell of the markers that their models write; the outputs have the form that the model cards show."""

import pytest
from prompting_builders import CHATML, split, user

from octavo.core.channels import PLAIN, Channel, ChannelFormat
from octavo.prompting import ChatTemplate
from octavo.prompting.reasoning import FAMILIES, channel_format

THINKING = CHATML + "{# content.split('</think>') #}"


def format_of(source: str, **variables: object) -> ChannelFormat:
    template = ChatTemplate(source)
    prompt = template.render([user("Hi")], bos_token="", eos_token="", variables=variables)
    return channel_format(template, prompt)


# signs in the template, the end of the prompt, the model's output
OUTPUTS = {
    "gpt-oss": (
        "<|channel|>analysis<|message|>",
        "<|start|>assistant",
        "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Hello.",
    ),
    "gpt-oss with a preamble": (
        "<|channel|>analysis<|message|>",
        "<|start|>assistant",
        "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary<|message|>Hel<|end|>"
        "<|start|>assistant<|channel|>final <|constrain|>json<|message|>lo.",
    ),
    "gpt-oss with a tool call": (
        "<|channel|>analysis<|message|>",
        "<|start|>assistant",
        '<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"a": 1}<|end|><|start|>assistant'
        "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Hello.",
    ),
    "Muse": (
        "to=self<|message|>",
        "<|start|>assistant",
        " to=self<|message|>Hm.<|eom|><|start|>assistant to=user<|message|>Hello.",
    ),
    "Solar": (
        "<|begin|>assistant<|think|>",
        "<|begin|>assistant",
        "<|think|>Hm.<|end|><|begin|>assistant<|content|>Hello.<|end|><|begin|>assistant<|tool_calls|>[]",
    ),
    "Kimi K3": (
        "<|open|> <|close|> <|sep|>",
        "<|open|>think<|sep|>",
        "Hm.<|close|>think<|sep|><|open|>response<|sep|>Hello.<|close|>response<|sep|><|close|>message<|sep|>",
    ),
    "Command A": (
        "<|END_THINKING|>",
        "<|CHATBOT_TOKEN|>",
        "<|START_THINKING|>Hm.<|END_THINKING|><|START_RESPONSE|>Hello.<|END_RESPONSE|>",
    ),
    "Granite 3.3": (
        "<think></think> <response></response>",
        "",
        "<think>Hm.</think><response>Hello.</response>",
    ),
    "Granite 3.2": (
        "'Here is my thought process:' 'Here is my response:'",
        "",
        "Here is my thought process: Hm.\n\nHere's my response:\nHello.",
    ),
    "Hunyuan": ("</think> </answer>", "", "<think>\nHm.\n</think>\n<answer>\nHello.\n</answer>"),
    "Apriel": (
        "[BEGIN FINAL RESPONSE]",
        "Here are my reasoning steps:\n",
        "Hm.\n[BEGIN FINAL RESPONSE]\nHello.\n[END FINAL RESPONSE]",
    ),
    "Qwen3": ("</think>", "", "<think>\nHm.\n</think>\n\nHello."),
    "DeepSeek-R1": ("</think>", "<think>\n", "Hm.\n</think>\n\nHello."),
    "Magistral": ("[/THINK]", "", "[THINK]Hm.[/THINK]Hello."),
    "Seed-OSS": ("</seed:think>", "", "<seed:think>\nHm.\n</seed:think>\nHello."),
    "Kimi-VL": ("◁/think▷", "", "◁think▷Hm.◁/think▷Hello."),
    "Gemma 4": ("<channel|>", "", "<|channel>thought\nHm.\n<channel|>Hello."),
    "Apertus": ("<|inner_suffix|>", "", "<|inner_prefix|>Hm.<|inner_suffix|>Hello."),
    "EXAONE Deep": ("</thought>", "<thought>\n", "Hm.\n</thought>\n\nHello."),
    "Reka Flash": ("</reasoning>", "<reasoning>", "Hm.</reasoning>Hello."),
}


@pytest.mark.parametrize(("signs", "prompt_end", "output"), OUTPUTS.values(), ids=OUTPUTS)
def test_each_family_s_reasoning_and_answer_are_told_apart(signs: str, prompt_end: str, output: str) -> None:
    channels = format_of(CHATML + "{# " + signs + " #}{{ " + repr(prompt_end) + " }}")
    assert split(channels, output) == ("Hm.", "Hello.")


def test_no_marker_is_the_beginning_of_another_of_its_family() -> None:
    """A reader that has read a whole marker can then be sure of it."""
    for family in FAMILIES:
        texts = [text for text, _ in family.markers]
        assert len(set(texts)) == len(texts)
        assert not [(a, b) for a in texts for b in texts if a != b and b.startswith(a)]


def test_a_template_without_signs_is_plain() -> None:
    assert format_of(CHATML) == PLAIN
    assert format_of(CHATML + "{{ '<think>' }}") == PLAIN


@pytest.mark.parametrize(
    ("end", "initial"),
    [
        ("<think>", Channel.REASONING),
        ("<think>\\n", Channel.REASONING),
        (" <think> \\n\\n", Channel.REASONING),
        ("<think>\\n\\n</think>\\n\\n", Channel.ANSWER),
        ("<think></think>", Channel.ANSWER),
        ("</think>", Channel.ANSWER),
        ("<think>\\nOkay", Channel.ANSWER),
        ("", Channel.ANSWER),
    ],
)
def test_an_answer_begins_as_the_prompt_ends(end: str, initial: Channel) -> None:
    assert format_of(THINKING + "{{ '" + end + "' }}").initial is initial


def test_a_variable_may_open_or_close_the_reasoning() -> None:
    source = THINKING + "{% if enable_thinking %}<think>{% else %}<think></think>{% endif %}"
    assert format_of(source, enable_thinking=True).initial is Channel.REASONING
    assert format_of(source, enable_thinking=False).initial is Channel.ANSWER


SHOWING = (
    "{% for m in messages %}[{{ m.role }}]{% if m.reasoning_content %}"
    "{{ start }}{{ m.reasoning_content }}{{ end }}{% endif %}{{ m.content }}{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{{ start }}{% endif %}"
)


def showing(start: str, end: str) -> str:
    return "{% set start = " + repr(start) + " %}{% set end = " + repr(end) + " %}" + SHOWING


@pytest.mark.parametrize(
    ("start", "end"),
    [("<muse>", "</muse>"), ("<muse:x>\n", "\n</muse:x>\n\n"), ("[MUSE]", "[/MUSE]"), ("◁muse▷", "◁/muse▷")],
)
def test_a_pair_that_a_template_shows_around_a_reasoning_is_its_own(start: str, end: str) -> None:
    channels = format_of(showing(start, end))
    assert channels.markers == ((start.strip(), Channel.REASONING), (end.strip(), Channel.ANSWER))
    assert split(channels, f"Hm.{end}Hello.") == ("Hm.", "Hello.")


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("", ""),
        ("", "</muse>"),
        ("<muse>", ""),
        ("<muse>", "</other>"),
        ("<muse>I thought: ", "</muse>"),
        ("<muse>", "</muse><other>"),
        ("(", ")"),
    ],
)
def test_what_is_not_surely_a_pair_is_none(start: str, end: str) -> None:
    assert format_of(showing(start, end)).markers == ()


def test_a_template_that_refuses_the_trial_has_no_pair_of_its_own() -> None:
    source = "{% if messages | length > 1 %}{{ raise_exception('one at a time') }}{% endif %}{{ messages[0].content }}"
    assert format_of(source) == PLAIN
