"""Finds the work that ends the engine's process, and keeps it out."""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from hashlib import blake2b
from time import monotonic

import msgspec

from octavo.core.images import Image
from octavo.core.request import GenerationRequest
from octavo.engine.base import Fragment
from octavo.engine.worker.suspects import Suspects
from octavo.errors import RequestQuarantined

Key = str | int
"""A request's id, or a call's number."""
Work = GenerationRequest | Image | tuple[Fragment, ...]
"""To generate, to encode an image, to encode a text."""

REFUSAL = "The engine's process ended twice while it worked on this request, so it is not tried again for an hour."

log = logging.getLogger("octavo.worker")

_encode = msgspec.msgpack.Encoder(order="deterministic").encode


class Quarantine:
    """Knows what a child works on. What was in its hands when it died is computed again only by turns.

    While nothing is suspect, nothing is digested.
    """

    def __init__(self) -> None:
        self._suspects = Suspects()
        self._works: dict[Key, Work] = {}
        self._at_step: Mapping[Key, Work] = {}
        self._turns: dict[Key, str] = {}  # digests of the suspects that are computed: all the same
        self._change = asyncio.Event()
        self._num_found = 0

    @property
    def num_found(self) -> int:
        """How many have been quarantined so far."""
        return self._num_found

    @asynccontextmanager
    async def computing(self, key: Key, work: Work) -> AsyncIterator[None]:
        """The block in which the child has it; a suspect waits until no other one is computed.

        Raises RequestQuarantined.
        """
        if not self._suspects.is_empty:
            await self._take_turn(key, digest_of(work))
        self._works[key] = work
        try:
            yield
        finally:
            self._leave(key)

    def finish(self, key: Key) -> None:
        """The child is done with it, and lives. Who reads of it may still be in the block."""
        if key in self._turns:
            self._suspects.clear(self._turns[key])
        self._leave(key)

    def observe_step(self, step: int) -> None:
        """The child has begun this step; 0 is none."""
        self._at_step = dict(self._works) if step else {}

    def blame(self, *, hung_step: bool) -> None:
        """The child is dead. hung_step: in a step that did not end, so what has come since then is innocent."""
        works = self._at_step if hung_step else self._works
        digests = {key: digest_of(work) for key, work in works.items()}
        guilty = self._suspects.accuse(set(digests.values()), monotonic())
        if guilty:
            self._num_found += len(guilty)
            ids = sorted(str(key) for key, digest in digests.items() if digest in guilty)
            log.error("quarantined, because the engine died with it twice: %s", ", ".join(ids))
        self._works, self._at_step, self._turns = {}, {}, {}
        self._wake()

    async def _take_turn(self, key: Key, digest: str) -> None:
        while self._suspects.is_suspect(digest, monotonic()) and any(other != digest for other in self._turns.values()):
            await self._change.wait()
        now = monotonic()
        if self._suspects.is_quarantined(digest, now):
            raise RequestQuarantined(REFUSAL)
        if self._suspects.is_suspect(digest, now):
            self._turns[key] = digest

    def _leave(self, key: Key) -> None:
        self._works.pop(key, None)
        if self._turns.pop(key, None) is not None:
            self._wake()

    def _wake(self) -> None:
        """All that wait look again, the first one first."""
        self._change.set()
        self._change.clear()


def digest_of(work: Work) -> str:
    """Of all that the child computes with; not of who asked, nor of the seed, which is another one in each try."""
    if isinstance(work, Image):
        return work.digest
    if isinstance(work, GenerationRequest):
        work = replace(work, id="", cache_key="", owner=(), sampling=replace(work.sampling, seed=0))
    return blake2b(_encode(work), digest_size=16).hexdigest()
