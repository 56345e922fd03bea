"""Pictures by way of the clients that people have, and of `octavo chat`."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
import pytest_asyncio
from octoai.client import OctoAI
from octoai.environment import OctoAIEnvironment
from octoai.text_gen import (
    ChatMessage,
    ChatMessageContentItem_ImageUrl,
    ChatMessageContentItem_Text,
    ImageUrl,
)

from support.canary import Canary, canary
from support.pictures import data_url, saved
from support.processes import SECONDS, Server, run_octavo

from .tiny_vlm import COLOUR, FORMATS, MODEL, Drawing, draw_clearly, seeing

in_loop_of_module = pytest.mark.asyncio(loop_scope="module")

DRAWING = draw_clearly(8)
FILE = saved(DRAWING.picture, "PNG")
OPTIONS: dict[str, Any] = {"model": MODEL, "max_tokens": 16, "temperature": 0}
MESSAGES: Any = [{"role": "user", "content": [DRAWING.part(detail="high"), COLOUR]}]


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def site() -> AsyncIterator[Canary]:
    """A web server with pictures."""
    async with canary() as site:
        yield site


@pytest.fixture(scope="module")
def server(site: Canary, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with seeing("--allow-image-hosts", site.place, folder=tmp_path_factory.mktemp("seeing")) as server:
        yield server


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def open_ai(server: Server) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0) as client:
        yield client


@pytest.fixture
def octo_ai(server: Server) -> Iterator[OctoAI]:
    environment = OctoAIEnvironment(default=server.url, image_gen=server.url, text_gen=server.url)
    with httpx.Client(timeout=SECONDS) as http:
        yield OctoAI(environment=environment, api_key="any", httpx_client=http)


def octo_messages() -> list[ChatMessage]:
    picture = ChatMessageContentItem_ImageUrl(image_url=ImageUrl(url=data_url(FILE), detail="auto"))
    return [ChatMessage(role="user", content=[picture, ChatMessageContentItem_Text(text=COLOUR["text"])])]


async def chat(server: Server, folder: Path, *arguments: str, text: str = COLOUR["text"]) -> str:
    """What `octavo chat` prints; the web server answers meanwhile."""
    command = ("chat", text, "--url", server.url, "--temperature", "0", *arguments)
    done = await asyncio.to_thread(run_octavo, *command, folder=folder)
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode()


def test_openai_shows_a_picture(open_ai: openai.OpenAI) -> None:
    answer = open_ai.chat.completions.create(**OPTIONS, messages=MESSAGES)
    assert answer.choices[0].message.content == DRAWING.colour
    assert answer.usage is not None
    assert answer.usage.prompt_tokens == 29


def test_openai_streams_what_is_said_of_a_picture(open_ai: openai.OpenAI) -> None:
    chunks = open_ai.chat.completions.create(**OPTIONS, messages=MESSAGES, stream=True)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == DRAWING.colour


def test_openai_raises_bad_request_for_a_broken_picture(open_ai: openai.OpenAI) -> None:
    part = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    messages: Any = [{"role": "user", "content": [part, COLOUR]}]
    with pytest.raises(openai.BadRequestError) as raised:
        open_ai.chat.completions.create(**OPTIONS, messages=messages)
    assert (raised.value.code, raised.value.param) == ("invalid_image", "messages")


def test_octoai_shows_a_picture(octo_ai: OctoAI) -> None:
    answer = octo_ai.text_gen.create_chat_completion(**OPTIONS, messages=octo_messages())
    assert answer.choices[0].message.content == DRAWING.colour


def test_octoai_streams_what_is_said_of_a_picture(octo_ai: OctoAI) -> None:
    chunks = octo_ai.text_gen.create_chat_completion_stream(**OPTIONS, messages=octo_messages())
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == DRAWING.colour


@pytest.mark.parametrize("format", FORMATS)
@in_loop_of_module
async def test_octavo_chat_shows_a_file(server: Server, tmp_path: Path, format: str) -> None:
    drawing: Drawing = draw_clearly(9)
    (tmp_path / "a picture").write_bytes(saved(drawing.picture, format))
    assert await chat(server, tmp_path, "--image", "a picture") == drawing.colour


@in_loop_of_module
async def test_octavo_chat_shows_what_is_at_a_url(server: Server, site: Canary, tmp_path: Path) -> None:
    url = site.serve("/picture.png", FILE)
    assert await chat(server, tmp_path, "--image", url) == DRAWING.colour
    assert site.num_hits == 1


@in_loop_of_module
async def test_octavo_chat_shows_several_pictures_in_order(server: Server, site: Canary, tmp_path: Path) -> None:
    (tmp_path / "red.png").write_bytes(saved(draw_clearly(10, "red").picture, "PNG"))
    url = site.serve("/blue.jpg", saved(draw_clearly(10, "blue").picture, "JPEG"))
    said = await chat(server, tmp_path, "--image", "red.png", "--image", url, text="What colours?")
    assert said == "red, blue"
