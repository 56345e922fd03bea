"""Peak memory of both processes while a long prompt's log-probabilities are answered, beside what they hold when idle.

python -m benchmarks.prompt_memory
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import psutil

from benchmarks.compare import demo_model
from benchmarks.http_client import Server, fetch_json
from benchmarks.peers import PEERS
from benchmarks.processes import ServerCommand, run_until_stopped, running

PROMPT_TOKENS = 4000
CONTEXT_LENGTH = 4096
MIB = 2**20
POLL_INTERVAL = 0.02


async def measure(model: Path) -> None:
    """Print resident memory: idle, after a short request, and the most while the long one is answered."""
    arguments = (sys.executable, "-m", "octavo", "serve", str(model), "--port", "{port}", "--ctx", str(CONTEXT_LENGTH))
    async with running(ServerCommand("octavo", arguments, ready_path="/ready"), PEERS / "logs" / "memory.log") as url:
        server = Server.from_url(url, None)
        _show("idle", _resident())
        name = model.name.removesuffix(".gguf")
        prompt = [(7919 * i) % 40_000 + 100 for i in range(PROMPT_TOKENS)]
        body = {"model": name, "prompt": prompt, "max_tokens": 0}
        # The cache's pages of these 4,000 tokens are touched by any request; they are not the log-probabilities' share.
        await _ask(server, {**body, "max_tokens": 1})
        _show("after the prompt alone", _resident())
        asked = asyncio.create_task(_ask(server, {**body, "echo": True, "logprobs": 20}))
        most = _resident()
        while not asked.done():
            await asyncio.wait({asked}, timeout=POLL_INTERVAL)
            most = [max(pair) for pair in zip(most, _resident(), strict=True)]
        entries = len(asked.result()["choices"][0]["logprobs"]["tokens"])
        _show(f"most while {entries} entries of 20 were answered", most)
        print(f"the whole matrix would be {PROMPT_TOKENS * 49152 * 4 / MIB:.0f} MiB")


async def _ask(server: Server, body: dict[str, object]) -> Any:
    status, answer = await fetch_json(server, "POST", "/v1/completions", body)
    assert status == 200, answer
    return answer


def _resident() -> list[int]:
    """Bytes of the API process and of the engine's."""
    [server] = [each for each in psutil.Process().children() if "serve" in each.cmdline()]
    return [process.memory_info().rss for process in (server, *server.children())]


def _show(when: str, resident: list[int]) -> None:
    api, engine = (f"{value / MIB:.0f}" for value in resident)
    print(f"{when}: API {api} MiB, engine {engine} MiB")


if __name__ == "__main__":
    run_until_stopped(measure(demo_model()))
