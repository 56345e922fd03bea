"""What clients do to a server: each scenario makes its requests, sends them, and returns what they took.

Every scenario has `request`, what all its requests have in common; `num_slots`, the sequences that are computed at a
time; `work`, for estimates; and `run`, whose last phase is the one to compare. `run` raises OSError, LookupError, and
ValueError for a broken answer.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, replace

from benchmarks.completion_stream import Completion
from benchmarks.http_client import Server
from benchmarks.load import LoadConfig, first_model, make_load_prompts, run_load, send
from benchmarks.load_result import LoadResult, Sent
from benchmarks.prompts import find_token_counter, make_text


@dataclass(frozen=True, slots=True)
class Target:
    """A running server, and how much of a scenario it shall get. takes_n: whether it answers `n` choices."""

    url: str
    num_streams: int
    seed: int
    takes_n: bool = True


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of a scenario that has figures of its own."""

    name: str
    load: LoadResult


@dataclass(frozen=True, slots=True)
class Work:
    """Tokens to compute where nothing is reused."""

    prompt_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class SteadyStreams:
    """Each stream sends its next request when its last one has ended."""

    request: LoadConfig
    requests_per_stream: int = 2

    def config(self, num_streams: int, seed: int) -> LoadConfig:
        num_requests = self.requests_per_stream * num_streams
        return replace(self.request, num_streams=num_streams, num_requests=num_requests, seed=seed)

    def num_slots(self, num_streams: int) -> int:
        return num_streams

    def work(self, num_streams: int) -> Work:
        num_requests = self.requests_per_stream * num_streams
        prompt_tokens = self.request.shared_prefix_tokens + self.request.prompt_tokens
        return Work(num_requests * prompt_tokens, num_requests * self.request.max_tokens)

    async def run(self, target: Target) -> list[Phase]:
        config = replace(self.config(target.num_streams, target.seed), url=target.url)
        return [Phase("", await run_load(config))]


@dataclass(frozen=True, slots=True)
class Samples:
    """Prompts, one after the other, each with as many choices as there are streams; a server that does not take `n`
    gets the same prompt that many times at once."""

    request: LoadConfig
    num_prompts: int = 2

    def num_slots(self, num_streams: int) -> int:
        return num_streams

    def work(self, num_streams: int) -> Work:
        num_choices = self.num_prompts * num_streams
        return Work(num_choices * self.request.prompt_tokens, num_choices * self.request.max_tokens)

    async def run(self, target: Target) -> list[Phase]:
        config = replace(self.request, url=target.url, seed=target.seed)
        num_choices = target.num_streams
        if target.takes_n:
            config = replace(config, num_requests=self.num_prompts, extra={**config.extra, "n": num_choices})
        else:
            num_requests = self.num_prompts * num_choices
            config = replace(config, num_streams=num_choices, num_requests=num_requests, repeats=num_choices)
        return [Phase("", await run_load(config))]


@dataclass(frozen=True, slots=True)
class Conversations:
    """Users who all speak at the same time, turn by turn; each turn sends the whole history again."""

    request: LoadConfig
    num_turns: int
    system_tokens: int

    def num_slots(self, num_streams: int) -> int:
        return num_streams

    def work(self, num_streams: int) -> Work:
        turn = self.request.prompt_tokens + self.request.max_tokens
        histories = sum(self.system_tokens + number * turn for number in range(self.num_turns))
        prompt_tokens = num_streams * (histories + self.num_turns * self.request.prompt_tokens)
        return Work(prompt_tokens, num_streams * self.num_turns * self.request.max_tokens)

    async def run(self, target: Target) -> list[Phase]:
        num_users = target.num_streams
        config = replace(self.request, url=target.url, seed=target.seed, num_streams=num_users)
        server = Server.from_url(target.url)
        model = await first_model(server)
        questions = iter(
            await make_load_prompts(replace(config, num_requests=num_users * self.num_turns), server, model)
        )
        system = await self._system_message(server, model, target.seed)
        histories = [[system] for _ in range(num_users)]
        phases = []
        for turn in range(1, self.num_turns + 1):
            for history in histories:
                history.append({"role": "user", "content": next(questions)})
            sent = await send(config, server, [config.encode(model, {"messages": history}) for history in histories])
            for history, outcome in zip(histories, sent.outcomes, strict=True):
                history.append(_assistant_message(outcome))
            phases.append(Phase(f"turn {turn}", sent.summarize(model, num_users)))
        return phases

    async def _system_message(self, server: Server, model: str, seed: int) -> dict[str, str]:
        count = await find_token_counter(server, model, add_special_tokens=False)
        return {"role": "system", "content": await make_text(random.Random(seed), self.system_tokens, count)}


@dataclass(frozen=True, slots=True)
class LongPromptBeside:
    """Streams of short prompts; when all of them are being answered, one long prompt comes."""

    request: LoadConfig
    long_prompt_tokens: int
    long_max_tokens: int = 8

    def num_slots(self, num_streams: int) -> int:
        return num_streams + 1

    def work(self, num_streams: int) -> Work:
        short = Work(num_streams * self.request.prompt_tokens, num_streams * self.request.max_tokens)
        return Work(short.prompt_tokens + self.long_prompt_tokens, short.output_tokens + self.long_max_tokens)

    async def run(self, target: Target) -> list[Phase]:
        num_streams = target.num_streams
        short = replace(
            self.request, url=target.url, seed=target.seed, num_streams=num_streams, num_requests=num_streams
        )
        long = replace(
            short,
            seed=target.seed + 1,
            num_streams=1,
            num_requests=1,
            prompt_tokens=self.long_prompt_tokens,
            max_tokens=self.long_max_tokens,
        )
        server = Server.from_url(target.url)
        model = await first_model(server)
        short_bodies, long_bodies = [
            [config.request_body(model, prompt) for prompt in await make_load_prompts(config, server, model)]
            for config in (short, long)
        ]
        begun = asyncio.Semaphore(0)
        streams = asyncio.create_task(send(short, server, short_bodies, begun.release))
        await _until_begun(streams, begun, num_streams)
        long_sent = await send(long, server, long_bodies)
        return [
            Phase("long prompt", long_sent.summarize(model, 1)),
            Phase("short streams", (await streams).summarize(model, num_streams)),
        ]


Scenario = SteadyStreams | Samples | Conversations | LongPromptBeside


async def _until_begun(streams: asyncio.Task[Sent], begun: asyncio.Semaphore, num_streams: int) -> None:
    """Until all streams have released the semaphore, or have ended: those that fail never begin."""

    async def acquire_all() -> None:
        for _ in range(num_streams):
            await begun.acquire()

    waiting = asyncio.create_task(acquire_all())
    await asyncio.wait({streams, waiting}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()


def _assistant_message(outcome: Completion | str) -> dict[str, str]:
    """What a user sees of an answer: nothing of one that failed."""
    return {"role": "assistant", "content": outcome.text if isinstance(outcome, Completion) else ""}
