"""The tiny model that sees, its server, fresh pictures for it, and what the tests ask of it."""

import asyncio
import importlib.util
import random
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from PIL import Image as Pillow

from support.pictures import data_url, image_part, saved, text_part
from support.processes import SECONDS, Server, serving
from support.shared_models import shared_model

from .wire import Wire, events_of

FOLDER = shared_model("tiny-vlm")
MODEL_FILE = FOLDER / "tiny-vlm-f16.gguf"
MODEL = MODEL_FILE.stem
CHAT = "/v1/chat/completions"
FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP")
NUM_TOKENS = 16
"""Of every picture."""
NO_IMAGE = "no image"
"""What the model says of a picture that it was not shown."""
COLOUR = text_part("What colour?")
COLOURS = text_part("What colours?")


def _synth() -> Any:
    spec = importlib.util.spec_from_file_location("tiny_vlm_synth", FOLDER / "synth.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SYNTH = _synth()
COLOUR_NAMES: tuple[str, ...] = tuple(SYNTH.COLOURS)


@dataclass(frozen=True, slots=True)
class Drawing:
    """A picture of one plain shape on a plain background."""

    picture: Pillow.Image
    colour: str
    shape: str

    def part(self, format: str = "PNG", **fields: Any) -> Wire:
        """Of a message, with the picture as a file of this format."""
        return image_part(data_url(saved(self.picture, format), f"image/{format.lower()}"), **fields)


def draw(seed: int, **wishes: Any) -> Drawing:
    """A picture as the model was trained with. wishes: arguments of the fixture's `draw`."""
    picture, said = SYNTH.draw(random.Random(seed), **wishes)
    return Drawing(picture, said["colour"], said["shape"])


def draw_clearly(seed: int, colour: str | None = None) -> Drawing:
    """One that the model has no trouble with: a large shape on white."""
    chosen = colour or random.Random(seed).choice(COLOUR_NAMES)
    return draw(seed, colour=chosen, shape="circle", size=(96, 96), back="white")


@contextmanager
def seeing(*arguments: str, folder: Path) -> Iterator[Server]:
    """`octavo serve` with the model, ready. One thread: more wait for each other where processors are busy."""
    mmproj = FOLDER / "mmproj-tiny-vlm-f16.gguf"
    command = (str(MODEL_FILE), "--mmproj", str(mmproj), "--threads", "1", *arguments)
    with serving(*command, engine="llama", folder=folder) as server:
        yield server.wait_ready()


@asynccontextmanager
async def connected(server: Server) -> AsyncIterator[httpx.AsyncClient]:
    """With a connection for every request that a test sends at a time."""
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=server.url, timeout=SECONDS, limits=limits, trust_env=False) as client:
        yield client


def user(*parts: Wire) -> Wire:
    return {"role": "user", "content": list(parts)}


def asking(*parts: Wire, **fields: Any) -> Wire:
    """A request of one message."""
    return conversation(user(*parts), **fields)


def conversation(*messages: Wire, **fields: Any) -> Wire:
    return {"model": MODEL, "messages": list(messages), "temperature": 0, "max_tokens": 32, **fields}


async def answer_to(client: httpx.AsyncClient, body: Wire) -> Wire:
    response = await client.post(CHAT, json=body)
    assert response.status_code == 200, response.text
    answer = response.json()
    assert isinstance(answer, dict)
    return answer


async def said(client: httpx.AsyncClient, body: Wire, *, is_streamed: bool = False) -> str:
    """The text of the first choice."""
    if not is_streamed:
        return said_in(await answer_to(client, body))
    response = await client.post(CHAT, json=body | {"stream": True})
    assert response.status_code == 200, response.text
    return "".join(event["choices"][0]["delta"].get("content") or "" for event in events_of(response.text))


def said_in(answer: Wire) -> str:
    return str(answer["choices"][0]["message"]["content"])


def num_cached(answer: Wire) -> int:
    return int(answer["usage"]["prompt_tokens_details"]["cached_tokens"])


async def answers_to(client: httpx.AsyncClient, bodies: Iterable[Wire]) -> list[str]:
    """The texts of the answers, in order; eight are asked for at a time, every other one as a stream."""
    turns = asyncio.Semaphore(8)

    async def ask(number: int, body: Wire) -> str:
        async with turns:
            return await said(client, body, is_streamed=number % 2 == 1)

    return await asyncio.gather(*(ask(number, body) for number, body in enumerate(bodies)))


@asynccontextmanager
async def repeating(client: httpx.AsyncClient, body: Wire) -> AsyncIterator[list[str]]:
    """Stream a request's answer again and again meanwhile. Gives the texts so far, each of them whole."""
    texts: list[str] = []
    is_over = False

    async def repeat() -> None:
        while not is_over:
            texts.append(await said(client, body, is_streamed=True))

    task = asyncio.create_task(repeat())
    try:
        yield texts
    finally:
        is_over = True
        await task
