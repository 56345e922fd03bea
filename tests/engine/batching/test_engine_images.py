"""Images in the batching engine, encoded in the thread of its step loop while others go on."""

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace

import numpy as np
import pytest

from engine.batching.fake_vision import UNREADABLE, FakeVision, picture
from engine.builders import batching_engine, collect, hashed_logits, request, scripted_runner, until
from octavo.core.images import Image
from octavo.core.output import FinishReason, TokenChunk
from octavo.core.request import GenerationRequest
from octavo.engine.batching.engine import BatchingEngine
from octavo.engine.batching.image_store import ImageStore
from octavo.engine.batching.runner import RunnerFailed
from octavo.engine.batching.vision import Embeddings, Pause, PreparedPart
from octavo.errors import EngineError, EngineUnavailable, ImageRefused, OctavoError, VisionUnsupported

ONE, OTHER, TILES = picture(5), picture(5, tag="other"), picture(2, 3)


@asynccontextmanager
async def running(vision: FakeVision | None) -> AsyncIterator[BatchingEngine]:
    store = None if vision is None else ImageStore(vision)
    engine = batching_engine(scripted_runner(context_length=2000), store)
    loop = asyncio.create_task(asyncio.to_thread(engine.run))
    try:
        yield engine
    finally:
        await engine.close()
        await loop


async def showing(engine: BatchingEngine, image: Image, max_tokens: int = 4) -> GenerationRequest:
    tokens = await engine.tokenizer.encode_image(image)
    spans = tuple(replace(span, start=1 + span.start) for span in tokens.spans)
    return request((1, *tokens.tokens, 2), max_tokens, ignore_eos=True, images=spans)


async def held(engine: BatchingEngine, asked: GenerationRequest, *images: Image) -> AsyncGenerator[TokenChunk, None]:
    with engine.hold_images(images):
        async with aclosing(engine.generate(asked)) as chunks:
            async for chunk in chunks:
                yield chunk


async def answer(engine: BatchingEngine, image: Image) -> tuple[list[int], FinishReason | None]:
    return await collect(held(engine, await showing(engine, image), image))


class GatedVision(FakeVision):
    """Encodes as long as the gate is closed, and lets others have turns all the time; num_turns counts them."""

    def __init__(self, *, failing: frozenset[str] = frozenset()) -> None:
        super().__init__(failing=failing)
        self.gate = threading.Event()
        self.num_turns = 0
        self.was_given_up = False

    def encode(self, part: PreparedPart, pause: Pause) -> Embeddings:
        while not self.gate.wait(0.001):
            self.num_turns += 1
            if not pause():
                self.was_given_up = True
                raise EngineError("Nobody waits for this image any more.")
        return super().encode(part, pause)


async def test_an_image_that_is_encoded_for_long_is_not_one_long_step() -> None:
    vision = GatedVision()
    async with running(vision) as engine:
        seen = asyncio.create_task(answer(engine, ONE))
        await until(lambda: vision.num_turns > 0)
        step = engine.health().step
        assert step > 0
        await until(lambda: engine.health().step > step)
        vision.gate.set()
        await seen


async def test_a_request_that_shows_an_image_is_answered_and_the_image_seen_once() -> None:
    vision = FakeVision(num_pauses=3)
    async with running(vision) as engine:
        assert engine.info.has_vision
        answers = [await answer(engine, TILES) for _ in range(2)]
    assert answers[0] == answers[1]
    assert (len(answers[0][0]), answers[0][1]) == (4, FinishReason.LENGTH)
    assert vision.encoded == [(TILES.digest, 0), (TILES.digest, 1)]
    assert vision.is_closed


async def test_others_answers_go_on_and_begin_while_an_image_is_encoded() -> None:
    vision = GatedVision()
    async with (
        running(vision) as engine,
        aclosing(engine.generate(request(max_tokens=1900, ignore_eos=True))) as before,
    ):
        await anext(before)
        seeing = asyncio.create_task(answer(engine, ONE))
        await until(lambda: vision.num_turns > 0)
        for _ in range(20):
            await anext(before)
        assert len((await collect(engine.generate(request(max_tokens=5, ignore_eos=True))))[0]) == 5
        assert not seeing.done()
        vision.gate.set()
        assert len((await seeing)[0]) == 4
    assert vision.encoded == [(ONE.digest, 0)]


async def test_while_nothing_else_is_to_be_done_an_encoding_goes_on_all_the_same() -> None:
    vision = GatedVision()
    async with running(vision) as engine:
        seeing = asyncio.create_task(answer(engine, ONE))
        await until(lambda: vision.num_turns > 5)
        vision.gate.set()
        assert len((await seeing)[0]) == 4


