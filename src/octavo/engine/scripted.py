"""A fake engine with switches, for trying a client or testing what surrounds an engine.

It answers every prompt with the text of its spec. A prompt that holds a line

    @script {"text": "…", "delay": 0.1, "raise_at": 3, "hang_at": null, "exit_at": null, "piece_bytes": 1}

overrides the named switches for its own request. With ignore_eos the text starts over until max_tokens, and before
min_tokens in any case. A grammar has no say in it. Where log-probabilities are asked for, every token has the
probability CERTAINTY, and the rest is shared by the NUM_OTHERS tokens of the lowest other ids.
"""

import asyncio
import math
import os
import re
import threading
import time
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from itertools import chain, cycle, islice

import msgspec

from octavo.core.adapters import Adapter
from octavo.core.fair_queue import FairQueue, Owner
from octavo.core.images import Image, ImageTokens
from octavo.core.output import FinishReason, TokenChunk, TokenLogprob
from octavo.core.request import GenerationRequest
from octavo.core.vocabulary import SpecialToken, Vocabulary
from octavo.engine.base import EngineHealth, EngineInfo, EngineState, Fragment
from octavo.engine.specs import ScriptedSpec
from octavo.errors import EngineError, EngineUnavailable, VisionUnsupported

END_TOKEN = 256
START_TOKEN = 257
FIRST_PIECE = 258
SCRIPT_LINE = re.compile(rb"^@script (\{.*\})\s*$", re.MULTILINE)
EXIT_CODE = 70
NEWLINE = 10
CERTAINTY = 0.9
NUM_OTHERS = 20
STEP = 128
"""Tokens of a prompt that are scored at a time."""


