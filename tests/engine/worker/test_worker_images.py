"""Images for an engine in another process, and for the one that takes its place."""

import asyncio
import os
import signal

import psutil
import pytest

from engine.builders import collect, request, text_request, until
from engine.runners.seeing import Family, generate, running
from octavo.core.images import Image
from octavo.engine.base import EngineState
from octavo.engine.worker import WorkerEngine
from octavo.engine.worker.frames import DropImage, EncodeImage, HoldImage, ToChild
from octavo.engine.worker.process import ChildProcess
from octavo.errors import EngineDied, EngineError, EngineUnavailable, ImageRefused, VisionUnsupported
from support.block_pictures import as_image, blocks
from support.tiny_vision import FAMILIES

from .workers import ready

PICTURE = blocks(1, 64, 64)
IMAGE = as_image(PICTURE)
PROMPT = ("You see ", PICTURE, " what is it")


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ToChild]]:
    """What children were told of images, by process id."""
    said: list[tuple[int, ToChild]] = []
    send = ChildProcess.send

    def listen(child: ChildProcess, message: ToChild) -> None:
        if isinstance(message, HoldImage | DropImage | EncodeImage):
            said.append((child.pid, message))
        send(child, message)

    monkeypatch.setattr(ChildProcess, "send", listen)
    return said


async def killed(engine: WorkerEngine) -> None:
    """End the child, and wait for the next one."""
    assert engine.pid is not None
    num_restarts = engine.health().num_restarts
    os.kill(engine.pid, signal.SIGKILL)
    await until(lambda: engine.health().num_restarts > num_restarts and engine.health().state is EngineState.READY)


async def test_an_image_is_sent_once_for_all_who_hold_it_and_taken_back_behind_the_last(
    said: list[tuple[int, ToChild]],
) -> None:
    async with ready() as engine:
        with engine.hold_images([IMAGE]), engine.hold_images([IMAGE, IMAGE]):
            with pytest.raises(VisionUnsupported):
                await engine.encode_image(IMAGE)
            assert [type(message) for _, message in said] == [HoldImage, EncodeImage]
        assert said[-1][1] == DropImage(IMAGE.digest)
        assert len(said) == 3
        assert (await collect(engine.generate(request(max_tokens=2))))[0], "the child can go on"


async def test_an_image_is_held_as_long_as_it_is_encoded(said: list[tuple[int, ToChild]]) -> None:
    async with ready() as engine:
        with pytest.raises(VisionUnsupported, match="sees no images"):
            await engine.encode_image(IMAGE)
    assert [type(message) for _, message in said] == [HoldImage, EncodeImage, DropImage]


async def test_a_new_child_is_sent_what_is_held(said: list[tuple[int, ToChild]]) -> None:
    async with ready() as engine:
        first, gone, kept = engine.pid, Image.of(b"gone"), Image.of(b"kept")
        with engine.hold_images([gone]):
            pass
        with engine.hold_images([kept, kept]):
            await killed(engine)
        second = engine.pid
        assert (await collect(engine.generate(text_request("hello"))))[0]
    assert second != first
    assert [message for pid, message in said if pid == second] == [HoldImage(kept), DropImage(kept.digest)]


async def test_what_is_held_and_let_go_between_two_children_is_sent_to_neither(said: list[tuple[int, ToChild]]) -> None:
    async with ready() as engine:
        assert engine.pid is not None
        os.kill(engine.pid, signal.SIGKILL)
        await until(lambda: engine.health().state is EngineState.RESTARTING)
        hold = engine.hold_images([IMAGE])
        with engine.hold_images([Image.of(b"short")]):
            hold.__enter__()
        with pytest.raises(EngineUnavailable):
            await engine.encode_image(IMAGE)
        await until(lambda: engine.health().state is EngineState.READY)
        assert [message for _, message in said] == [HoldImage(IMAGE)]
        hold.__exit__(None, None, None)
        assert said[-1][1] == DropImage(IMAGE.digest)


async def test_a_call_whose_child_dies_says_so_and_lets_the_image_go(said: list[tuple[int, ToChild]]) -> None:
    async with ready() as engine:
        pid = engine.pid
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        await until(lambda: psutil.Process(pid).status() == psutil.STATUS_STOPPED)
        call = asyncio.create_task(engine.encode_image(IMAGE))
        await until(lambda: len(said) == 2)
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(EngineDied):
            await call
        await until(lambda: engine.health().state is EngineState.READY)
        assert len([message for sender, message in said if sender != pid]) == 0


@pytest.fixture(scope="module")
def family(tmp_path_factory: pytest.TempPathFactory) -> Family:
    return Family("llava", FAMILIES["llava"](tmp_path_factory.mktemp("llava")))


async def test_calls_fail_with_their_own_errors_and_requests_without_their_images_too(family: Family) -> None:
    async with running(family) as engine:
        assert engine.info.has_vision
        with pytest.raises(ImageRefused) as refusal:
            await engine.encode_image(Image.of(b"no picture"))
        assert refusal.value.param == "messages"
        once = await generate(engine, PROMPT)
        tokens = await engine.encode_image(IMAGE)
        unheld = request(tokens.tokens, 2, images=tokens.spans)
        assert len((await collect(engine.generate(unheld)))[0]) > 0, "what was seen of it is remembered"
        other = await engine.encode_image(as_image(blocks(2, 64, 64)))
        with pytest.raises(EngineError, match="not been given an image"):
            await collect(engine.generate(request(other.tokens, 2, images=other.spans)))
        again = await generate(engine, PROMPT)
    assert once.tokens == again.tokens


async def test_an_image_that_was_held_when_the_child_died_can_be_shown_to_the_next_one(family: Family) -> None:
    async with running(family) as engine:
        assert isinstance(engine, WorkerEngine)
        before = await generate(engine, PROMPT)
        with engine.hold_images([IMAGE]):
            tokens = await engine.encode_image(IMAGE)
            await killed(engine)
            shown = request(tokens.tokens, 2, images=tokens.spans, ignore_eos=True)
            assert len((await collect(engine.generate(shown)))[0]) == 2, "nobody has sent it since"
        after = await generate(engine, PROMPT)
    assert after.tokens == before.tokens
