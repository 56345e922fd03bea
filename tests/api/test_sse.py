"""The bytes of an event."""

import json

import pytest

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
