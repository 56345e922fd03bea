"""How often a seeded request gives the same answer while other clients send mixed traffic, with and without
`--deterministic`. An answer is its tokens and every bit of their log-probabilities.

python -m benchmarks.repeatability
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.compare import demo_model
from benchmarks.http_client import Server, fetch_json
from benchmarks.peers import PEERS
from benchmarks.processes import ServerCommand, run_until_stopped, running

NUM_REPEATS = 50
NUM_OTHERS = 7
PROMPT = "The history of the bicycle begins in the early nineteenth century, when inventors in Germany and France "
TOPICS = ("rivers", "bread", "the moon", "trains", "glass", "winter", "maps", "bees")


async def measure(model: Path, flags: Sequence[str]) -> None:
    """Print how many of the repeats gave the most frequent answer."""
    arguments = (sys.executable, "-m", "octavo", "serve", str(model), "--port", "{port}", "--ctx", "1024", *flags)
    command = ServerCommand("octavo", arguments, ready_path="/ready")
    async with running(command, PEERS / "logs" / "repeatability.log") as url:
        server = Server.from_url(url, None)
        name = model.name.removesuffix(".gguf")
        others = [asyncio.create_task(_traffic(server, name, random.Random(i))) for i in range(NUM_OTHERS)]
        answers = [await _answer(server, _request(name)) for _ in range(NUM_REPEATS)]
        for task in others:
            task.cancel()
        for task in others:
            with suppress(asyncio.CancelledError):
                await task
    texts, whole = Counter(text for text, _ in answers), Counter(answers)
    mode = " ".join(flags) or "defaults"
    print(
        f"{mode}: {max(whole.values())} of {NUM_REPEATS} alike to the last bit ({len(whole)} different answers), "
        f"{max(texts.values())} of {NUM_REPEATS} with the same text",
        flush=True,
    )


def _request(model: str) -> dict[str, Any]:
    return {"model": model, "prompt": PROMPT, "seed": 42, "temperature": 1.0, "max_tokens": 8, "logprobs": 2}


async def _answer(server: Server, body: dict[str, Any]) -> tuple[str, str]:
    status, answer = await fetch_json(server, "POST", "/v1/completions", body)
    assert status == 200, answer
    choice = answer["choices"][0]
    return choice["text"], repr(choice["logprobs"])


async def _traffic(server: Server, model: str, chance: random.Random) -> None:
    """Prompts of many lengths, some that begin like the repeated one, some scored, some in several samples."""
    while True:
        own = f"Tell me about {chance.choice(TOPICS)}. " * chance.randrange(1, 6)
        prompt = PROMPT * chance.randrange(2) + own
        body = {"model": model, "prompt": prompt, "max_tokens": chance.randrange(1, 12), "n": chance.choice((1, 1, 2))}
        await _answer(server, body | chance.choice(({}, {"echo": True, "logprobs": 1}, {"temperature": 0})))


async def main() -> None:
    model = demo_model()
    for flags in ((), ("--deterministic",)):
        await measure(model, flags)


if __name__ == "__main__":
    run_until_stopped(main())
