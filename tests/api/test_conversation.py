"""Messages with calls, as chat templates get them."""

from collections.abc import Iterator
from typing import Any

import pytest

from octavo.api.convert.conversation import conversation, image_links
from octavo.api.schemas.messages import ChatMessage
from octavo.core.images import Image
from octavo.core.messages import Message, PlacedImage, Role
from octavo.core.tools import ToolCall
from octavo.service import ImageLink
from support.pictures import image_part, text_part


def converted(*messages: dict[str, Any]) -> tuple[Message, ...]:
    return conversation([ChatMessage.model_validate(message) for message in messages])


def function(name: str, arguments: str = "{}") -> dict[str, str]:
    return {"name": name, "arguments": arguments}


@pytest.mark.parametrize("content", [{}, {"content": None}, {"content": ""}, {"content": []}], ids=str)
def test_an_assistant_may_call_and_say_nothing(content: dict[str, Any]) -> None:
    calls = [{"id": "a", "type": "function", "function": function("f")}, {"id": "b", "function": function("g", "{} ")}]
    assert converted({"role": "assistant", "tool_calls": calls, **content}) == (
        Message(Role.ASSISTANT, "", tool_calls=(ToolCall("a", "f", "{}"), ToolCall("b", "g", "{} "))),
    )


@pytest.mark.parametrize("calls", [{}, {"tool_calls": None}, {"tool_calls": []}, {"function_call": None}], ids=str)
@pytest.mark.parametrize("role", ["user", "assistant", "system", "tool", "function"])
def test_any_message_may_say_that_it_calls_nothing(role: str, calls: dict[str, Any]) -> None:
    [message] = converted({"role": role, "content": "x", **calls})
    assert message.tool_calls == ()


def test_a_result_keeps_its_id_and_name_where_it_has_them() -> None:
    assert converted(
        {"role": "tool", "content": "22", "tool_call_id": "a"},
        {"role": "tool", "content": "23", "name": "f", "tool_call_id": None},
    ) == (Message(Role.TOOL, "22", tool_call_id="a"), Message(Role.TOOL, "23", name="f"))


def test_a_function_call_and_its_result_get_an_id_of_their_own() -> None:
    messages = converted(
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": None, "function_call": function("f", '{"a": 1}')},
        {"role": "function", "name": "f", "content": "one"},
        {"role": "assistant", "content": "y", "function_call": function("g")},
        {"role": "function", "name": "g", "content": None},
    )
    first, second = messages[1].tool_calls[0].id, messages[3].tool_calls[0].id
    assert first != second
    assert messages[1:] == (
        Message(Role.ASSISTANT, "", tool_calls=(ToolCall(first, "f", '{"a": 1}'),)),
        Message(Role.TOOL, "one", name="f", tool_call_id=first),
        Message(Role.ASSISTANT, "y", tool_calls=(ToolCall(second, "g", "{}"),)),
        Message(Role.TOOL, "", name="g", tool_call_id=second),
    )
    assert all(len(id) == 9 and id.isalnum() for id in (first, second))


@pytest.mark.parametrize("arguments", ["", "{", "Paris", '{"a": NaN}', "null", '["x"]'])
def test_arguments_that_are_no_object_are_passed_on_as_they_are(arguments: str) -> None:
    [message] = converted({"role": "assistant", "tool_calls": [{"id": "a", "function": function("f", arguments)}]})
    assert message.tool_calls[0].arguments == arguments


def test_texts_are_joined_and_images_keep_their_places() -> None:
    red, blue = Image.of(b"red"), Image.of(b"blue", is_coarse=True)
    images = {ImageLink("data:r"): red, ImageLink("data:b", is_coarse=True): blue}
    parts = [text_part("ab"), image_part("data:r"), text_part(""), image_part("data:b", detail="low"), text_part("c")]
    wires = [ChatMessage.model_validate({"role": "user", "content": parts})]
    assert image_links(wires) == list(images)
    placed = (PlacedImage(red, 2), PlacedImage(blue, 2))
    assert conversation(wires, images) == (Message(Role.USER, "abc", images=placed),)


class Unwalkable(str):
    """A text of millions of characters, which take a tenth of a second each million."""

    def __iter__(self) -> Iterator[str]:
        raise AssertionError("a text is not looked at character by character")


def test_a_text_is_not_walked_through() -> None:
    text = Unwalkable("much text")
    wire = ChatMessage.model_construct(role="user", content=text)
    assert image_links([wire]) == []
    assert conversation([wire]) == (Message(Role.USER, "much text"),)
