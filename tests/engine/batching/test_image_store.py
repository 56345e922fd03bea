"""What is remembered of images, for how long, and from which threads."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress

import numpy as np
import pytest

from engine.batching.fake_vision import BORDER, UNREADABLE, FakeVision, holding, picture, seen
from octavo.core.images import Image, ImageSpan
from octavo.engine.batching import image_store
from octavo.engine.batching.image_store import ImageStore
from octavo.engine.batching.vision import Prepared
from octavo.errors import EngineError, EngineUnavailable, ImageRefused

TILES, OTHER = picture(3, 5), picture(3, 5, tag="other")


def go_on() -> bool:
    return True


def span(image: Image, part: int = 0) -> ImageSpan:
    return ImageSpan(image.digest, part, 0, 1)


async def test_an_image_s_tokens_are_its_borders_and_as_many_negative_ones_as_its_parts_have() -> None:
    with holding() as store:
        tokens = await store.tokens(TILES)
    assert [(each.part, each.start, each.num_tokens, each.is_whole) for each in tokens.spans] == [
        (0, 1, 3, False),
        (1, 5, 5, False),
    ]
    assert {each.digest for each in tokens.spans} == {TILES.digest}
    is_text = [token >= 0 for token in tokens.tokens]
    assert is_text == [True, *[False] * 3, True, *[False] * 5]
    assert {token for token in tokens.tokens if token >= 0} == {BORDER}


async def test_the_places_of_an_image_that_is_seen_as_a_whole_say_so() -> None:
    with holding() as store:
        tokens = await store.tokens(picture(4, is_whole=True))
    assert [each.is_whole for each in tokens.spans] == [True]


async def test_equal_images_have_equal_tokens_and_no_two_parts_or_images_have_a_token_in_common() -> None:
    with holding() as store, holding() as another:
        tokens = [(await each.tokens(image)).tokens for each in (store, another) for image in (TILES, OTHER)]
    assert tokens[:2] == tokens[2:]
    places = [token for each in tokens[:2] for token in each if token < 0]
    assert len(set(places)) == len(places) == 16


async def test_an_image_is_prepared_once_and_its_parts_encoded_one_by_one() -> None:
    vision = FakeVision()
    with holding(TILES, vision=vision) as store:
        for _ in range(3):
            await store.tokens(TILES)
        assert store.embeddings(span(TILES)) is None
        store.encode(span(TILES, 1), go_on)
        assert store.embeddings(span(TILES, 0)) is None
        embeddings = store.embeddings(span(TILES, 1))
    assert embeddings is not None
    assert embeddings.values.shape == (5, 2)
    assert vision.prepared == [TILES.digest]
    assert vision.encoded == [(TILES.digest, 1)]


async def test_it_is_prepared_for_its_encoding_too_where_it_is_not_any_more() -> None:
    vision = FakeVision()
    with holding(TILES, vision=vision) as store:
        store.encode(span(TILES), go_on)
        embeddings = store.embeddings(span(TILES))
        await store.tokens(TILES)
    assert embeddings is not None
    assert vision.prepared == [TILES.digest]


USES = (0, 1, 0, 2, 0, 1)
"""Of three images, of which two are remembered: the second one is asked for anew at the end."""


async def test_of_images_tokens_those_used_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_store, "MAX_TOKENS", 2 * 2)
    monkeypatch.setattr(image_store, "MAX_PREPARED", 1)
    vision, images = FakeVision(), [picture(1, tag=tag) for tag in "abc"]
    with holding(vision=vision) as store:
        for number in USES:
            assert len((await store.tokens(images[number])).spans) == 1
    assert vision.prepared == [images[number].digest for number in (0, 1, 2, 1)]


def test_of_prepared_images_those_used_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_store, "MAX_PREPARED", 2 * 6)
    vision, images = FakeVision(), [picture(*[1] * 6, tag=tag) for tag in "abc"]
    with holding(*images, vision=vision) as store:
        for part, number in enumerate(USES):
            store.encode(span(images[number], part), go_on)
    assert vision.prepared == [images[number].digest for number in (0, 1, 2, 1)]


def test_of_embeddings_those_used_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    images = [picture(10, tag=tag) for tag in "abc"]
    monkeypatch.setattr(image_store, "MAX_EMBEDDINGS", 2 * 10 * 2 * 4)
    with holding(*images) as store:
        for number in (0, 1):
            store.encode(span(images[number]), go_on)
        assert store.embeddings(span(images[0])) is not None
        store.encode(span(images[2]), go_on)
        assert [store.embeddings(span(image)) is not None for image in images] == [True, False, True]
        store.encode(span(images[1]), go_on)
        assert [store.embeddings(span(image)) is not None for image in images] == [False, True, True]


def test_embeddings_that_are_larger_than_the_bound_are_kept_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    large, small = picture(100), picture(1)
    monkeypatch.setattr(image_store, "MAX_EMBEDDINGS", 100)
    with holding(large, small) as store:
        for image in (small, large):
            store.encode(span(image), go_on)
        assert [store.embeddings(span(image)) is not None for image in (small, large)] == [False, True]
        store.encode(span(small), go_on)
        assert [store.embeddings(span(image)) is not None for image in (small, large)] == [True, False]


async def test_an_image_that_cannot_be_read_is_refused_each_time() -> None:
    vision = FakeVision()
    with holding(UNREADABLE, vision=vision) as store:
        for _ in range(2):
            with pytest.raises(ImageRefused) as refusal:
                await store.tokens(UNREADABLE)
            assert refusal.value.param == "messages"
        with pytest.raises(ImageRefused):
            store.encode(span(UNREADABLE), go_on)
        assert len((await store.tokens(TILES)).spans) == 2, "others are read as before"


def test_an_image_that_nobody_holds_is_not_encoded() -> None:
    with holding(OTHER) as store:
        with pytest.raises(EngineError, match="not been given an image"):
            store.encode(span(TILES), go_on)
        with store.held((TILES,)):
            store.encode(span(TILES), go_on)
        with pytest.raises(EngineError):
            store.encode(span(TILES, 1), go_on)
        assert store.embeddings(span(TILES)) is not None, "what was made of it is remembered"


def test_an_image_is_held_until_the_last_one_who_holds_it_lets_it_go() -> None:
    with holding() as store:
        with store.held((TILES, TILES)):
            with store.held((TILES,)):
                pass
            store.encode(span(TILES), go_on)
        with pytest.raises(EngineError):
            store.encode(span(TILES), go_on)


def test_an_image_is_let_go_also_where_the_block_fails() -> None:
    with holding() as store:
        with pytest.raises(KeyError), store.held((TILES,)):
            raise KeyError
        with pytest.raises(EngineError):
            store.encode(span(TILES), go_on)


def test_what_an_encoding_that_is_given_up_had_is_not_remembered() -> None:
    with holding(TILES, vision=FakeVision(num_pauses=2)) as store:
        with pytest.raises(EngineError):
            store.encode(span(TILES), lambda: False)
        assert store.embeddings(span(TILES)) is None
        store.encode(span(TILES), go_on)
        assert store.embeddings(span(TILES)) is not None


class GatedVision(FakeVision):
    """Prepares OTHER only while its gate is open."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.is_waiting = threading.Event(), threading.Event()

    def prepare(self, image: Image) -> Prepared:
        if image == OTHER:
            self.is_waiting.set()
            assert self.gate.wait(60)
        return super().prepare(image)


