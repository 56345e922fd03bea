"""transformers over the dequantised weights of a GGUF file of the architecture "llama", with 32-bit floats.

A program of its own, so that torch's threads do not compete with an engine's. Takes a JSON object on stdin: `model`, a
path, and `sequences`, lists of token ids. Prints, for each sequence, how probable every token but the first is and
which token is the most probable in its place.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
import transformers
from numpy.typing import NDArray

NUM_THREADS = 1
BATCH = 16
NAMES = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
"""llama.cpp's names of tensors, without block and suffix, as transformers calls them."""


def load(path: Path) -> transformers.LlamaForCausalLM:
    reader = gguf.GGUFReader(path)
    weights = {name: torch.from_numpy(values.copy()) for name, values in read_weights(reader)}
    config = read_config(reader, is_tied="lm_head.weight" not in weights)
    weights.setdefault("lm_head.weight", weights["model.embed_tokens.weight"])
    model = transformers.LlamaForCausalLM(config).float().eval()
    model.load_state_dict(weights, strict=True)
    return model


def read_config(reader: gguf.GGUFReader, *, is_tied: bool) -> transformers.LlamaConfig:
    return transformers.LlamaConfig(
        vocab_size=len(field(reader, "tokenizer.ggml.tokens")),
        hidden_size=field(reader, "llama.embedding_length"),
        intermediate_size=field(reader, "llama.feed_forward_length"),
        num_hidden_layers=field(reader, "llama.block_count"),
        num_attention_heads=field(reader, "llama.attention.head_count"),
        num_key_value_heads=field(reader, "llama.attention.head_count_kv"),
        max_position_embeddings=field(reader, "llama.context_length"),
        rms_norm_eps=field(reader, "llama.attention.layer_norm_rms_epsilon"),
        rope_parameters={"rope_type": "default", "rope_theta": field(reader, "llama.rope.freq_base")},
        tie_word_embeddings=is_tied,
        attn_implementation="eager",
    )


def read_weights(reader: gguf.GGUFReader) -> Iterator[tuple[str, NDArray[np.float32]]]:
    heads = {
        "attn_q": field(reader, "llama.attention.head_count"),
        "attn_k": field(reader, "llama.attention.head_count_kv"),
    }
    for tensor in reader.tensors:
        *block, kind, _ = tensor.name.split(".")
        values = gguf.dequantize(tensor.data, tensor.tensor_type)
        layer = f"model.layers.{block[1]}." if block else ""
        yield f"{layer}{NAMES[kind]}.weight", part_halves(values, heads[kind]) if kind in heads else values


def part_halves(values: NDArray[np.float32], num_heads: int) -> NDArray[np.float32]:
    """Rows of each head from llama.cpp's order, where rows 2i and 2i + 1 turn together, to i and i + d / 2."""
    pairs = values.reshape(num_heads, -1, 2, values.shape[1])
    return pairs.swapaxes(1, 2).reshape(values.shape)


def field(reader: gguf.GGUFReader, name: str) -> Any:
    found = reader.get_field(name)
    assert found is not None, name
    return found.contents()


@torch.inference_mode()
def score(model: transformers.LlamaForCausalLM, sequences: list[list[int]]) -> Iterator[dict[str, Any]]:
    """All at a time: what is behind a token changes nothing about it, so shorter ones may be filled up."""
    longest = max(map(len, sequences))
    filled = torch.tensor([[*tokens, *[0] * (longest - len(tokens))] for tokens in sequences])
    for tokens, logits in zip(sequences, model(filled).logits, strict=True):
        logprobs = logits[: len(tokens) - 1].double().log_softmax(dim=-1)
        of_tokens = logprobs.gather(1, torch.tensor(tokens[1:])[:, None])[:, 0]
        yield {"logprobs": of_tokens.tolist(), "best": logprobs.argmax(dim=-1).tolist()}


if __name__ == "__main__":
    request = json.load(sys.stdin)
    torch.set_num_threads(NUM_THREADS)
    model = load(Path(request["model"]))
    asked = request["sequences"]
    batches = (asked[start : start + BATCH] for start in range(0, len(asked), BATCH))
    json.dump([scores for batch in batches for scores in score(model, batch)], sys.stdout)
