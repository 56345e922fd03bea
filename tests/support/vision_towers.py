"""Random vision encoders for models of few numbers, as mmproj files without what is a family's own."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from gguf import GGUFType, GGUFWriter
from numpy.typing import NDArray

SEED = 7


@dataclass(frozen=True, slots=True)
class Tower:
    """Sizes of a vision transformer (arXiv 2010.11929); image_size and patch_size in pixels."""

    image_size: int = 64
    patch_size: int = 8
    width: int = 64
    feed_forward: int = 96
    num_layers: int = 2
    num_heads: int = 4
    norm_epsilon: float = 1e-6

    @property
    def num_patches(self) -> int:
        return (self.image_size // self.patch_size) ** 2


class Draw:
    """Random weights, always the same; a matrix keeps the size of what goes through it."""

    def __init__(self) -> None:
        self._random = np.random.default_rng(SEED)

    def matrix(self, num_outputs: int, *inputs: int, gain: float = 1.0) -> NDArray[np.float32]:
        drawn = self._random.standard_normal((num_outputs, *inputs), dtype=np.float32)
        return drawn * np.float32(gain / np.prod(inputs) ** 0.5)

    def bias(self, size: int) -> NDArray[np.float32]:
        return self._random.standard_normal(size, dtype=np.float32) / np.float32(8)

    def gain(self, size: int) -> NDArray[np.float32]:
        return 1 + self.bias(size)


def tower_writer(path: Path, tower: Tower, projector: str, text_width: int) -> GGUFWriter:
    """projector: its type, as llama.cpp calls it. text_width: of the model that sees."""
    writer = GGUFWriter(path, "clip")
    writer.add_type(GGUFType.MMPROJ)
    writer.add_bool("clip.has_vision_encoder", True)
    writer.add_string("clip.projector_type", projector)
    writer.add_bool("clip.use_gelu", True)
    writer.add_uint32("clip.vision.image_size", tower.image_size)
    writer.add_uint32("clip.vision.patch_size", tower.patch_size)
    writer.add_uint32("clip.vision.embedding_length", tower.width)
    writer.add_uint32("clip.vision.feed_forward_length", tower.feed_forward)
    writer.add_uint32("clip.vision.block_count", tower.num_layers)
    writer.add_uint32("clip.vision.attention.head_count", tower.num_heads)
    writer.add_float32("clip.vision.attention.layer_norm_epsilon", tower.norm_epsilon)
    writer.add_uint32("clip.vision.projection_dim", text_width)
    writer.add_array("clip.vision.image_mean", [0.5, 0.5, 0.5])
    writer.add_array("clip.vision.image_std", [0.5, 0.5, 0.5])
    return writer


def tower_weights(draw: Draw, tower: Tower) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """What all families have, by llama.cpp's names."""
    yield "v.patch_embd.weight", patches(draw, tower)
    yield "v.patch_embd.bias", draw.bias(tower.width)
    yield "v.position_embd.weight", draw.matrix(tower.num_patches, tower.width, gain=tower.width**0.5 / 2)
    for layer in range(tower.num_layers):
        for name, values in layer_weights(draw, tower):
            yield f"v.blk.{layer}.{name}", values
    yield "v.post_ln.weight", draw.gain(tower.width)
    yield "v.post_ln.bias", draw.bias(tower.width)


def patches(draw: Draw, tower: Tower) -> NDArray[np.float32]:
    """The convolution that makes an embedding of a patch's pixels."""
    return draw.matrix(tower.width, 3, tower.patch_size, tower.patch_size)


def layer_weights(draw: Draw, tower: Tower) -> Iterator[tuple[str, NDArray[np.float32]]]:
    sizes = dict.fromkeys(("attn_q", "attn_k", "attn_v", "attn_out"), (tower.width, tower.width))
    sizes |= {"ffn_up": (tower.feed_forward, tower.width), "ffn_down": (tower.width, tower.feed_forward)}
    for name, size in sizes.items():
        yield f"{name}.weight", draw.matrix(*size)
        yield f"{name}.bias", draw.bias(size[0])
    for name in ("ln1", "ln2"):
        yield f"{name}.weight", draw.gain(tower.width)
        yield f"{name}.bias", draw.bias(tower.width)


def write(writer: GGUFWriter, weights: Mapping[str, NDArray[np.generic]]) -> None:
    for name, values in weights.items():
        writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
