"""What a llama model computes, written out in numpy with 64-bit floats: slow, and easy to check.

The architecture is that of LLaMA (arXiv 2302.13971); each function says where its formula comes from. Shapes: n tokens,
h heads of d numbers.
"""

import numpy as np
from numpy.typing import NDArray

from .tiny_gguf import Shape, TinyModel

Array = NDArray[np.float64]


def logprobs(model: TinyModel, tokens: tuple[int, ...]) -> Array:
    """Natural logarithms of the distribution behind each token, shape (n, vocabulary)."""
    scores = logits(model, tokens)
    scores -= scores.max(axis=-1, keepdims=True)
    return scores - np.log(np.exp(scores).sum(axis=-1, keepdims=True))


def logits(model: TinyModel, tokens: tuple[int, ...]) -> Array:
    """Shape (n, vocabulary)."""
    weights = {name: values.astype(np.float64) for name, values in model.weights.items()}
    hidden = weights["token_embd.weight"][list(tokens)]
    for layer in range(model.shape.num_layers):
        prefix = f"blk.{layer}."
        block = {name.removeprefix(prefix): values for name, values in weights.items() if name.startswith(prefix)}
        hidden = hidden + attention(block, rms_norm(hidden, block["attn_norm.weight"], model.shape), model.shape)
        hidden = hidden + feed_forward(block, rms_norm(hidden, block["ffn_norm.weight"], model.shape))
    return rms_norm(hidden, weights["output_norm.weight"], model.shape) @ weights["output.weight"].T


def rms_norm(hidden: Array, gain: Array, shape: Shape) -> Array:
    """arXiv 1910.07467: divide by the root mean square."""
    return hidden / np.sqrt((hidden**2).mean(axis=-1, keepdims=True) + shape.norm_epsilon) * gain


def attention(block: dict[str, Array], hidden: Array, shape: Shape) -> Array:
    """Scaled dot products (arXiv 1706.03762) over what came before; heads share keys and values (arXiv 2305.13245)."""
    queries = rotate(split_heads(hidden @ block["attn_q.weight"].T, shape), shape)
    keys = rotate(split_heads(hidden @ block["attn_k.weight"].T, shape), shape)
    values = split_heads(hidden @ block["attn_v.weight"].T, shape)
    num_sharing = shape.num_heads // shape.num_kv_heads
    keys, values = keys.repeat(num_sharing, axis=0), values.repeat(num_sharing, axis=0)
    scores = queries @ keys.transpose(0, 2, 1) / np.sqrt(shape.head_size)
    scores[:, ~np.tri(len(hidden), dtype=np.bool_)] = -np.inf
    shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
    shares /= shares.sum(axis=-1, keepdims=True)
    heads = shares @ values
    return heads.transpose(1, 0, 2).reshape(len(hidden), shape.width) @ block["attn_output.weight"].T


def split_heads(vectors: Array, shape: Shape) -> Array:
    """From (n, h·d) to (h, n, d)."""
    return vectors.reshape(len(vectors), -1, shape.head_size).transpose(1, 0, 2)


def rotate(heads: Array, shape: Shape) -> Array:
    """Rotary positions (arXiv 2104.09864, equation 34): neighbours (2i, 2i + 1) turn by position · base^(-2i / d).

    This is the paper's layout, which a GGUF file of this architecture has; transformers pairs i with i + d / 2.
    """
    frequencies = shape.rope_base ** (-np.arange(0, shape.head_size, 2) / shape.head_size)
    turns = np.exp(1j * np.outer(np.arange(heads.shape[1]), frequencies))
    turned = (heads[..., 0::2] + 1j * heads[..., 1::2]) * turns
    return np.stack([turned.real, turned.imag], axis=-1).reshape(heads.shape)


def feed_forward(block: dict[str, Array], hidden: Array) -> Array:
    """SwiGLU (arXiv 2002.05202)."""
    gate = hidden @ block["ffn_gate.weight"].T
    activated = gate / (1 + np.exp(-gate))
    return (activated * (hidden @ block["ffn_up.weight"].T)) @ block["ffn_down.weight"].T
