"""Pictures and the prefix cache: what is found computed, and what must never be."""

from collections.abc import AsyncIterator, Iterator

import httpx
import pytest
from PIL import Image as Pillow

from support.pictures import data_url, image_part, saved, text_part
from support.processes import Server

from .tiny_vlm import (
    COLOUR,
    COLOURS,
    MODEL,
    NUM_TOKENS,
    Drawing,
    answer_to,
    asking,
    connected,
    conversation,
    draw,
    draw_clearly,
    num_cached,
    said_in,
    seeing,
    user,
)
from .wire import Wire

SEED = 30_000
NUM_PAIRS = 50


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with seeing(folder=tmp_path_factory.mktemp("caching")) as server:
        yield server


@pytest.fixture
async def client(server: Server) -> AsyncIterator[httpx.AsyncClient]:
    async with connected(server) as client:
        yield client


@pytest.fixture
async def start(client: httpx.AsyncClient) -> int:
    """Tokens before the first part of a message: those of the template alone."""
    response = await client.post("/v1/tokenize", json={"model": MODEL, "text": "user\n"})
    return 1 + len(response.json()["tokens"])


def pictures_part(picture: Pillow.Image) -> Wire:
    return image_part(data_url(saved(picture, "PNG")))


def with_another_pixel(drawing: Drawing, number: int) -> Pillow.Image:
    """The picture with a difference that nobody sees: one step of one colour, in the last row."""
    picture = drawing.picture.copy()
    place = (number % picture.width, picture.height - 1)
    red, green, blue = picture.getpixel(place)
    picture.putpixel(place, (red ^ 1, green, blue))
    return picture


async def test_the_same_picture_again_is_found_computed_and_answered_alike(
    client: httpx.AsyncClient, start: int
) -> None:
    body = asking(draw(SEED).part(), COLOUR)
    first, again = await answer_to(client, body), await answer_to(client, body)
    assert num_cached(first) <= start
    assert num_cached(again) >= start + NUM_TOKENS
    assert again["choices"] == first["choices"]


async def test_another_question_about_a_picture_finds_it_computed(client: httpx.AsyncClient, start: int) -> None:
    drawing = draw_clearly(SEED)
    await answer_to(client, asking(drawing.part(), text_part("What shape?")))
    answer = await answer_to(client, asking(drawing.part(), COLOUR))
    assert num_cached(answer) >= start + NUM_TOKENS
    assert said_in(answer) == drawing.colour


async def test_a_later_turn_finds_the_turns_before_it_computed(client: httpx.AsyncClient) -> None:
    drawing = draw_clearly(SEED + 1)
    first = await answer_to(client, asking(drawing.part(), text_part("What shape?")))
    said = {"role": "assistant", "content": said_in(first)}
    second = await answer_to(client, conversation(user(drawing.part(), text_part("What shape?")), said, user(COLOUR)))
    assert said_in(first) == drawing.shape
    assert said_in(second) == drawing.colour
    assert num_cached(second) >= first["usage"]["prompt_tokens"]


async def test_pictures_that_differ_in_one_pixel_share_nothing(client: httpx.AsyncClient, start: int) -> None:
    for number in range(NUM_PAIRS):
        drawing = draw(SEED + 100 + number)
        for picture in (drawing.picture, with_another_pixel(drawing, number)):
            answer = await answer_to(client, asking(pictures_part(picture), COLOUR))
            assert num_cached(answer) <= start, f"pair {number}"


async def test_pictures_of_one_size_share_nothing_and_keep_their_answers(client: httpx.AsyncClient, start: int) -> None:
    bodies = [asking(draw(SEED + 200 + number, size=(64, 64)).part(), COLOUR) for number in range(NUM_PAIRS)]
    first = [await answer_to(client, body) for body in bodies]
    again = [await answer_to(client, body) for body in bodies]
    assert max(map(num_cached, first)) <= start
    assert min(map(num_cached, again)) >= start + NUM_TOKENS
    assert [answer["choices"] for answer in again] == [answer["choices"] for answer in first]


async def test_files_that_differ_share_nothing_though_the_picture_is_the_same(
    client: httpx.AsyncClient, start: int
) -> None:
    drawing = draw_clearly(SEED + 2, "red")
    parts = [drawing.part(format) for format in ("PNG", "JPEG", "WEBP", "BMP")]
    parts.append(drawing.part("PNG", detail="low"))
    answers = [await answer_to(client, asking(part, COLOUR)) for part in parts]
    assert max(map(num_cached, answers)) <= start
    assert {said_in(answer) for answer in answers} == {"red"}


async def test_a_text_before_pictures_is_shared_and_they_are_not(client: httpx.AsyncClient, start: int) -> None:
    text = text_part(
        "Hello. Please look at the image. What is the color of the shape in the image? Answer in one word."
    )
    num_text = len((await client.post("/v1/tokenize", json={"model": MODEL, "text": text["text"]})).json()["tokens"])
    await answer_to(client, asking(text, draw(SEED + 300).part()))
    for number in range(1, 10):
        answer = await answer_to(client, asking(text, draw(SEED + 300 + number).part()))
        assert start < num_cached(answer) <= start + num_text


async def test_touching_pictures_and_single_ones_take_turns_in_a_warm_cache(
    client: httpx.AsyncClient, start: int
) -> None:
    for number in range(NUM_PAIRS):
        first, second = draw_clearly(SEED + 2 * number), draw_clearly(SEED + 2 * number + 1)
        pair = await answer_to(client, asking(first.part(), second.part(), COLOURS))
        alone = await answer_to(client, asking(first.part(), COLOUR))
        again = await answer_to(client, asking(first.part(), second.part(), COLOURS))
        swapped = await answer_to(client, asking(second.part(), first.part(), COLOURS))
        assert pair["usage"]["prompt_tokens"] == alone["usage"]["prompt_tokens"] + NUM_TOKENS
        assert said_in(alone) == first.colour
        assert said_in(pair) == said_in(again) == f"{first.colour}, {second.colour}"
        assert said_in(swapped) == f"{second.colour}, {first.colour}"
        assert num_cached(alone) == start + NUM_TOKENS
        assert num_cached(again) >= start + 2 * NUM_TOKENS