async def test_an_encoding_is_given_up_when_its_only_request_is_cancelled() -> None:
    vision = GatedVision()
    async with running(vision) as engine:
        seeing = asyncio.create_task(answer(engine, ONE))
        await until(lambda: vision.num_turns > 0)
        seeing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await seeing
        await until(lambda: vision.was_given_up)
        vision.gate.set()
        assert len((await answer(engine, ONE))[0]) == 4, "another one has it encoded anew"


async def test_an_encoding_goes_on_when_one_of_two_that_wait_for_it_is_cancelled() -> None:
    vision = GatedVision()
    async with running(vision) as engine:
        leaving, staying = (asyncio.create_task(answer(engine, ONE)) for _ in range(2))
        await until(lambda: engine.health().num_running == 2 and vision.num_turns > 0)
        leaving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leaving
        await until(lambda: engine.health().num_running == 1)
        assert not vision.was_given_up
        vision.gate.set()
        assert len((await staying)[0]) == 4


async def test_close_ends_everybody_also_in_the_middle_of_an_encoding() -> None:
    vision = GatedVision()
    async with running(vision) as engine:
        seeing = asyncio.create_task(answer(engine, ONE))
        reading = asyncio.create_task(collect(engine.generate(request(max_tokens=1900, ignore_eos=True))))
        await until(lambda: vision.num_turns > 0)
        await engine.close()
        for stream in (seeing, reading):
            with pytest.raises(EngineUnavailable):
                await stream
        await until(lambda: vision.was_given_up)
    assert vision.is_closed


async def ending(stream: AsyncGenerator[TokenChunk, None]) -> str:
    try:
        _, reason = await collect(stream)
    except OctavoError as error:
        return error.message
    return str(reason)


async def test_an_encoding_that_fails_ends_only_the_requests_that_show_the_image() -> None:
    vision = GatedVision(failing=frozenset({ONE.digest}))
    async with running(vision) as engine:
        asked = [await showing(engine, image) for image in (ONE, ONE, OTHER)]
        streams = [
            asyncio.create_task(ending(held(engine, each, image)))
            for each, image in zip(asked, (ONE, ONE, OTHER), strict=True)
        ]
        reading = asyncio.create_task(ending(engine.generate(request(max_tokens=50, ignore_eos=True))))
        await until(lambda: engine.health().num_running == 3 and vision.num_turns > 0)
        vision.gate.set()
        failed = "The model failed on an image of this request."
        assert await asyncio.gather(*streams) == [failed, failed, "length"]
        assert await reading == "length"
        assert await ending(engine.generate(request(max_tokens=2, ignore_eos=True))) == "length"


async def test_an_image_that_is_not_held_ends_its_own_request_alone() -> None:
    async with running(FakeVision()) as engine:
        asked = await showing(engine, ONE)
        streams = engine.generate(asked), engine.generate(request(ignore_eos=True))
        results = await asyncio.gather(*map(ending, streams))
    assert results == ["The engine has not been given an image of this request.", "length"]


async def test_a_runner_that_fails_while_an_image_is_encoded_ends_the_step_loop() -> None:
    vision = GatedVision()

    def next_logits(tokens: tuple[int, ...]) -> np.ndarray:
        if vision.num_turns:
            raise RunnerFailed("the state is lost")
        return hashed_logits(0)(tokens)

    engine = batching_engine(scripted_runner(next_logits), ImageStore(vision))
    loop = asyncio.create_task(asyncio.to_thread(engine.run))
    seeing = asyncio.create_task(answer(engine, ONE))
    await until(lambda: vision.num_turns > 0)
    reading = asyncio.create_task(collect(engine.generate(request())))
    with pytest.raises(RunnerFailed, match="the state is lost"):
        await loop
    assert vision.is_closed
    for stream in (seeing, reading):
        stream.cancel()


async def test_an_image_that_cannot_be_read_is_refused_by_the_tokenizer() -> None:
    async with running(FakeVision()) as engine:
        with pytest.raises(ImageRefused):
            await engine.tokenizer.encode_image(UNREADABLE)


async def test_without_a_vision_there_are_no_images() -> None:
    async with running(None) as engine:
        assert not engine.info.has_vision
        with pytest.raises(VisionUnsupported):
            await engine.tokenizer.encode_image(ONE)
        async with running(FakeVision()) as other:
            asked = await showing(other, ONE)
        with engine.hold_images([ONE]), pytest.raises(EngineError, match="sees no images"):
            await anext(engine.generate(asked))


async def test_many_requests_with_and_without_images_are_all_answered() -> None:
    async with running(FakeVision(num_pauses=2)) as engine:
        images = [picture(1 + number % 4, 2, tag=str(number % 5)) for number in range(12)]
        once = [await answer(engine, image) for image in images]
        texts = [request((7, number), 6, ignore_eos=True) for number in range(6)]
        together = await asyncio.gather(
            *(answer(engine, image) for image in images), *(collect(engine.generate(each)) for each in texts)
        )
    assert together[: len(images)] == once
    assert all(len(tokens) == 6 for tokens, _ in together[len(images) :])