async def in_thread(work: Callable[[], None]) -> None:
    await asyncio.wait_for(asyncio.to_thread(work), 60)


async def test_while_a_picture_is_read_the_runner_s_thread_encodes_others_and_the_event_loop_turns() -> None:
    vision = GatedVision()
    with holding(TILES, OTHER, vision=vision) as store:
        await store.tokens(TILES)
        reading = asyncio.create_task(store.tokens(OTHER))
        await in_thread(vision.is_waiting.wait)
        await in_thread(lambda: store.encode(span(TILES), go_on))
        assert store.embeddings(span(TILES)) is not None
        assert not reading.done()
        vision.gate.set()
        assert len((await reading).spans) == 2


async def test_an_image_that_is_read_in_two_threads_at_once_is_the_same_in_both() -> None:
    vision = GatedVision()
    with holding(OTHER, vision=vision) as store:
        reading = asyncio.create_task(store.tokens(OTHER))
        await in_thread(vision.is_waiting.wait)
        encoding = asyncio.create_task(in_thread(lambda: store.encode(span(OTHER, 1), go_on)))
        vision.gate.set()
        await asyncio.gather(reading, encoding)
        embeddings = store.embeddings(span(OTHER, 1))
        [_, _, _, part] = FakeVision().prepare(OTHER)
        assert embeddings is not None
        assert np.array_equal(embeddings.values, seen(part))


def test_images_are_held_and_let_go_while_parts_are_encoded() -> None:
    """By two threads as fast as they can; who encodes is told, at worst, that nobody holds the image."""
    with holding() as store:
        is_over = threading.Event()

        def hold() -> None:
            while not is_over.is_set():
                with store.held((TILES,)):
                    pass

        holder = threading.Thread(target=hold)
        holder.start()
        try:
            for _ in range(2000):
                with suppress(EngineError):
                    store.encode(span(TILES), go_on)
        finally:
            is_over.set()
            holder.join()


def test_closing_it_closes_the_vision() -> None:
    vision = FakeVision()
    ImageStore(vision).close()
    assert vision.is_closed


class SlowVision(FakeVision):
    """Prepares an image only once the runner's thread has paused often enough."""

    def __init__(self, num_pauses: int) -> None:
        super().__init__()
        self._pauses_left = threading.Semaphore(0)
        self._needed = num_pauses

    def prepare(self, image: Image) -> Prepared:
        for _ in range(self._needed):
            assert self._pauses_left.acquire(timeout=30)
        return super().prepare(image)

    def pause(self) -> bool:
        self._pauses_left.release()
        return True


def test_others_have_their_turns_while_a_picture_that_was_forgotten_is_prepared_again() -> None:
    vision = SlowVision(3)
    with holding(TILES, vision=vision) as store:
        store.encode(span(TILES), vision.pause)
        assert store.embeddings(span(TILES)) is not None


def test_nobody_waits_for_a_picture_that_is_not_wanted_any_more() -> None:
    vision = SlowVision(1)
    with holding(TILES, vision=vision) as store:
        with pytest.raises(EngineError):
            store.encode(span(TILES), lambda: False)
        vision.pause()


async def test_images_that_are_asked_for_while_the_engine_stops_are_refused() -> None:
    vision = SlowVision(1)
    with holding(vision=vision) as store:
        asked = [asyncio.create_task(store.tokens(each)) for each in (TILES, OTHER)]
        await asyncio.sleep(0)
        store.stop()
        vision.pause()
        outcomes = await asyncio.gather(*asked, return_exceptions=True)
        with pytest.raises(EngineUnavailable):
            await store.tokens(picture(1, tag="late"))
    assert isinstance(outcomes[1], EngineUnavailable)
