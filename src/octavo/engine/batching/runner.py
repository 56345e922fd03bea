"""What the batching engine needs of a model: logits for a batch of tokens, and a KV cache by slot."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from octavo.core.adapters import Adapter
from octavo.engine.batching.rows import Row
from octavo.engine.batching.vision import Embeddings
from octavo.errors import EngineError

LONE_CHUNK = 64
"""Tokens of a prompt that are computed in a step of their own where steps are not shared: enough to fill a processor,
few enough for others to wait for. Every runner gives the logits of so many tokens, unless a step takes fewer."""


class KvCacheFull(Exception):
    """No room for the batch; nothing of it was computed."""


class RunnerFailed(EngineError):
    """The runner's state can no longer be trusted; its process must be replaced."""


@dataclass(frozen=True, slots=True)
class RunnerLimits:
    """context_length: tokens a slot holds. max_batch_tokens: tokens one forward call takes, at least one a slot.
    max_logits: rows of logits that one forward call may be asked for, at least one a slot and LONE_CHUNK where so many
        tokens may be computed; they bound its memory.
    can_share: whether a part of a slot's tokens can be kept or copied; some models' state is of all tokens or none.
    """

    num_slots: int
    context_length: int
    max_batch_tokens: int
    vocabulary_size: int
    max_logits: int
    can_share: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """A slot's keys and values in the host's memory.

    data: in a form of the runner's own. tile_ids: of the slot's tiles, where the runner knows which are copies.
    shifts: where the slot's positions are not its tokens' places.
    """

    data: NDArray[np.uint8]
    tile_ids: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    shifts: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class ImagePiece:
    """As many tokens of a part of an image as a batch has, from the part's token `start` on."""

    embeddings: Embeddings
    start: int


@dataclass(frozen=True, slots=True)
class ForwardBatch:
    """Tokens to compute, sorted by slot and place. All arrays have shape (n_tokens,).

    positions: the tokens' places in their slots. wants_logits: marks those whose next-token logits are returned.
    num_graphs: that it is computed in. adapter: key of a loaded one, or empty.
    image: what is seen in the places of the tokens, which are negative then, and in one slot.
    """

    tokens: NDArray[np.int32]
    positions: NDArray[np.int32]
    slots: NDArray[np.int32]
    wants_logits: NDArray[np.bool_]
    num_graphs: int = 1
    adapter: str = ""
    image: ImagePiece | None = None

    @classmethod
    def build(
        cls,
        spans: Iterable[tuple[int, int, NDArray[np.int32], int]],
        *,
        adapter: str = "",
        image: ImagePiece | None = None,
    ) -> "ForwardBatch":
        """From (slot, position of the first token, tokens, how many of the last tokens' logits are wanted)."""
        rows = list(spans)
        lengths = np.array([len(tokens) for _, _, tokens, _ in rows])
        ends = np.cumsum(lengths)
        starts = np.array([start for _, start, _, _ in rows])
        num_wanted = np.array([wanted for _, _, _, wanted in rows])
        slots = np.array([slot for slot, _, _, _ in rows], np.int32)
        offsets = np.arange(ends[-1]) - np.repeat(ends - lengths, lengths)
        return cls(
            tokens=np.concatenate([tokens for _, _, tokens, _ in rows]),
            positions=(np.repeat(starts, lengths) + offsets).astype(np.int32),
            slots=np.repeat(slots, lengths),
            wants_logits=offsets >= np.repeat(lengths - num_wanted, lengths),
            num_graphs=int(count_graphs(slots, lengths)),
            adapter=adapter,
            image=image,
        )


def count_graphs(slots: NDArray[np.int32], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many graphs llama.cpp makes of batches, each of which reads all weights.

    A graph takes neighbouring slots as far as all of them have tokens left: the tokens that everybody has are one, and
    where a slot has more than the one before it, the rest is another. (So is what it has less than that one but more
    than others; this is not counted.)

    slots: shape (rows,), ascending. lengths: new tokens, shape (..., rows); the result has shape (...).
    """
    are_neighbours = np.diff(slots) == 1
    rest = lengths - lengths.min(axis=-1, keepdims=True)
    rises = rest[..., 1:] > np.where(are_neighbours, rest[..., :-1], 0)
    number: NDArray[np.int64] = rises.sum(axis=-1) + (rest[..., 0] > 0)
    return number + 1 + int((~are_neighbours).sum())


class ModelRunner(Protocol):
    """Computes logits. Owned by one thread."""

    @property
    def limits(self) -> RunnerLimits: ...

    def forward(self, batch: ForwardBatch) -> NDArray[np.float32]:
        """Logits, shape (number of wants_logits, vocabulary), in batch order; may be overwritten by the next call.

        Raises KvCacheFull, or RunnerFailed when the computation failed half-way.
        """
        ...

    def save(self, slot: int) -> Snapshot:
        """All that the slot holds."""
        ...

    def restore(self, slot: int, snapshot: Snapshot) -> None:
        """Make the slot hold what was saved, of this slot or another one, and nothing else."""
        ...

    def truncate(self, slot: int, length: int) -> None:
        """Forget the slot's tokens from position `length` on; a length above 0 only where the limits say can_share."""
        ...

    def load_adapter(self, adapter: Adapter) -> None:
        """Batches may name it from now on. Raises AdapterRefused."""
        ...

    def unload_adapter(self, key: str) -> None:
        """Free it. One that is not loaded is not an error."""
        ...

    def exponentials(self, row: Row, highest: float) -> float:
        """`rows.Exponentials`, as fast as the runner's library has it."""
        ...

    def close(self) -> None: ...
