"""A tiny random llama model as a GGUF file, with a vocabulary that has tokens of every kind.

Its weights are 32-bit floats, so that what llama.cpp computes with it can be compared with `forward` almost to the
bit. Byte-level BPE (arXiv 1909.03341): token i is byte i for i < 256, then come the merged pieces, then the special
tokens. What it says is noise; it is a fixture for numbers, bytes, special tokens and fill-in-the-middle.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import numpy as np
from gguf import GGUFWriter, TokenType
from numpy.typing import NDArray

NUM_BYTES = 256
MERGES = (
    (b"t", b"h"),
    (b"th", b"e"),
    (b" ", b"the"),
    (b"i", b"n"),
    (b" ", b"a"),
    (b"\xc3", b"\xa9"),  # é
    (b" ", b"\xe2"),  # a space and the first byte of €, and of many others
    (b"\xf0", b"\x9f"),  # the first half of an emoji
)
"""In the order in which they are applied."""
LOGIT_SPREAD = 2.5
"""Standard deviation of the logits: a distribution neither flat nor certain."""
CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


class Special(Enum):
    """Tokens that are not text, or not only text."""

    BOS = "<|bos|>"
    EOS = "<|endoftext|>"
    EOT = "<|im_end|>"
    START = "<|im_start|>"
    FIM_PREFIX = "<|fim_prefix|>"
    FIM_SUFFIX = "<|fim_suffix|>"
    FIM_MIDDLE = "<|fim_middle|>"
    THINK = "<think>"
    END_THINK = "</think>"

    @property
    def id(self) -> int:
        return NUM_BYTES + len(MERGES) + list(Special).index(self)

    @property
    def kind(self) -> TokenType:
        is_text = self in (Special.THINK, Special.END_THINK)
        return TokenType.USER_DEFINED if is_text else TokenType.CONTROL


PIECES = (*(bytes([byte]) for byte in range(NUM_BYTES)), *(left + right for left, right in MERGES))
"""The bytes of the tokens that are plain text."""
VOCABULARY_SIZE = len(PIECES) + len(Special)


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of a model of the architecture "llama"."""

    num_layers: int = 3
    width: int = 64
    num_heads: int = 4
    num_kv_heads: int = 2
    feed_forward: int = 128
    context_length: int = 256
    rope_base: float = 10_000.0
    norm_epsilon: float = 1e-5

    @property
    def head_size(self) -> int:
        return self.width // self.num_heads


SHAPE = Shape()


@dataclass(frozen=True, slots=True)
class TinyModel:
    """weights: by llama.cpp's tensor names; a matrix has shape (outputs, inputs)."""

    path: Path
    shape: Shape
    weights: dict[str, NDArray[np.float32]]


def write_tiny_gguf(path: Path, seed: int = 0, shape: Shape = SHAPE) -> TinyModel:
    """Write the file; the same seed gives the same bytes."""
    model = TinyModel(path, shape, draw_weights(shape, seed))
    writer = GGUFWriter(path, "llama")
    add_shape(writer, model.shape)
    add_vocabulary(writer)
    for name, weights in model.weights.items():
        writer.add_tensor(name, weights)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return model


def draw_weights(shape: Shape, seed: int, vocabulary_size: int = VOCABULARY_SIZE) -> dict[str, NDArray[np.float32]]:
    """Normal numbers, scaled so that activations keep their size from layer to layer and attention is not flat."""
    random = np.random.default_rng(seed)

    def matrix(num_outputs: int, num_inputs: int, gain: float = 1.0) -> NDArray[np.float32]:
        drawn = random.standard_normal((num_outputs, num_inputs), dtype=np.float32)
        return drawn * np.float32(gain / num_inputs**0.5)

    def norm() -> NDArray[np.float32]:
        return np.float32(1) + random.standard_normal(shape.width, dtype=np.float32) / np.float32(8)

    kv_width = shape.num_kv_heads * shape.head_size
    weights = {"token_embd.weight": matrix(vocabulary_size, shape.width, gain=shape.width**0.5)}
    for layer in range(shape.num_layers):
        weights |= {
            f"blk.{layer}.attn_norm.weight": norm(),
            f"blk.{layer}.attn_q.weight": matrix(shape.width, shape.width, gain=1.5),
            f"blk.{layer}.attn_k.weight": matrix(kv_width, shape.width, gain=1.5),
            f"blk.{layer}.attn_v.weight": matrix(kv_width, shape.width),
            f"blk.{layer}.attn_output.weight": matrix(shape.width, shape.width),
            f"blk.{layer}.ffn_norm.weight": norm(),
            f"blk.{layer}.ffn_gate.weight": matrix(shape.feed_forward, shape.width),
            f"blk.{layer}.ffn_up.weight": matrix(shape.feed_forward, shape.width),
            f"blk.{layer}.ffn_down.weight": matrix(shape.width, shape.feed_forward),
        }
    return weights | {
        "output_norm.weight": norm(),
        "output.weight": matrix(vocabulary_size, shape.width, gain=LOGIT_SPREAD),
    }


def add_shape(writer: GGUFWriter, shape: Shape) -> None:
    writer.add_name("tiny")
    writer.add_context_length(shape.context_length)
    writer.add_embedding_length(shape.width)
    writer.add_block_count(shape.num_layers)
    writer.add_feed_forward_length(shape.feed_forward)
    writer.add_head_count(shape.num_heads)
    writer.add_head_count_kv(shape.num_kv_heads)
    writer.add_layer_norm_rms_eps(shape.norm_epsilon)
    writer.add_rope_dimension_count(shape.head_size)
    writer.add_rope_freq_base(shape.rope_base)


def add_vocabulary(writer: GGUFWriter, more: Sequence[str] = ()) -> None:
    """more: control tokens behind the others."""
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list([*map(_written, PIECES), *(special.value for special in Special), *more])
    kinds = [*[TokenType.NORMAL] * len(PIECES), *(special.kind for special in Special)]
    writer.add_token_types([*kinds, *[TokenType.CONTROL] * len(more)])
    writer.add_token_merges([f"{_written(left)} {_written(right)}" for left, right in MERGES])
    writer.add_bos_token_id(Special.BOS.id)
    writer.add_eos_token_id(Special.EOS.id)
    writer.add_eot_token_id(Special.EOT.id)
    writer.add_add_bos_token(True)
    writer.add_uint32("tokenizer.ggml.fim_pre_token_id", Special.FIM_PREFIX.id)
    writer.add_uint32("tokenizer.ggml.fim_suf_token_id", Special.FIM_SUFFIX.id)
    writer.add_uint32("tokenizer.ggml.fim_mid_token_id", Special.FIM_MIDDLE.id)
    writer.add_chat_template(CHAT_TEMPLATE)


def _written(piece: bytes) -> str:
    return "".join(BYTE_CHARACTERS[byte] for byte in piece)


def _byte_characters() -> list[str]:
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = (byte for byte in range(NUM_BYTES) if byte not in printable)
    stand_ins = {byte: chr(NUM_BYTES + place) for place, byte in enumerate(others)}
    return [stand_ins.get(byte, chr(byte)) for byte in range(NUM_BYTES)]


BYTE_CHARACTERS = _byte_characters()
"""The character as which GPT-2's vocabulary writes each byte: itself where it is printable, else one after U+00FF."""
