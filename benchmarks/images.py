"""What images do to others: the largest gap of text streams beside requests with images, and beside requests with long
prompts, in turns on one server.

python -m benchmarks.images

Without files, the demo model is given a vision encoder of random weights, which takes seconds for a picture.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import io
import random
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image

from benchmarks.compare import demo_model
from benchmarks.contenders import Room, octavo
from benchmarks.http_client import Server, fetch_json
from benchmarks.load import LoadConfig, first_model, run_load
from benchmarks.load_result import LoadResult
from benchmarks.peers import PEERS
from benchmarks.processes import run_until_stopped, running

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from support.tiny_vision import write_slow_tower

ROUNDS = 3
DEMO_WIDTH = 576
"""Numbers that the demo model has for a token."""
NUM_STREAMS = 4
CONTEXT = 2048
MAX_TOKENS = 200
SIDE = 384

Body = Callable[[int], dict[str, object]]
"""The body of the request with a number."""


def picture_url(number: int) -> str:
    """A picture of noise, each another one, so that none is known already."""
    noise = random.Random(number).randbytes(SIDE * SIDE * 3)
    file = io.BytesIO()
    Image.frombytes("RGB", (SIDE, SIDE), noise).save(file, "JPEG")
    return f"data:image/jpeg;base64,{base64.b64encode(file.getvalue()).decode()}"


def with_picture(number: int) -> dict[str, object]:
    picture: dict[str, object] = {"type": "image_url", "image_url": {"url": picture_url(number)}}
    return _chat([picture, {"type": "text", "text": "What colour?"}])


def with_long_text(number: int) -> dict[str, object]:
    words = random.Random(number).choices("abcdefghijklmnopqrstuvwxyz", k=CONTEXT // 2)
    return _chat([{"type": "text", "text": " ".join(words)[: CONTEXT // 2]}])


def _chat(content: list[dict[str, object]]) -> dict[str, object]:
    return {"messages": [{"role": "user", "content": content}], "max_tokens": 1}


async def disturb(server: Server, model: str, load: asyncio.Task[LoadResult], body: Body, first: int) -> list[float]:
    """Send requests one after the other as long as the load runs. Returns what each took, in seconds."""
    seconds: list[float] = []
    while not load.done():
        started = time.perf_counter()
        content = {"model": model, **body(first + len(seconds))}
        status, answer = await fetch_json(server, "POST", "/v1/chat/completions", content)
        if status != 200:
            sys.exit(f"a request was answered with {status}: {answer}")
        seconds.append(time.perf_counter() - started)
    return seconds


async def measure(url: str) -> None:
    """Print the largest gaps alone, beside images and beside long texts."""
    server = Server.from_url(url, None)
    model = await first_model(server)
    quiet = LoadConfig(
        url=url, num_streams=NUM_STREAMS, num_requests=NUM_STREAMS, prompt_tokens=64, max_tokens=MAX_TOKENS,
        ignore_eos=True,
    )  # fmt: skip
    for number in range(ROUNDS):
        for name, body in (("alone", None), ("images", with_picture), ("long texts", with_long_text)):
            load = asyncio.create_task(run_load(replace(quiet, seed=number)))
            seconds = await disturb(server, model, load, body, 10_000 * number) if body is not None else []
            result = await load
            if result.errors:
                sys.exit(f"requests failed: {result.errors}")
            beside = f", {len(seconds)} requests of {statistics.median(seconds):.2f} s" if seconds else ""
            print(f"{name}: largest gap {result.largest_gap_ms:.0f} ms{beside}", flush=True)


async def main(model: Path, mmproj: Path) -> None:
    log = PEERS / "logs" / "images.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    flags = ("--ctx", str(CONTEXT), "--mmproj", str(mmproj))
    async with running(octavo(model, flags).command(Room(NUM_STREAMS + 1, CONTEXT)), log) as url:
        await measure(url)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.images", description=__doc__)
    parser.add_argument("--model", type=Path, help="a .gguf file (default: the model of the demo extra)")
    parser.add_argument("--mmproj", type=Path, help="the .gguf file with which it sees (default: random weights)")
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        if options.mmproj is None:
            options.mmproj = Path(folder) / "mmproj.gguf"
            write_slow_tower(options.mmproj, DEMO_WIDTH)
        run_until_stopped(main(options.model or demo_model(), options.mmproj))
