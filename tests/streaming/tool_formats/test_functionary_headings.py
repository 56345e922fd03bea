"""Functionary 3.2 addresses all that it writes, and nobody else is to read that."""

from collections.abc import Sequence

import pytest

from octavo.core.channels import ChannelFormat
from octavo.core.messages import Message, Role
from octavo.core.tools import Tool
from octavo.prompting.chat_template import ChatTemplate
from octavo.prompting.reasoning import channel_format
from prompting.llama_cpp_templates import templates
from streaming.tool_formats.samples import TOOLS, calls_of, run

FORMAT = "functionary-v3.2"


@pytest.fixture(scope="module")
def channels() -> ChannelFormat:
    template = ChatTemplate(templates()["meetkai-functionary-medium-v3.2"])
    prompt = template.render([Message(Role.USER, "Hi")], bos_token="", eos_token="")
    assert prompt.endswith(">>>")
    return channel_format(template, prompt)


@pytest.mark.parametrize("tools", [(), TOOLS], ids=["without tools", "with tools"])
@pytest.mark.parametrize("cuts", [(), range(20)], ids=["whole", "cut"])
@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("all\nHello.", "Hello."),
        ("all\n  Hello.\n", "Hello.\n"),
        (">>>all\nHello.", "Hello."),
        ("all\nThat is all\nof it.", "That is all\nof it."),
        ("all of it.", "all of it."),
        ("That is all\nof it.", "That is all\nof it."),
    ],
)
def test_its_heading_is_no_part_of_an_answer(
    channels: ChannelFormat, text: str, answer: str, cuts: Sequence[int], tools: Sequence[Tool]
) -> None:
    assert run(text, FORMAT, cuts=cuts, channels=channels, tools=tools).text == answer


@pytest.mark.parametrize("is_forced", [False, True])
def test_calls_are_read_behind_it_and_instead_of_it(channels: ChannelFormat, is_forced: bool) -> None:
    text = 'get_weather\n{"city": "all\\n"}>>>now\n{}'
    event = run(text, FORMAT, channels=channels, is_forced=is_forced)
    assert (event.text, calls_of(event)) == ("", [("get_weather", {"city": "all\n"}), ("now", {})])


def test_text_and_calls_may_stand_in_one_answer(channels: ChannelFormat) -> None:
    event = run("all\nOk.>>>now\n{}", FORMAT, channels=channels)
    assert (event.text, calls_of(event)) == ("Ok.", [("now", {})])


def test_a_grammar_may_write_it_before_the_answer(channels: ChannelFormat) -> None:
    assert channels.answer == "all\n"
