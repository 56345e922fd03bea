"""Networks that delay, cut and swallow what passes, and requests that are nearly HTTP."""

import asyncio
import json
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from enum import Enum
from itertools import product

import httptools
import msgspec
from benchmarks.completion_stream import CompletionError, StreamReader
from benchmarks.http_client import Connection, Server

from probes.answer import SECONDS, Place, exchange
from probes.bad_network import FAULTS, BadNetwork, End, Fault, Side
from probes.cases import CHAT, COMPLETIONS
from probes.counts import Counts
from probes.gauges import num_running
from probes.groups.connections import all_of
from probes.http_fuzz import http_fuzz
from probes.probe import Attack, Control, Group
from probes.target import MODEL, Target

SLOW = ("--max-receive-time", "2")
UNREAD = ("--max-unread-time", "2")
NUM_TOKENS = 150
NUM_TOP = 20
"""With all log-probabilities an answer is longer than what kernels and the server keep of it for a silent client."""
SCRIPT = '@script {"text": "The fox. The dog. ", "delay": 0.002}\nx'
PATIENCE = 2.0
"""Seconds for which a client waits for the next byte in a network that has fallen silent."""
AT_A_TIME = 16


@dataclass(frozen=True, slots=True)
class Request:
    """Of a completion. A body without log_prompt has not the field."""

    path: str
    is_streamed: bool
    has_log_prompt: bool

    @property
    def name(self) -> str:
        kind = "streamed" if self.is_streamed else "plain"
        return f"{kind} {self.path}{' with log_prompt' if self.has_log_prompt else ''}"

    @property
    def body(self) -> bytes:
        if self.path == CHAT:
            fields = {"messages": [{"role": "user", "content": SCRIPT}], "logprobs": True, "top_logprobs": NUM_TOP}
        else:
            fields = {"prompt": SCRIPT, "logprobs": NUM_TOP}
        fields |= {"log_prompt": True} if self.has_log_prompt else {}
        always = {"model": MODEL, "max_tokens": NUM_TOKENS, "ignore_eos": True, "stream": self.is_streamed}
        return json.dumps({**always, **fields}).encode()


REQUESTS = tuple(Request(*values) for values in product((COMPLETIONS, CHAT), (False, True), (False, True)))


@dataclass(frozen=True, slots=True)
class Whole:
    """An answer that nothing has happened to. size: in bytes, of its body."""

    text: str
    size: int


class Seen(Enum):
    """What a client sees of an answer that came through a bad network."""

    WHOLE = "whole"
    ERROR = "error"
    SHORT = "silent truncation"
    """All signs of an end, [DONE] or JSON that is whole, and another text than the full one."""
    UNMARKED = "unmarked end"
    """HTTP says that all has come, and there is neither [DONE], nor JSON, nor an error."""


class UnmarkedEndError(Exception):
    """See Seen.UNMARKED."""


async def read(place: Place, request: Request, patience: float = SECONDS) -> Whole:
    """An answer that says that it is whole. Raises UnmarkedEndError, and what else a client is told of an error:
    OSError, TimeoutError, CompletionError and httptools.HttpParserError.

    patience: seconds for the next byte.
    """
    loop, reader, body = asyncio.get_running_loop(), StreamReader(time.perf_counter()), b""
    async with asyncio.timeout(patience) as limit:
        with await Connection.open(Server(place.host, place.port)) as connection:
            status = await connection.send("POST", request.path, request.body, is_kept=False)
            if status != 200:
                raise CompletionError(f"status {status}")
            async for data in connection.body():
                limit.reschedule(loop.time() + patience)
                body += data
                if request.is_streamed:
                    reader.push(data)
                if reader.is_done:  # many clients stop here
                    break
    return Whole("".join(reader.texts) if reader.is_done else text_in(body), len(body))


def text_in(body: bytes) -> str:
    """Of a plain answer. Raises UnmarkedEndError."""
    try:
        choice = json.loads(body)["choices"][0]
        text = choice["message"]["content"] if "message" in choice else choice["text"]
    except (ValueError, LookupError, TypeError) as error:
        raise UnmarkedEndError(f"{body[-100:]!r}") from error
    return str(text)