class ByteTokenizer:
    """One token a byte; pieces of the engine's own text have tokens of their own, which encoding never uses."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        single_bytes = tuple(bytes([value]) for value in range(256))
        self._vocabulary = Vocabulary(
            pieces=(*single_bytes, b"", b"", *pieces),
            special_tokens=(
                SpecialToken(END_TOKEN, "<|end|>", is_control=True),
                SpecialToken(START_TOKEN, "<|start|>", is_control=True),
            ),
            eog_tokens=frozenset({END_TOKEN}),
            bos_token=START_TOKEN,
            adds_bos=False,
            eos_token=END_TOKEN,
        )

    @property
    def vocabulary(self) -> Vocabulary:
        return self._vocabulary

    async def encode(self, fragments: Sequence[Fragment]) -> tuple[int, ...]:
        parts = ((part,) if isinstance(part, int) else self.encode_text(part) for part in fragments)
        return tuple(chain.from_iterable(parts))

    async def encode_image(self, image: Image) -> ImageTokens:
        raise VisionUnsupported("The scripted engine sees no images.")

    def encode_text(self, text: str) -> Sequence[int]:
        return text.encode()


class FairSlots:
    """Places for so many at a time, which their owners share fairly."""

    def __init__(self, number: int) -> None:
        self._num_free = number
        self._waiting: FairQueue[asyncio.Event] = FairQueue()

    @property
    def num_waiting(self) -> int:
        return len(self._waiting)

    async def acquire(self, owner: Owner) -> None:
        turn = asyncio.Event()
        self._waiting.add(turn, owner)
        self._give_out()
        try:
            await turn.wait()
        except asyncio.CancelledError:
            if turn.is_set():
                self.release(owner)
            else:
                self._waiting.remove(turn, owner)
            raise

    def charge(self, owner: Owner, num_tokens: int) -> None:
        """The owner, who has a place, for what is computed in it."""
        self._waiting.charge(owner, num_tokens)

    def release(self, owner: Owner) -> None:
        self._num_free += 1
        self._waiting.end(owner)
        self._give_out()

    def _give_out(self) -> None:
        while self._num_free and len(self._waiting):
            self._num_free -= 1
            self._waiting.pop().set()


class ScriptedEngine:
    """Implements `HostedEngine` without a model."""

    def __init__(self, spec: ScriptedSpec) -> None:
        self._spec = spec
        pieces = sorted(set(_cut(spec.text, spec.piece_bytes)))
        self._token_of = {piece: FIRST_PIECE + i for i, piece in enumerate(pieces)}
        self._tokenizer = ByteTokenizer(pieces)
        self._slots = FairSlots(spec.num_slots)
        self._running: set[str] = set()
        self._num_hanging = 0
        self._closed = threading.Event()
        self._stopping = asyncio.Event()  # the same, for those who wait on the event loop

    @property
    def info(self) -> EngineInfo:
        return EngineInfo(
            context_length=self._spec.context_length,
            num_slots=self._spec.num_slots,
            chat_template=None,
            fingerprint="fp_scripted",
            description=("engine: scripted",),
        )

    @property
    def tokenizer(self) -> ByteTokenizer:
        return self._tokenizer

    async def generate(self, request: GenerationRequest) -> AsyncGenerator[TokenChunk, None]:
        if self._closed.is_set():
            raise EngineUnavailable("The engine is stopped.")
        arrived = time.perf_counter()
        await self._slots.acquire(request.owner)
        self._running.add(request.id)
        waited = time.perf_counter() - arrived
        try:
            self._slots.charge(request.owner, len(request.prompt_tokens))
            async for chunk in self._perform(self._script_for(request), request, waited):
                self._slots.charge(request.owner, len(chunk.tokens))
                yield chunk
        finally:
            self._running.remove(request.id)
            self._slots.release(request.owner)

    def hold_images(self, images: Sequence[Image]) -> AbstractContextManager[None]:
        return nullcontext()

    async def load_adapter(self, adapter: Adapter) -> None:
        """It says the same with every adapter."""

    async def unload_adapter(self, key: str) -> None:
        pass

    def restore_adapter(self, adapter: Adapter) -> None:
        pass

    @property
    def running(self) -> frozenset[str]:
        return frozenset(self._running)

    def health(self) -> EngineHealth:
        state = EngineState.CLOSED if self._closed.is_set() else EngineState.READY
        return EngineHealth(
            state,
            num_running=len(self._running),
            num_waiting=self._slots.num_waiting,
            batch_size=len(self._running),
            step=min(self._num_hanging, 1),  # there are no steps, but one that hangs is one that does not end
        )

    async def close(self) -> None:
        self._closed.set()
        self._stopping.set()

    def run(self) -> None:
        self._closed.wait()

    def _script_for(self, request: GenerationRequest) -> ScriptedSpec:
        pieces = self._tokenizer.vocabulary.pieces
        line = SCRIPT_LINE.search(b"".join(pieces[token] for token in request.prompt_tokens))
        if line is None:
            return self._spec
        try:
            return msgspec.convert({**msgspec.structs.asdict(self._spec), **msgspec.json.decode(line[1])}, ScriptedSpec)
        except (msgspec.MsgspecError, TypeError) as error:
            raise EngineError(f"The @script line of the prompt cannot be read: {error}") from error

    async def _perform(
        self, script: ScriptedSpec, request: GenerationRequest, waited: float
    ) -> AsyncGenerator[TokenChunk, None]:
        wanted = request.logprobs
        scored = request.prompt_tokens[1:] if wanted.of_prompt else ()
        for start in range(0, len(scored), STEP):
            yield TokenChunk((), prompt_logprobs=_logprobs(scored[start : start + STEP], wanted.num_top))
            await self._pause(0)
        if request.max_tokens == 0:
            yield TokenChunk((), FinishReason.LENGTH)
        for position, token in enumerate(islice(self._tokens(script, request), request.max_tokens)):
            await self._fault(script, position)
            await self._pause(script.delay)
            logprobs = _logprobs((token,), wanted.num_top) if wanted.of_output else ()
            reason = self._finish_reason(request, position, token)
            yield TokenChunk((token,), reason, logprobs, queue_seconds=waited if position == 0 else 0.0)
            if reason is not None:
                return

    def _tokens(self, script: ScriptedSpec, request: GenerationRequest) -> Iterator[int]:
        """The text's, over and over; before min_tokens only those that do not end it."""
        tokens: list[int] = []
        for piece in _cut(script.text, script.piece_bytes):
            known = self._token_of.get(piece)
            tokens.extend(piece if known is None else (known,))
        once = [*tokens, END_TOKEN]
        is_harmless = [not self._ends(request, token) for token in once]
        position = 0
        for token, may_come in cycle(zip(once, is_harmless, strict=True)):
            if may_come or position >= request.min_tokens or not any(is_harmless):
                yield token if may_come or position >= request.min_tokens else NEWLINE
                position += 1

    def _ends(self, request: GenerationRequest, token: int) -> bool:
        return token in request.stop_tokens or (token == END_TOKEN and not request.ignore_eos)

    def _finish_reason(self, request: GenerationRequest, position: int, token: int) -> FinishReason | None:
        if self._ends(request, token):
            return FinishReason.STOP
        return FinishReason.LENGTH if position + 1 == request.max_tokens else None

    async def _fault(self, script: ScriptedSpec, position: int) -> None:
        if position == script.raise_at:
            raise EngineError(f"The script asks for an error at token {position}.")
        if position == script.exit_at:
            os._exit(EXIT_CODE)
        if position == script.hang_at:
            await self._hang()

    async def _hang(self) -> None:
        self._num_hanging += 1
        try:
            await self._stopping.wait()
        finally:
            self._num_hanging -= 1

    async def _pause(self, delay: float) -> None:
        # Also without a delay the loop must turn, as it does while a real engine computes.
        await asyncio.sleep(0)
        if delay > 0:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), delay)
        if self._closed.is_set():
            raise EngineUnavailable("The engine is stopping.")


def load_scripted(spec: ScriptedSpec) -> ScriptedEngine:
    """The engine after its load_delay, or the end of this process where the spec asks for it."""
    time.sleep(spec.load_delay)
    if spec.exit_at is not None and spec.exit_at < 0:
        os._exit(EXIT_CODE)
    return ScriptedEngine(spec)


def _cut(text: str, size: int) -> list[bytes]:
    data = text.encode()
    return [data[start : start + size] for start in range(0, len(data), size)]


def _logprobs(tokens: Sequence[int], num_top: int) -> tuple[TokenLogprob, ...]:
    return tuple(_logprob(token, num_top) for token in tokens)


def _logprob(token: int, num_top: int) -> TokenLogprob:
    others = [(other, math.log((1 - CERTAINTY) / NUM_OTHERS)) for other in range(NUM_OTHERS + 1) if other != token]
    certain = (token, math.log(CERTAINTY))
    return TokenLogprob(*certain, (certain, *others)[:num_top])
