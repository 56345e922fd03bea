"""Finds the work that ends the engine's process, and keeps it out."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator, Set
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
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

REFUSAL = "The engine's process ended each time it worked on this request, so it is not tried again for an hour."
PATIENCE = 10.0
"""Seconds, for each death that a suspect was at, for which others wait so that it can be computed alone."""

log = logging.getLogger("octavo.worker")

_encode = msgspec.msgpack.Encoder(order="deterministic").encode


@dataclass(slots=True)
class _Given:
    """What the child has. suspect: its digest where it was one when it was given. is_left: the child was told to stop,
    and has, but for the step that it is at."""

    work: Work
    suspect: str
    num_tokens: int = 0
    is_left: bool = False


class Quarantine:
    """Knows what a child works on. What was computed when it died is computed again only by turns, see Suspects.

    While nothing is suspect, nothing is digested.
    """

    def __init__(self, *, patience: float = PATIENCE) -> None:
        self._suspects = Suspects()
        self._patience = patience
        self._given: dict[Key, _Given] = {}
        self._running: Set[str] = frozenset()
        self._at_step: Set[Key] = frozenset()
        self._alone = ""  # digest of the suspect that is, or waits to be, computed with nothing beside it
        self._change = asyncio.Event()
        self._num_found = 0

    @property
    def num_found(self) -> int:
        """How many have been quarantined so far."""
        return self._num_found

    @asynccontextmanager
    async def giving(self, key: Key, work: Work) -> AsyncIterator[None]:
        """The block that gives it to the child, when its turn has come. The child has it until it says that it has not,
        unless the block raises.

        Raises RequestQuarantined.
        """
        suspect = "" if self._suspects.is_empty else await self._turn(digest_of(work))
        self._given[key] = _Given(work, suspect)
        try:
            yield
        except BaseException:
            self._take_back(key)
            raise

    def advance(self, key: Key, num_tokens: int) -> None:
        """So many new tokens have come of it."""
        if (given := self._given.get(key)) is None:
            return
        given.num_tokens += num_tokens
        if given.suspect and self._suspects.is_outlived(given.suspect, given.num_tokens):
            self._clear(given.suspect)

    def finish(self, key: Key) -> None:
        """The child is done with it, and lives."""
        if key in self._given:
            if suspect := self._given[key].suspect:
                self._clear(suspect)
            self._take_back(key)

    def leave(self, key: Key) -> None:
        """The child does not go on with it."""
        if key in self._given:
            self._given[key].is_left = True
            self._forget_left()

    def observe_running(self, ids: Set[str]) -> None:
        """These requests have slots now, and no others."""
        self._running = ids
        self._forget_left()

    def observe_step(self, step: int) -> None:
        """The child has begun this step; 0 is none."""
        self._at_step = frozenset(self._given) if step else frozenset()

    def blame(self, *, hung_step: bool, num_slots: int) -> None:
        """The child is dead. hung_step: in a step that did not end, so what has come since then is innocent."""
        works = dict(self._computed_in_step() if hung_step else self._computed(num_slots))
        computed: dict[str, int] = {}
        for given in works.values():
            digest = digest_of(given.work)
            computed[digest] = max(given.num_tokens, computed.get(digest, 0))
        if self._suspects.accuse(computed, monotonic()) is not None:
            self._num_found += 1
            ids = ", ".join(sorted(str(key) for key in works))
            log.error("quarantined, because the engine died whenever it worked on it: %s", ids)
        self._given, self._running, self._at_step, self._alone = {}, frozenset(), frozenset(), ""
        self._wake()

    def _computed(self, num_slots: int) -> Iterator[tuple[Key, _Given]]:
        """Where a slot may have been free, what waited for one may have got it, and not be told of."""
        is_full = len(self._running & self._given.keys()) >= num_slots
        for key, given in self._given.items():
            if isinstance(key, int) or key in self._running or not is_full:
                yield key, given

    def _computed_in_step(self) -> Iterator[tuple[Key, _Given]]:
        """In a step that is so long all of it is told."""
        for key, given in self._given.items():
            if key in self._at_step and (isinstance(key, int) or key in self._running):
                yield key, given

    async def _turn(self, digest: str) -> str:
        """Wait for it. Returns the digest where it is a suspect's, else nothing."""
        while not self._may_begin(digest):
            await self._change.wait()
        if self._is_suspect(digest) and self._suspects.room == 1 and digest not in self._suspects_given():
            await self._wait_alone(digest)
        if self._suspects.is_quarantined(digest, monotonic()):
            raise RequestQuarantined(REFUSAL)
        return digest if self._is_suspect(digest) else ""

    def _may_begin(self, digest: str) -> bool:
        if self._suspects.is_quarantined(digest, monotonic()):
            return True  # to be told so
        if not self._is_suspect(digest):
            return not self._alone
        together = self._suspects_given()
        return digest in together or (not self._alone and len(together) < self._suspects.room)

    async def _wait_alone(self, digest: str) -> None:
        """Until the child has nothing else. Others wait for that, but not for ever: then it is computed beside them."""
        self._alone = digest
        try:
            async with asyncio.timeout(self._patience * self._suspects.num_deaths(digest)):
                while self._given and self._alone == digest:
                    await self._change.wait()
        except TimeoutError:
            self._let_others_in(digest)
        except BaseException:
            self._let_others_in(digest)
            raise

    def _let_others_in(self, digest: str) -> None:
        if self._alone == digest:
            self._alone = ""
        self._wake()

    def _is_suspect(self, digest: str) -> bool:
        return self._suspects.is_suspect(digest, monotonic())

    def _suspects_given(self) -> Set[str]:
        return {given.suspect for given in self._given.values() if given.suspect}

    def _clear(self, digest: str) -> None:
        self._suspects.clear(digest)
        for given in self._given.values():
            if given.suspect == digest:
                given.suspect = ""
        self._let_others_in(digest)

    def _take_back(self, key: Key) -> None:
        given = self._given.pop(key, None)
        if given is not None and given.suspect not in self._suspects_given():
            self._let_others_in(given.suspect)
        self._wake()

    def _forget_left(self) -> None:
        for key in [key for key, given in self._given.items() if given.is_left and key not in self._running]:
            self._take_back(key)

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