async def look(place: Place, request: Request, whole: Whole, patience: float) -> Seen:
    try:
        answer = await read(place, request, patience)
    except (UnmarkedEndError, msgspec.DecodeError):
        return Seen.UNMARKED
    except (OSError, CompletionError, httptools.HttpParserError):  # TimeoutError is an OSError
        return Seen.ERROR
    return Seen.WHOLE if answer.text == whole.text else Seen.SHORT


@dataclass(frozen=True, slots=True)
class Trial:
    """place: of the fault's end, as a share of the request or of the answer."""

    fault: Fault
    request: Request
    place: float

    def num_bytes(self, whole: Whole) -> int:
        if self.fault.side is Side.REQUEST:
            return int(self.place * len(self.request.body))
        # In a silence more must be left than the server can give away.
        return int(self.place * (whole.size // 4 if self.fault.end is End.SILENCE else whole.size))

    @property
    def patience(self) -> float:
        return PATIENCE if self.fault.end is End.SILENCE else SECONDS

    @property
    def allowed(self) -> tuple[Seen, ...]:
        return (Seen.WHOLE,) if self.fault.end is None else (Seen.WHOLE, Seen.ERROR)


def trials_of(target: Target) -> list[Trial]:
    """The same for the same seed."""
    chance = random.Random(target.seed)
    number = target.sized(4)
    return [Trial(fault, request, chance.random()) for _ in range(number) for fault in FAULTS for request in REQUESTS]


async def bad_networks(target: Target) -> Counts:
    """Answers through a proxy that delays, slices, cuts and swallows them (F21).

    The client sees the full text or an error, never a part that looks like the whole. What has gone without a word
    does not keep its connection and its slot.
    """
    counts, whole = Counts(), {request: await read(target.place, request) for request in REQUESTS}
    counts.figures = {seen.value: 0 for seen in Seen}
    counts.count("one text", len({each.text for each in whole.values()}) == 1)
    trials, made = trials_of(target), list[tuple[Fault, BadNetwork]]()

    async with AsyncExitStack() as networks:

        async def attempt(turn: int) -> None:
            trial = trials[turn]
            network = BadNetwork(target.place, trial.fault, trial.num_bytes(whole[trial.request]), seed=turn)
            made.append((trial.fault, network))
            place = await networks.enter_async_context(network.serving())
            seen = await look(place, trial.request, whole[trial.request], trial.patience)
            counts.figures[seen.value] += 1
            name = f"{trial.fault.name}, {trial.request.name}, at {trial.place:.3f}"
            counts.count(name, seen in trial.allowed, f"the client sees: {seen.value}")

        await all_of(len(trials), attempt, AT_A_TIME)
        await _judge_rest(counts, target, made)
    return counts


async def _judge_rest(counts: Counts, target: Target, made: Sequence[tuple[Fault, BadNetwork]]) -> None:
    """That each fault took place, and what the server keeps of it."""
    for fault in FAULTS:
        counts.count(f"{fault.name} took place", any(network.has_acted for each, network in made if each is fault))

    async def are_all_let_go() -> bool:
        return not any(network.num_held for _, network in made)

    counts.count("silent connections are closed", await _is_soon(are_all_let_go), "the server holds some")
    counts.count("slots come back", await _is_soon(lambda: is_idle(target)), "requests of clients that left still run")


async def is_idle(target: Target) -> bool:
    """Whether at most one request runs, the healthy client's."""
    page = await exchange(target.place, target.place.head("/metrics", method="GET"))
    return num_running(page.body.decode()) <= 1


async def _is_soon(holds: Callable[[], Awaitable[bool]]) -> bool:
    start = time.monotonic()
    while not await holds():
        if time.monotonic() - start > SECONDS:
            return False
        await asyncio.sleep(0.1)
    return True


GROUP = Group(
    "network",
    (
        # The streams are loads of their own: a control that sends no tokens would say nothing of the gaps.
        Attack("bad networks", bad_networks, flags=(*SLOW, *UNREAD), is_compared=False),
        Attack("HTTP fuzz", http_fuzz, flags=SLOW),
    ),
    (
        Control("--max-unread-time", "bad networks", ("--max-unread-time", "100000")),
        Control("--max-receive-time", "bad networks", ("--max-receive-time", "100000")),
    ),
    share=0.25,
)
