"""Servers that may not fetch pictures from here: whatever the URL, they do not even connect."""

from collections.abc import AsyncIterator, Iterator

import httpx
import pytest
import pytest_asyncio

from support.canary import Canary, canary
from support.checks import check_error
from support.local_urls import OWN_MACHINE, PRIVATE
from support.pictures import image_part, saved, text_part
from support.processes import Server

from .tiny_vlm import (
    CHAT,
    COLOUR,
    answer_to,
    asking,
    connected,
    conversation,
    draw_clearly,
    said,
    seeing,
    user,
)
from .wire import Wire

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def bird() -> AsyncIterator[Canary]:
    """From which no server may fetch anything; what it has is a picture."""
    async with canary() as bird:
        bird.serve("/", saved(draw_clearly(1).picture, "PNG"))
        yield bird


@pytest.fixture(
    scope="module", params=[(), ("example.com", "*", "*:{}", "*.localhost:{}")], ids=["no hosts", "other hosts"]
)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, bird: Canary) -> Iterator[Server]:
    flags = [text for host in request.param for text in ("--allow-image-hosts", host.format(bird.port))]
    with seeing(*flags, folder=tmp_path_factory.mktemp("refusing")) as server:
        yield server


@pytest_asyncio.fixture(loop_scope="module")
async def client(server: Server) -> AsyncIterator[httpx.AsyncClient]:
    async with connected(server) as client:
        yield client


async def refused(client: httpx.AsyncClient, url: str) -> Wire:
    """The error for an image at this URL."""
    return check_error(await client.post(CHAT, json=asking(image_part(url), COLOUR)), 400, "messages")


async def test_this_machine_is_reached_by_no_spelling(client: httpx.AsyncClient, bird: Canary) -> None:
    for spelling in OWN_MACHINE:
        error = await refused(client, spelling.format(bird.port))
        assert error["code"] == "image_url_refused", spelling
    assert bird.num_hits == 0


@pytest.mark.parametrize("url", PRIVATE)
async def test_no_private_address_and_no_file_is_reached(client: httpx.AsyncClient, url: str) -> None:
    assert (await refused(client, url))["code"] == "image_url_refused"


async def test_a_link_in_a_text_is_not_fetched(client: httpx.AsyncClient, bird: Canary) -> None:
    link = text_part(f"![picture]({bird.url()}) <img src='{bird.url()}'> {bird.url()}")
    system = {"role": "system", "content": link["text"]}
    answer = await answer_to(client, conversation(system, user(link, COLOUR), max_tokens=4))
    assert answer["usage"]["prompt_tokens"] > 13
    assert bird.num_hits == 0


async def test_a_picture_in_the_request_is_seen(client: httpx.AsyncClient) -> None:
    assert await said(client, asking(draw_clearly(2).part(), COLOUR)) == draw_clearly(2).colour
