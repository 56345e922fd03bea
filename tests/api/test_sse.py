"""The bytes of an event."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.api.event_bytes import ChunkEvents, sse_event


@pytest.mark.parametrize("character", ["\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029", "\r", "\n"])
def test_an_event_is_one_line_for_clients_that_split_lines_as_python_does(character: str) -> None:
    text = f"a{character}b{character}"
    for event, data in (
        (sse_event({"text": text}), {"text": text}),
        (ChunkEvents({"model": text}).event({"text": text}), {"model": text, "choices": [{"text": text}]}),
    ):
        line, *rest = event.decode().splitlines()
        assert rest == [""]
        assert json.loads(line.removeprefix("data: ")) == data


@given(model=st.text(), text=st.text())
def test_an_event_made_from_its_text_alone_has_the_bytes_of_one_made_from_its_choice(model: str, text: str) -> None:
    events = ChunkEvents({"model": model, "empty": ""})
    make = events.text_events({"delta": {"content": ""}, "finish_reason": None})
    assert make(text) == events.event({"delta": {"content": text}, "finish_reason": None})
