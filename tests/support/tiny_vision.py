"""Random models that see, a text model and its mmproj file each, of the families that decode pictures differently.

What they say is noise. They are small enough to be written for each run, and all their weights are 32-bit floats; only
the slow one's are not.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

import numpy as np
from gguf import GGUFWriter
from numpy.typing import NDArray

from numeric.tiny_gguf import VOCABULARY_SIZE, Shape, add_shape, add_vocabulary, draw_weights

from .vision_towers import SEED, Draw, Tower, patches, tower_weights, tower_writer, write

Weights = dict[str, NDArray[np.generic]]
SHAPE = Shape(num_layers=2, context_length=512)
WINDOW = 12
"""Tokens that a layer with a sliding window sees: fewer than a picture has."""
MERGE = 2
"""Neighbouring patches that become one token, in each direction."""
SPREAD = 1.5
"""Of a picture's embeddings: no smaller than those of tokens, or the picture would go unnoticed."""


@dataclass(frozen=True, slots=True)
class VisionModel:
    """Paths of two GGUF files, and how many tokens the model sees at most."""

    path: Path
    mmproj: Path
    context_length: int = SHAPE.context_length


def write_qwen2vl(folder: Path) -> VisionModel:
    """M-RoPE (arXiv 2409.12191): a picture has a token for each 16 by 16 pixels, and nx by ny of them take max(nx, ny)
    positions."""
    files = files_in(folder)
    writer = text_writer(files.path, "qwen2vl", ("<|vision_start|>", "<|vision_end|>"))
    writer.add_rope_dimension_sections([2, 3, 3, 0])
    write(writer, text_weights(2))
    tower, draw = Tower(), Draw()
    writer = tower_writer(files.mmproj, tower, "qwen2vl_merger", SHAPE.width)
    merged = tower.width * MERGE**2
    projector = {
        "v.patch_embd.weight.1": patches(draw, tower),
        "mm.0.weight": draw.matrix(merged, merged),
        "mm.0.bias": draw.bias(merged),
        "mm.2.weight": draw.matrix(SHAPE.width, merged, gain=2 * SPREAD),
        "mm.2.bias": draw.bias(SHAPE.width),
    }
    weights = dict(tower_weights(draw, tower)) | projector
    del weights["v.patch_embd.bias"], weights["v.position_embd.weight"]
    write(writer, weights)
    return files


def write_qwen3vl(folder: Path) -> VisionModel:
    """As Qwen2-VL with sections that alternate, and wider embeddings: what an earlier layer of the tower saw joins in
    behind a layer of the text model (DeepStack, arXiv 2406.04334)."""
    files = files_in(folder)
    writer = text_writer(files.path, "qwen3vl", ("<|vision_start|>", "<|vision_end|>"))
    writer.add_rope_dimension_sections([3, 3, 2, 0])
    writer.add_num_deepstack_layers(1)
    write(writer, text_weights(2) | head_norms())
    tower, draw = Tower(), Draw()
    merged = tower.width * MERGE**2
    projector = {
        "v.patch_embd.weight.1": patches(draw, tower),
        "v.deepstack.0.norm.weight": draw.gain(merged),
        "v.deepstack.0.norm.bias": draw.bias(merged),
        "mm.0.weight": draw.matrix(merged, merged),
        "mm.0.bias": draw.bias(merged),
        "mm.2.weight": draw.matrix(SHAPE.width, merged, gain=2 * SPREAD),
        "mm.2.bias": draw.bias(SHAPE.width),
        "v.deepstack.0.fc1.weight": draw.matrix(merged, merged),
        "v.deepstack.0.fc1.bias": draw.bias(merged),
        "v.deepstack.0.fc2.weight": draw.matrix(SHAPE.width, merged, gain=2 * SPREAD),
        "v.deepstack.0.fc2.bias": draw.bias(SHAPE.width),
    }
    weights = with_joint_projections(dict(tower_weights(draw, tower)))
    write(tower_writer(files.mmproj, tower, "qwen3vl_merger", SHAPE.width), weights | projector)
    return files


def with_joint_projections(weights: Weights) -> Weights:
    """Queries, keys and values of a layer by one matrix."""
    joint: Weights = {}
    for name, values in weights.items():
        layer, _, kind = name.rpartition("attn_q.")
        parts = [values, *(weights[f"{layer}attn_{each}.{kind}"] for each in "kv")] if layer else []
        if parts:
            joint[f"{layer}attn_qkv.{kind}"] = np.concatenate(parts)
        elif ".attn_k." not in name and ".attn_v." not in name:
            joint[name] = values
    return joint


