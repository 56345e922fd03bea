"""Files that are no adapter for the tiny model, by what is wrong with them."""

import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

import numpy as np
from gguf import GGUFValueType
from numpy.typing import NDArray

from numeric.tiny_gguf import SHAPE, VOCABULARY_SIZE, TinyModel
from numeric.tiny_lora import write_lora, write_tiny_lora

Tensors = dict[str, NDArray[np.generic]]
WIDTH, RANK = SHAPE.width, 4
QUERY, EMBEDDING = "blk.0.attn_q.weight", "token_embd.weight"


def normal(*shape: int) -> NDArray[np.float32]:
    return np.random.default_rng(0).standard_normal(shape, dtype=np.float32) / 8


def pair(name: str = QUERY, inputs: int = WIDTH, outputs: int = WIDTH, rank: int = RANK) -> Tensors:
    return {f"{name}.lora_a": normal(rank, inputs), f"{name}.lora_b": normal(outputs, rank)}


def with_one(value: float) -> Tensors:
    """A pair in which one number is this."""
    tensors = pair()
    tensors[f"{QUERY}.lora_b"][3, 2] = value
    return tensors


BAD_TENSORS: Mapping[str, Tensors] = MappingProxyType(
    {
        "too few inputs": pair(inputs=WIDTH // 2),
        "too many outputs": pair(outputs=2 * WIDTH),
        "halves of different ranks": pair() | {f"{QUERY}.lora_a": normal(RANK + 1, WIDTH)},
        "embeddings with halves of different ranks": {
            f"{EMBEDDING}.lora_a": normal(VOCABULARY_SIZE, RANK),
            f"{EMBEDDING}.lora_b": normal(WIDTH, RANK + 1),
        },
        "not transposed": {f"{QUERY}.lora_a": normal(WIDTH, RANK), f"{QUERY}.lora_b": normal(RANK, WIDTH)},
        "a block that the model has not": pair("blk.99.attn_q.weight"),
        "a matrix that no model has": pair("blk.0.attn_z.weight"),
        "without lora_b": {f"{QUERY}.lora_a": normal(RANK, WIDTH)},
        "without lora_a": {f"{QUERY}.lora_b": normal(WIDTH, RANK)},
        "whole matrices": {QUERY: normal(WIDTH, WIDTH)},
        "three dimensions": {f"{QUERY}.lora_a": normal(2, RANK, WIDTH), f"{QUERY}.lora_b": normal(3, WIDTH, RANK)},
        "whole numbers": {name: (100 * values).astype(np.int32) for name, values in pair().items()},
        "not a number": with_one(np.nan),
        "infinite": with_one(np.inf),
    }
)
BAD_FACTS: Mapping[str, Mapping[str, object]] = MappingProxyType(
    {
        "another architecture": {"architecture": "qwen2"},
        "an architecture that llama.cpp has not": {"architecture": "no-such-architecture"},
        "a projector by its type": {"file_type": "mmproj"},
        "another kind of adapter": {"adapter_type": "dora"},
        "an infinite alpha": {"alpha": float("inf")},
        "an alpha that is no number": {"alpha": float("nan")},
        "an activated LoRA": {"invocation_tokens": [1, 2, 3]},
    }
)


def write_model(path: Path, tiny: TinyModel) -> None:
    path.write_bytes(tiny.path.read_bytes())


def write_random_bytes(path: Path, tiny: TinyModel) -> None:
    path.write_bytes(np.random.default_rng(0).bytes(10_000))


def write_random_bytes_behind_magic(path: Path, tiny: TinyModel) -> None:
    path.write_bytes(b"GGUF\x03\x00\x00\x00" + np.random.default_rng(1).bytes(10_000))


def write_nothing(path: Path, tiny: TinyModel) -> None:
    path.write_bytes(b"")


def write_zeros(path: Path, tiny: TinyModel) -> None:
    path.write_bytes(bytes(10_000))


def write_text(path: Path, tiny: TinyModel) -> None:
    path.write_text('{"base_model_name_or_path": "tiny", "peft_type": "LORA", "r": 4}')


def write_headless(path: Path, tiny: TinyModel) -> None:
    """An adapter without its first byte."""
    write_tiny_lora(path, tiny)
    path.write_bytes(path.read_bytes()[1:])


def write_huge_rank(path: Path, tiny: TinyModel) -> None:
    """Both halves say a rank for which there is nothing in the file, nor memory."""
    write_lora(path, pair(rank=5))
    data, huge = path.read_bytes(), 2**40
    for before, after in (((WIDTH, 5), (WIDTH, huge)), ((5, WIDTH), (huge, WIDTH))):
        data = data.replace(struct.pack("<QQ", *before), struct.pack("<QQ", *after))
    path.write_bytes(data)


def write_alpha_of_another_type(path: Path, tiny: TinyModel) -> None:
    """Its type is that of whole numbers; llama.cpp ends the process that asks such a one for a float."""
    write_lora(path, pair())
    key, types = b"adapter.lora.alpha", (GGUFValueType.FLOAT32, GGUFValueType.UINT32)
    float32, uint32 = (key + struct.pack("<I", each) for each in types)
    path.write_bytes(path.read_bytes().replace(float32, uint32))


def write_folder(path: Path, tiny: TinyModel) -> None:
    path.mkdir()


BAD_FILES: Mapping[str, Callable[[Path, TinyModel], None]] = MappingProxyType(
    {
        "a model": write_model,
        "random bytes": write_random_bytes,
        "random bytes behind the magic": write_random_bytes_behind_magic,
        "an empty file": write_nothing,
        "zeros": write_zeros,
        "text": write_text,
        "without its first byte": write_headless,
        "a huge rank": write_huge_rank,
        "an alpha of another type": write_alpha_of_another_type,
        "a folder": write_folder,
    }
)
BAD_ADAPTERS = (*BAD_TENSORS, *BAD_FACTS, *BAD_FILES)


def write_bad_adapter(name: str, path: Path, tiny: TinyModel) -> None:
    """name: one of BAD_ADAPTERS."""
    if name in BAD_TENSORS:
        write_lora(path, BAD_TENSORS[name])
    elif name in BAD_FACTS:
        write_lora(path, pair(), **BAD_FACTS[name])
    else:
        BAD_FILES[name](path, tiny)
