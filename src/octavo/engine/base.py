"""The seam between Octavo and whatever computes tokens."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from octavo.core.adapters import Adapter
from octavo.core.images import Image, ImageTokens
from octavo.core.output import TokenChunk
from octavo.core.request import GenerationRequest
from octavo.core.vocabulary import Vocabulary

Fragment = str | int
"""Part of a text to tokenize: plain text, in which no special token is looked for, or the id of a special token."""


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """What is served, known once the engine is ready.

    context_length: tokens a sequence may have, prompt and answer together.
    num_slots: sequences computed at the same time; more wait in turns.
    chat_template: Jinja source that came with the model, or None.
    fingerprint: changes when weights, engine build or a numeric setting change, and only then.
    description: what was chosen on this machine and why, one "name: value" a line, for people.
    has_vision: whether it sees images.
    """

    context_length: int
    num_slots: int
    chat_template: str | None
    fingerprint: str
    description: tuple[str, ...] = ()
    has_vision: bool = False


class EngineState(StrEnum):
    LOADING = "loading"
    READY = "ready"
    RESTARTING = "restarting"
    FAILED = "failed"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class CacheUse:
    """How full an engine's KV cache is.

    num_tokens: computed ones of running sequences; what earlier ones left is overwritten when its place is needed.
    max_tokens: for which there is room; 0 where nothing is known.
    num_saved_prefixes, num_saved_tokens: of earlier sequences, kept in the host's memory.
    """

    num_tokens: int = 0
    max_tokens: int = 0
    num_saved_prefixes: int = 0
    num_saved_tokens: int = 0


@dataclass(frozen=True, slots=True)
class EngineHealth:
    """A moment's view of an engine.

    progress: of loading, 0..1. message: what a person should know, empty when all is well.
    num_running, num_waiting: sequences in slots and in the queue. batch_size: sequences in the last step.
    step: number of the step that is being computed, 0 while there is nothing to do; one that stays the same hangs.
    num_restarts: times the engine's process has been replaced. deaths: the same by reason.
    num_quarantined: requests that were found to end the process, and are not computed any more.
    lost_adapters: keys of those that could not be loaded again when it was; requests that name them fail.
    pid: of the engine's process, None where it has none of its own.
    """

    state: EngineState
    progress: float = 1.0
    message: str = ""
    num_running: int = 0
    num_waiting: int = 0
    batch_size: int = 0
    step: int = 0
    num_restarts: int = 0
    deaths: Mapping[str, int] = field(default_factory=dict)
    num_quarantined: int = 0
    lost_adapters: frozenset[str] = frozenset()
    cache: CacheUse = CacheUse()
    pid: int | None = None


class TextTokenizer(Protocol):
    """Text to tokens and the vocabulary for the way back. How special tokens are found in a text is decided by
    `octavo.prompting.tokenization`, not here."""

    @property
    def vocabulary(self) -> Vocabulary: ...

    async def encode(self, fragments: Sequence[Fragment]) -> tuple[int, ...]:
        """Tokens of the fragments, joined; nothing is added. Raises EngineUnavailable and RequestQuarantined."""
        ...


class Tokenizer(TextTokenizer, Protocol):
    """Images, too."""

    async def encode_image(self, image: Image) -> ImageTokens:
        """The image as it stands in a prompt.

        Raises VisionUnsupported, ImageRefused where it cannot be read, RequestQuarantined, EngineError and
        EngineUnavailable.
        """
        ...


class LocalTokenizer(TextTokenizer, Protocol):
    """A tokenizer in the engine's own process."""

    def encode_text(self, text: str) -> Sequence[int]:
        """Tokens of a plain text, in the calling thread, which may be any."""
        ...


class Engine(Protocol):
    """Computes tokens for many requests at a time.

    `info` and `tokenizer` raise EngineUnavailable until the engine has been ready once.
    """

    @property
    def info(self) -> EngineInfo: ...

    @property
    def tokenizer(self) -> Tokenizer: ...

    def generate(self, request: GenerationRequest) -> AsyncGenerator[TokenChunk, None]:
        """Stream the tokens of one request. Closing the iterator (aclose) cancels the request and frees its place.

        Raises EngineUnavailable (not ready, or died meanwhile), EngineError, and before the first token
        UnsupportedGrammar where this engine cannot follow the grammar, and RequestQuarantined.
        """
        ...

    def hold_images(self, images: Sequence[Image]) -> AbstractContextManager[None]:
        """As long as the block runs, requests may show the images."""
        ...

    async def load_adapter(self, adapter: Adapter) -> None:
        """Requests may name the adapter from now on, also when the engine has been replaced, unless it is lost then.

        Raises AdapterRefused where it is none for this model, and then nothing has changed; EngineError and
        EngineUnavailable.
        """
        ...

    async def unload_adapter(self, key: str) -> None:
        """Free an adapter, which no request that is not over names. One that is not loaded is not an error."""
        ...

    def health(self) -> EngineHealth: ...

    async def close(self) -> None:
        """Stop, ending what still runs with EngineUnavailable. May be called twice."""
        ...


class HostedEngine(Engine, Protocol):
    """An engine that can live in a worker process and is given that process' main thread."""

    @property
    def running(self) -> frozenset[str]:
        """Ids of the requests that have slots, also those that were cancelled and are part of a step still."""
        ...

    def restore_adapter(self, adapter: Adapter) -> None:
        """Load, before `run`, an adapter that another process had loaded. Raises AdapterRefused."""
        ...

    def run(self) -> None:
        """Work in the calling thread until `close`."""
        ...
