"""Random LoRA adapters for the tiny model as GGUF files, and the weights that they make of the model's."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from gguf import GGUFValueType, GGUFWriter
from numpy.typing import NDArray

from .tiny_gguf import TinyModel

Matrix = NDArray[np.float32]

ATTENTION = ("attn_q", "attn_k", "attn_v", "attn_output")
FEED_FORWARD = ("ffn_gate", "ffn_up", "ffn_down")
EMBEDDING = "token_embd"
ENDS = (EMBEDDING, "output")
ALL = (*ATTENTION, *FEED_FORWARD, *ENDS)
"""The matrices that an adapter can change, by their names in a GGUF file without block and suffix."""


@dataclass(frozen=True, slots=True)
class LowRank:
    """The change B A of a matrix. a: shape (rank, inputs). b: shape (outputs, rank)."""

    a: Matrix
    b: Matrix

    @property
    def rank(self) -> int:
        return len(self.a)

    @property
    def product(self) -> NDArray[np.float64]:
        return self.b.astype(np.float64) @ self.a.astype(np.float64)


@dataclass(frozen=True, slots=True)
class TinyAdapter:
    """alpha: 0 stands for the rank, as llama.cpp reads it. changes: by the names of the tensors that they change."""

    path: Path
    alpha: float
    changes: Mapping[str, LowRank]

    def merged(self, model: TinyModel, scale: float = 1.0) -> TinyModel:
        """The model with W + scale · alpha / rank · B A for each W (arXiv 2106.09685), in 64-bit floats."""
        weights: dict[str, NDArray[np.floating]] = dict(model.weights)
        for name, change in self.changes.items():
            factor = scale * self.alpha / change.rank if self.alpha else scale
            weights[name] = model.weights[name] + factor * change.product
        return replace(model, weights=weights)


def write_tiny_lora(
    path: Path, model: TinyModel, *, seed: int = 0, rank: int = 4, alpha: float = 8.0, matrices: Iterable[str] = ALL
) -> TinyAdapter:
    """Write an adapter of the model's matrices with these names, in every block; the same seed gives the same bytes.

    The changes are of the size of the weights, whatever the rank and alpha, so that no part of them goes unnoticed.
    """
    random = np.random.default_rng([seed, rank])
    names = [name for name in model.weights if kind_of(name) in set(matrices)]
    size = 0.5 * rank / alpha if alpha else 0.5
    adapter = TinyAdapter(path, alpha, {name: draw(random, model.weights[name], rank, size) for name in names})
    write_lora(path, tensors_of(adapter), alpha=alpha)
    return adapter


def kind_of(name: str) -> str:
    """Of `blk.0.attn_q.weight`: attn_q."""
    return name.split(".")[-2]


def draw(random: np.random.Generator, weights: Matrix, rank: int, size: float) -> LowRank:
    """A change that has `size` times the standard deviation of the weights."""
    num_outputs, num_inputs = weights.shape
    a = random.standard_normal((rank, num_inputs), dtype=np.float32)
    b = random.standard_normal((num_outputs, rank), dtype=np.float32)
    return LowRank(a, b * np.float32(size * weights.std() / rank**0.5))


def tensors_of(adapter: TinyAdapter) -> dict[str, Matrix]:
    """As they stand in the file. Rows of embeddings are looked up, so their change is stored transposed."""
    tensors = {}
    for name, change in adapter.changes.items():
        is_embedding = kind_of(name) == EMBEDDING
        tensors[f"{name}.lora_a"] = change.b if is_embedding else change.a
        tensors[f"{name}.lora_b"] = np.ascontiguousarray(change.a.T) if is_embedding else change.b
    return tensors


def write_lora(
    path: Path,
    tensors: Mapping[str, NDArray[np.generic]],
    *,
    architecture: str = "llama",
    file_type: str = "adapter",
    adapter_type: str = "lora",
    alpha: float = 8.0,
    invocation_tokens: Iterable[int] = (),
) -> None:
    """A GGUF file of an adapter, right or wrong. invocation_tokens: those of an "activated" LoRA (arXiv 2504.12397)."""
    writer = GGUFWriter(path, architecture)
    writer.add_type(file_type)
    writer.add_string("adapter.type", adapter_type)
    writer.add_float32("adapter.lora.alpha", alpha)
    if tokens := list(invocation_tokens):
        kinds = GGUFValueType.ARRAY, GGUFValueType.UINT32
        writer.add_key_value("adapter.alora.invocation_tokens", tokens, *kinds)
    for name, values in tensors.items():
        writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
