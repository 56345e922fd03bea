"""Usage in streams."""

import pytest

from conformance.ask import CHAT, COMPLETIONS, Wire, said_by, told
from conformance.checks import conforms
from conformance.models import saying
from conformance.served import served

BOTH = pytest.mark.parametrize("path", [COMPLETIONS, CHAT])
WITH_USAGE = {"stream_options": {"include_usage": True}}


@conforms("stream_options.include_usage", "usage", rows=(71,))
@BOTH
async def test_the_last_chunk_has_the_usage_of_the_whole_answer(path: str) -> None:
    async with served(saying("AB", "CD")) as server:
        *chunks, last = await server.chunks(path, n=2, **WITH_USAGE)
        whole = await server.answer(path, n=2)
    assert last["choices"] == []
    assert last["usage"]["completion_tokens"] == whole["usage"]["completion_tokens"] == 6
    assert last["usage"]["prompt_tokens"] == whole["usage"]["prompt_tokens"]
    assert chunks[0]["id"] == last["id"]


@conforms("stream_options.include_usage", "usage", rows=(73,))
@BOTH
@pytest.mark.parametrize("options", [None, {}, {"include_usage": False}, {"include_usage": None}], ids=str)
async def test_nobody_gets_a_usage_without_asking_and_who_asks_gets_null_before(
    path: str, options: Wire | None
) -> None:
    async with served(saying("AB", "CD")) as server:
        chunks = await server.chunks(path, stream_options=options)
        *asked, _ = await server.chunks(path, **WITH_USAGE)
    assert not any("usage" in chunk for chunk in chunks)
    assert [chunk["usage"] for chunk in asked] == [None] * len(asked)
    assert all(len(chunk["choices"]) == 1 for chunk in asked)


@conforms("stream_options.include_usage", "usage", rows=(74,))
@BOTH
@pytest.mark.parametrize("ending", [{"stop": "CD"}, {"max_tokens": 1}, {"max_tokens": 0}], ids=str)
async def test_a_stream_has_its_usage_however_it_ends(path: str, ending: Wire) -> None:
    async with served(saying("AB", "CD", "EF")) as server:
        *_, last = await server.chunks(path, **WITH_USAGE, **ending)
        whole = await server.answer(path, **ending)
    usage = last["usage"]
    assert usage["completion_tokens"] == whole["usage"]["completion_tokens"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]


@conforms("finish_reason", "stream", rows=(89,))
@BOTH
async def test_the_finish_reason_is_null_on_every_chunk_before_the_last(path: str) -> None:
    async with served(saying("AB", "CD", "EF")) as server:
        chunks = await server.chunks(path)
    *before, last = [chunk["choices"][0]["finish_reason"] for chunk in chunks]
    assert before
    assert before == [None] * len(before)
    assert last == "stop"


@conforms("usage", "n")
async def test_a_prompt_that_n_samples_share_counts_once_and_every_generated_token_counts() -> None:
    async with served(saying("AB", "CD")) as server:
        answer = await server.answer(COMPLETIONS, prompt=["Say:", "And again:"], n=3)
        stopped = await server.answer(COMPLETIONS, stop="CD")
    usage = answer["usage"]
    assert usage["prompt_tokens"] == len("Say:") + len("And again:")
    assert usage["completion_tokens"] == 6 * 3
    assert usage["total_tokens"] == usage["prompt_tokens"] + 18
    assert stopped["usage"]["completion_tokens"] == 2


@conforms("usage")
async def test_the_usage_tells_how_many_prompt_tokens_were_found_computed() -> None:
    async with served(saying("AB", "CD")) as server:
        first = await server.answer(COMPLETIONS, prompt="A prompt that comes again:")
        again = await server.answer(COMPLETIONS, prompt="A prompt that comes again:")
        *_, streamed = await server.chunks(COMPLETIONS, prompt="A prompt that comes again:", **WITH_USAGE)
    cached = [each["usage"]["prompt_tokens_details"]["cached_tokens"] for each in (first, again, streamed)]
    assert cached[0] == 0
    assert all(0 < number < first["usage"]["prompt_tokens"] for number in cached[1:])
    assert told(again) == told(first)


@conforms("stream_options.include_usage")
@BOTH
async def test_stream_options_without_a_stream_are_refused(path: str) -> None:
    async with served(saying("x")) as server:
        await server.refused(path, 422, "stream_options", **WITH_USAGE)
        await server.refused(path, 422, "stream_options", stream=True, stream_options={"include_usage": 1})


@conforms("stream")
@BOTH
async def test_a_stream_is_server_sent_events_that_end_with_done(path: str) -> None:
    async with served(saying("A\nB", "\u2028C\r\n\n", "data: D")) as server:
        response = await server.send(path, stream=True)
        chunks = await server.chunks(path)
    assert response.headers["content-type"] == "text/event-stream"
    assert response.text.endswith("\n\ndata: [DONE]\n\n")
    assert all(line.startswith("data: ") for line in response.text.split("\n") if line)
    assert "".join(said_by(choice) for chunk in chunks for choice in chunk["choices"]) == "A\nB\u2028C\r\n\ndata: D"


@conforms("stream", "messages")
async def test_a_chat_choice_begins_with_the_role() -> None:
    async with served(saying("AB")) as server:
        chunks = await server.chunks(CHAT, n=2)
    for index in range(2):
        first, *others = [chunk["choices"][0]["delta"] for chunk in chunks if chunk["choices"][0]["index"] == index]
        assert first["role"] == "assistant"
        assert not any("role" in delta for delta in others)
