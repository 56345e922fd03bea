"""What parent and child say to each other, as bytes and back."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.core.adapters import Adapter
from octavo.core.images import Image, ImageSpan, ImageTokens
from octavo.core.output import FinishReason, TokenChunk
from octavo.core.request import GenerationRequest
from octavo.core.sampling import SamplingParams
from octavo.core.vocabulary import SpecialToken, Vocabulary
from octavo.engine.base import CacheUse, EngineInfo
from octavo.engine.specs import LlamaSpec, ScriptedSpec
from octavo.engine.worker import frames
from octavo.engine.worker.frames import ToChild, ToParent, pack, read_for_child, read_for_parent

SAMPLING = SamplingParams(0.5, 3, 0.1, 0.9, 0.2, 0.3, 1.1, ((4, -100.0), (5, 2.5)), 2**64 - 1)
VOCABULARY = Vocabulary((b"\xff", b"", b"ab"), (SpecialToken(1, "<|x|>", True, True),), frozenset({1, 2}), None, False)
ADAPTER = Adapter("key", "/adapters/é.gguf", "ab12", 0.5)
IMAGE = Image.of(bytes(range(256)), is_coarse=True)
SPANS = (ImageSpan("d1", 0, 2, 3, True), ImageSpan("d1", 1, 5, 1))
TO_CHILD: list[ToChild] = [
    frames.Load(LlamaSpec("/models/m.gguf", num_slots=3, use_extra_buffers=False)),
    frames.Load(ScriptedSpec("é", exit_at=-1)),
    frames.Load(ScriptedSpec(), (ADAPTER, Adapter("other", "b", "c"))),
    frames.Submit(GenerationRequest("a", (1, 2), 3, SAMPLING, True)),
    frames.Submit(GenerationRequest("a", (1, -(2**31), -1, 2), 3, SAMPLING, adapter="key", images=SPANS)),
    frames.Cancel("a"),
    frames.HoldImage(IMAGE),
    frames.DropImage("d1"),
    frames.EncodeImage(8, "d1"),
    frames.LoadAdapter(9, ADAPTER),
    frames.UnloadAdapter(10, "key"),
    frames.Encode(7, ("text é", 5, "")),
    frames.Shutdown(),
]
TO_PARENT: list[ToParent] = [
    frames.Progress(0.5),
    frames.Ready(EngineInfo(10, 2, "{{ x }}", "fp_1", ("a: b",)), VOCABULARY),
    frames.Ready(EngineInfo(10, 2, None, "fp_1"), VOCABULARY),
    frames.Ready(EngineInfo(10, 2, None, "fp_1", has_vision=True), VOCABULARY),
    frames.Ready(EngineInfo(10, 2, None, "fp_1"), VOCABULARY, ("key", "other")),
    frames.LoadFailed("why"),
    frames.Chunks([frames.Posted.of("a", TokenChunk((1, 2), num_cached=3, queue_seconds=0.25))]),
    frames.Chunks(
        [frames.Posted.of("a", TokenChunk((1, 2))), frames.Posted.of("b", TokenChunk((), FinishReason.LENGTH))]
    ),
    frames.Failed("a", "why"),
    frames.Encoded(7, (1, 2)),
    frames.ImageEncoded(8, ImageTokens((1, -5, -6, -7, -8), SPANS)),
    frames.Done(9),
    frames.CallFailed(9, "adapter_refused", "why"),
    frames.CallFailed(9, "invalid_image", "why", "messages"),
    frames.Activity(1, 2, 3),
    frames.Activity(1, 2, 3, CacheUse(4, 5, 6, 7)),
    frames.Alive(2**40),
]


def reader_of(*parts: bytes) -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    for part in parts:
        reader.feed_data(part)
    reader.feed_eof()
    return reader


@pytest.mark.parametrize("message", TO_CHILD)
async def test_the_child_reads_what_the_parent_says(message: ToChild) -> None:
    assert await read_for_child(reader_of(pack(message))) == message


@pytest.mark.parametrize("message", TO_PARENT)
async def test_the_parent_reads_what_the_child_says(message: ToParent) -> None:
    assert await read_for_parent(reader_of(pack(message))) == message


@given(st.lists(st.sampled_from(TO_PARENT), max_size=6), st.integers(1, 50))
async def test_frames_may_arrive_in_any_pieces(messages: list[ToParent], size: int) -> None:
    data = b"".join(map(pack, messages))
    reader = reader_of(*(data[start : start + size] for start in range(0, len(data), size)))
    assert [await read_for_parent(reader) for _ in messages] == messages
    assert await read_for_parent(reader) is None


@pytest.mark.parametrize("length", [0, 2, 4, 6])
async def test_a_frame_that_breaks_off_means_that_the_other_end_is_gone(length: int) -> None:
    assert await read_for_parent(reader_of(pack(frames.LoadFailed("why"))[:length])) is None
    assert await read_for_child(reader_of(pack(frames.Cancel("a"))[:length])) is None
