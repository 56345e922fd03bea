"""Pictures from another server that may be asked for them, and what else that server does."""

from collections.abc import AsyncIterator, Iterator

import httpx
import pytest
import pytest_asyncio

from support.bad_image_servers import make_trouble
from support.canary import Canary, canary
from support.checks import check_error
from support.local_urls import OWN_MACHINE, PRIVATE
from support.pictures import image_part, saved, text_part
from support.processes import Server

from .tiny_vlm import (
    CHAT,
    COLOUR,
    COLOURS,
    FORMATS,
    NUM_TOKENS,
    answer_to,
    asking,
    connected,
    draw_clearly,
    num_cached,
    repeating,
    said,
    seeing,
)
from .wire import Wire

pytestmark = pytest.mark.asyncio(loop_scope="module")

LONG = asking(text_part("Tell me a story."), max_tokens=100, ignore_eos=True)
MAX_IMAGE_SIZE = 10 * 2**20
BUFFERS = 20 * 2**20
"""What the kernel may take from a sender though nobody reads it."""
REASONS = {
    "trickle": "The image was not there within 2 seconds.",
    "silent": "The image was not there within 2 seconds.",
    "endless": "The image's file is too large",
    "huge": "The image's file is too large",
    "short": "The image cannot be fetched",
    "redirects": "The image is behind more than 3 redirects.",
}


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def bird() -> AsyncIterator[Canary]:
    """From which no server may fetch anything; what it has is a picture."""
    async with canary() as bird:
        bird.serve("/", saved(draw_clearly(1).picture, "PNG"))
        yield bird


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def front() -> AsyncIterator[Canary]:
    """From which one of the servers may fetch."""
    async with canary() as front:
        yield front


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, front: Canary) -> Iterator[Server]:
    flags = ("--deterministic", "--max-fetch-time", "2", "--allow-image-hosts", front.place)
    with seeing(*flags, folder=tmp_path_factory.mktemp("fetching")) as server:
        yield server


@pytest_asyncio.fixture(loop_scope="module")
async def client(server: Server) -> AsyncIterator[httpx.AsyncClient]:
    async with connected(server) as client:
        yield client


async def refused(client: httpx.AsyncClient, url: str) -> Wire:
    """The error for an image at this URL."""
    return check_error(await client.post(CHAT, json=asking(image_part(url), COLOUR)), 400, "messages")


@pytest.mark.parametrize("format", FORMATS)
async def test_a_picture_that_is_elsewhere_is_seen(client: httpx.AsyncClient, front: Canary, format: str) -> None:
    drawing = draw_clearly(3)
    url = front.serve(f"/{format}", saved(drawing.picture, format), content_type="text/plain")
    assert await said(client, asking(image_part(url), COLOUR)) == drawing.colour


async def test_a_picture_is_fetched_once_for_a_request_and_anew_for_the_next(
    client: httpx.AsyncClient, front: Canary
) -> None:
    url = front.serve("/changing", saved(draw_clearly(4, "red").picture, "PNG"))
    before = front.num_hits
    assert await said(client, asking(image_part(url), image_part(url), COLOURS)) == "red, red"
    assert front.num_hits == before + 1
    front.serve("/changing", saved(draw_clearly(4, "blue").picture, "PNG"))
    assert await said(client, asking(image_part(url), image_part(url), COLOURS)) == "blue, blue"


async def test_the_same_file_from_a_url_and_from_the_request_is_the_same_picture(
    client: httpx.AsyncClient, front: Canary
) -> None:
    drawing, text = draw_clearly(5), text_part("Look at the image. " * 40)
    url = front.serve("/same", saved(drawing.picture, "PNG"))
    fetched = await answer_to(client, asking(image_part(url), text, COLOUR, logprobs=True))
    sent = await answer_to(client, asking(drawing.part(), text, COLOUR, logprobs=True))
    assert num_cached(sent) > NUM_TOKENS
    assert sent["choices"] == fetched["choices"]


async def test_no_redirect_to_another_place_on_this_machine_is_followed(
    client: httpx.AsyncClient, front: Canary, bird: Canary
) -> None:
    for number, spelling in enumerate(OWN_MACHINE):
        target = spelling.format(bird.port).strip().replace("\x00", "")
        url = front.redirect(f"/{number}", target, "302 Found" if number % 2 else "307 Temporary Redirect")
        await refused(client, url)
    for number, target in enumerate(PRIVATE[:-1]):
        await refused(client, front.redirect(f"/private/{number}", target))
    assert bird.num_hits == 0


async def test_an_allowed_place_is_reached_by_no_other_name(client: httpx.AsyncClient, front: Canary) -> None:
    front.serve("/", saved(draw_clearly(6).picture, "PNG"))
    before = front.num_hits
    for host in ("localhost", "[::1]", "127.0.0.2", "127.1", "[::ffff:127.0.0.1]", "2130706433", "0.0.0.0"):
        assert (await refused(client, f"http://{host}:{front.port}/"))["code"] == "image_url_refused"
    assert front.num_hits == before


@pytest.mark.parametrize("body", [b"", b"<html>not found</html>", b"\x89PNG\r\n\x1a\n", bytes(1000)], ids=len)
async def test_a_fetched_file_that_is_no_picture_is_refused(
    client: httpx.AsyncClient, front: Canary, body: bytes
) -> None:
    assert (await refused(client, front.serve("/none", body, content_type="image/png")))["code"] == "invalid_image"


async def test_a_picture_that_is_not_there_is_refused(client: httpx.AsyncClient, front: Canary) -> None:
    error = await refused(client, front.serve("/404", b"secret", status="404 Not Found"))
    assert error["code"] == "image_url_refused"
    assert "secret" not in error["message"]


@pytest.mark.parametrize("trouble", REASONS)
async def test_a_server_that_is_trouble_is_left_while_texts_go_on(
    server: Server, client: httpx.AsyncClient, front: Canary, trouble: str
) -> None:
    make_trouble(front)
    processes = server.children()
    expected = await said(client, LONG)
    num_sent, num_hits = front.num_sent, front.num_hits
    async with repeating(client, LONG) as texts:
        error = await refused(client, front.url(f"/{trouble}"))
        num_beside = len(texts)
    assert error["message"].startswith(REASONS[trouble])
    assert front.num_sent - num_sent < MAX_IMAGE_SIZE + BUFFERS
    assert front.num_hits - num_hits <= 1 + 3
    assert set(texts) == {expected}
    assert server.children() == processes
    assert num_beside or trouble not in ("trickle", "silent")