def write_gemma3(folder: Path) -> VisionModel:
    """A picture's 16 tokens see each other, those behind them too, in layers with and without a window."""
    files = files_in(folder)
    writer = text_writer(files.path, "gemma3", ("<start_of_image>", "<end_of_image>"))
    writer.add_sliding_window(WINDOW)
    writer.add_sliding_window_pattern([True, False])
    weights = text_weights(2) | post_norms() | head_norms()
    embeddings = weights["token_embd.weight"]  # which the architecture multiplies by this
    weights["token_embd.weight"] = np.divide(embeddings, np.float32(SHAPE.width**0.5))
    write(writer, weights)
    tower, draw = Tower(), Draw()
    writer = tower_writer(files.mmproj, tower, "gemma3", SHAPE.width)
    writer.add_uint32("clip.vision.projector.scale_factor", MERGE)
    projector = {
        "mm.input_projection.weight": draw.matrix(SHAPE.width, tower.width, gain=SPREAD).T.copy(),
        "mm.soft_emb_norm.weight": draw.gain(tower.width),
    }
    write(writer, dict(tower_weights(draw, tower)) | projector)
    return files


def post_norms() -> Weights:
    """Behind attention and behind the feed-forward network."""
    draw, blocks = Draw(), range(SHAPE.num_layers)
    names = ("post_attention_norm", "post_ffw_norm")
    return {f"blk.{block}.{name}.weight": draw.gain(SHAPE.width) for block in blocks for name in names}


def head_norms() -> Weights:
    """Of queries and keys."""
    draw, blocks = Draw(), range(SHAPE.num_layers)
    names = ("attn_q_norm", "attn_k_norm")
    return {f"blk.{block}.{name}.weight": draw.gain(SHAPE.head_size) for block in blocks for name in names}


def write_idefics3(folder: Path) -> VisionModel:
    """Tiles (arXiv 2408.12637): a picture is seen whole and in parts, with tokens of text around each."""
    files = files_in(folder)
    places = tuple(f"<row_{row}_col_{column}>" for row in (1, 2) for column in (1, 2))
    tokens = ("<fake_token_around_image>", "<global-img>", "\n\n", *places)
    write(text_writer(files.path, "llama", tokens), text_weights(len(tokens)))
    tower, draw = Tower(image_size=32), Draw()
    writer = tower_writer(files.mmproj, tower, "idefics3", SHAPE.width)
    writer.add_uint32("clip.vision.projector.scale_factor", MERGE)
    writer.add_uint32("clip.vision.preproc_image_size", 2 * tower.image_size)
    projector = {"mm.model.fc.weight": draw.matrix(SHAPE.width, tower.width * MERGE**2, gain=SPREAD)}
    write(writer, dict(tower_weights(draw, tower)) | projector)
    return files


def write_llava(folder: Path) -> VisionModel:
    """The plain kind (arXiv 2304.08485): 16 tokens with nothing around them, each seen as a token of text is."""
    files, tower, draw = files_in(folder), Tower(patch_size=16, num_layers=3), Draw()
    write(text_writer(files.path, "llama", ()), text_weights(0))
    write(
        tower_writer(files.mmproj, tower, "mlp", SHAPE.width),
        dict(tower_weights(draw, tower)) | perceptron(draw, tower, SHAPE.width),
    )
    return files


FAMILIES: Mapping[str, Callable[[Path], VisionModel]] = MappingProxyType(
    {
        "llava": write_llava,
        "qwen2vl": write_qwen2vl,
        "qwen3vl": write_qwen3vl,
        "gemma3": write_gemma3,
        "idefics3": write_idefics3,
    }
)


def write_slow_tower(path: Path, width: int) -> None:
    """An mmproj for a text model of this width, of 200 million random 16-bit weights: a picture's 576 tokens take some
    seconds of processor time. The layers are alike, so it is written fast."""
    tower = Tower(image_size=336, patch_size=14, width=1152, feed_forward=4304, num_layers=13, num_heads=16)
    draw = Draw()
    weights = dict(tower_weights(draw, replace(tower, num_layers=1)))
    layers = range(1, tower.num_layers)
    alike = {name.replace("blk.0", f"blk.{n}"): weights[name] for n in layers for name in weights if "blk.0" in name}
    write(tower_writer(path, tower, "mlp", width), halved(weights | alike | perceptron(draw, tower, width)))


def perceptron(draw: Draw, tower: Tower, width: int) -> Weights:
    """From the tower's width to the text model's."""
    return {
        "mm.0.weight": draw.matrix(width, tower.width),
        "mm.0.bias": draw.bias(width),
        "mm.2.weight": draw.matrix(width, width, gain=2 * SPREAD),
        "mm.2.bias": draw.bias(width),
    }


def halved(weights: Weights) -> Weights:
    """The matrices in 16 bits."""
    is_matrix = {name: values.ndim == 2 and "position" not in name for name, values in weights.items()}
    return {name: values.astype(np.float16) if is_matrix[name] else values for name, values in weights.items()}


def files_in(folder: Path) -> VisionModel:
    return VisionModel(folder / "model.gguf", folder / "mmproj.gguf")


def text_writer(path: Path, architecture: str, tokens: Sequence[str]) -> GGUFWriter:
    """tokens: which the family has around pictures."""
    writer = GGUFWriter(path, architecture)
    add_shape(writer, SHAPE)
    add_vocabulary(writer, tokens)
    return writer


def text_weights(num_more_tokens: int) -> Weights:
    return dict(draw_weights(SHAPE, SEED, VOCABULARY_SIZE + num_more_tokens))
