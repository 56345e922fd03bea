"""Stop strings."""

from itertools import permutations
from typing import Any

import pytest

from conformance.ask import CHAT, COMPLETIONS, Wire, said_by
from conformance.checks import conforms
from conformance.models import THINKING_TEMPLATE, saying
from conformance.served import served

BOTH = pytest.mark.parametrize("path", [COMPLETIONS, CHAT])
LOGPROBS: dict[str, Wire] = {COMPLETIONS: {"logprobs": 0}, CHAT: {"logprobs": True}}


def pieces_of(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


def deltas(chunks: list[Wire]) -> list[str]:
    return [said_by(choice) for chunk in chunks for choice in chunk["choices"]]


@conforms("stop", "stream", rows=(1,))
@BOTH
async def test_nothing_of_a_stop_string_that_spans_tokens_is_streamed(path: str) -> None:
    async with served(saying("ABC", "DEF", "GHI", "JKL", "MNO")) as server:
        told = await server.told(path, stop="DEFGHIJ")
        chunks = await server.chunks(path, stop="DEFGHIJ")
    assert (told.text, told.finish_reason) == ("ABC", "stop")
    assert "".join(deltas(chunks)) == "ABC"


@conforms("stop", "stream", rows=(2,))
@BOTH
@pytest.mark.parametrize("size", [1, 3, 64, 400])
async def test_a_long_stop_string_is_removed_whole(path: str, size: int) -> None:
    stop = "".join(f"<{number}>" for number in range(100))[:256]
    async with served(saying(*pieces_of(f"kept{stop}lost", size))) as server:
        told = await server.told(path, stop=[stop], max_tokens=400)
    assert (told.text, told.finish_reason) == ("kept", "stop")


@conforms("stop", rows=(4,))
@pytest.mark.parametrize(
    "pieces", [("one.\n\nTwo",), ("one", ".\n\n", "Two"), ("one.\n", "\nTwo"), ("one.", "\n\n\n", "Two")], ids=repr
)
async def test_a_stop_string_is_found_in_text_wherever_tokens_end(pieces: tuple[str, ...]) -> None:
    async with served(saying(*pieces)) as server:
        told = await server.told(COMPLETIONS, stop=["\n\n"])
    assert (told.text, told.finish_reason) == ("one.", "stop")


@conforms("stop", rows=(5,))
@pytest.mark.parametrize("stops", list(permutations(["late", "early", "never"])), ids=repr)
@pytest.mark.parametrize("size", [1, 4, 100])
async def test_the_earliest_of_several_stop_strings_cuts_and_their_order_never_matters(
    stops: tuple[str, ...], size: int
) -> None:
    async with served(saying(*pieces_of("so early or late, early or late", size))) as server:
        told = await server.told(COMPLETIONS, stop=list(stops), max_tokens=100)
    assert (told.text, told.finish_reason) == ("so ", "stop")


@conforms("stop", "reasoning_content", rows=(7,))
async def test_in_chat_a_stop_string_ends_the_answer_and_not_the_reasoning() -> None:
    pieces = ("<think>", "The Question: ", "is easy.", "</think>", "Yes. ", "Question", ": two", " more")
    async with served(saying(*pieces, template=THINKING_TEMPLATE)) as server:
        told = await server.told(CHAT, stop=["Question:"], max_tokens=100)
    assert (told.reasoning, told.text, told.finish_reason) == ("The Question: is easy.", "Yes. ", "stop")


@conforms("stop", rows=(8,))
@BOTH
@pytest.mark.parametrize(("fields", "reason"), [({}, "stop"), ({"max_tokens": 3}, "length")], ids=["end", "length"])
async def test_text_held_back_for_a_stop_string_that_does_not_come_is_given_out(
    path: str, fields: Wire, reason: str
) -> None:
    async with served(saying("ABC", "DEF", "GHI")) as server:
        told = await server.told(path, stop="DEFGHIJ", **fields)
    assert (told.text, told.finish_reason) == ("ABCDEFGHI", reason)


@conforms("stop", "reasoning_content", rows=(10,))
@pytest.mark.parametrize("pieces", [("hm", "</thi", "nk>", "Yes."), ("hm<", "/think>Yes."), ("hm", "</think>", "Yes.")])
@pytest.mark.parametrize("stop", ["</thing>", "</s>", "<"])
async def test_holding_text_back_never_cuts_a_marker_of_the_reasoning(pieces: tuple[str, ...], stop: str) -> None:
    async with served(saying("<think>", *pieces, template=THINKING_TEMPLATE)) as server:
        told = await server.told(CHAT, stop=stop)
    assert (told.reasoning, told.text, told.finish_reason) == ("hm", "Yes.", "stop")


@conforms("stop", "stream", "logprobs", rows=(11,))
@BOTH
async def test_no_delta_is_empty_and_entries_are_held_as_long_as_their_text(path: str) -> None:
    async with served(saying("DEF", "GHI", "DEF", "xyz", "DEF")) as server:
        chunks = await server.chunks(path, stop="DEFGHIJ", **LOGPROBS[path])
    choices = [choice for chunk in chunks for choice in chunk["choices"]]
    begun = [choice for choice in choices if "role" not in choice.get("delta", {})]
    for choice in begun:
        entries = (choice["logprobs"] or {}).get("content", [])
        assert bytes(byte for entry in entries for byte in entry["bytes"] or ()) == said_by(choice).encode()
    assert all(said_by(choice) or choice["logprobs"] for choice in begun if choice["finish_reason"] is None)
    assert all(said_by(choice) for choice in begun[:2])
    assert "".join(map(said_by, choices)) == "DEFGHIDEFxyzDEF"


@conforms("stop", rows=(13,))
@BOTH
async def test_half_a_million_stop_strings_are_refused_before_anything_is_done(path: str) -> None:
    async with served(saying("text")) as server:
        error = await server.refused(path, 422, "stop", stop=["x"] * 500_000)
        assert not server.requests
        assert await server.answer(path)
    assert "16" in error["message"]


@conforms("stop")
@pytest.mark.parametrize("stop", [["x"] * 17, "x" * 257, "", ["a", ""], 1, [1]], ids=lambda stop: str(stop)[:20])
async def test_too_many_too_long_and_empty_stop_strings_are_refused(stop: Any) -> None:
    async with served(saying("text")) as server:
        await server.refused(COMPLETIONS, 422, "stop", stop=stop)
        allowed = [f"{number:0256}" for number in range(16)]
        assert await server.answer(COMPLETIONS, stop=allowed)
        assert (await server.told(COMPLETIONS, stop=None)).text == "text"


@conforms("include_stop_str_in_output", "stop")
@BOTH
@pytest.mark.parametrize("size", [1, 2, 5, 20])
async def test_a_stop_string_is_part_of_the_answer_where_the_request_asks_for_it(path: str, size: int) -> None:
    async with served(saying(*pieces_of("one STOP two", size))) as server:
        kept = await server.told(path, stop="STOP", include_stop_str_in_output=True)
        cut = await server.told(path, stop="STOP", include_stop_str_in_output=False)
    assert (kept.text, kept.finish_reason) == ("one STOP", "stop")
    assert (cut.text, cut.finish_reason) == ("one ", "stop")
