"""llama.cpp alone: one sequence, a whole prompt in one call, then token by token, always the most probable one.

A program of its own, so that its threads do not compete with an engine's. Takes a JSON object on stdin, prints one.
"""

import ctypes
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from llama_cpp import llama_cpp as lib
from numpy.typing import NDArray

from octavo.engine.runners.llama_cpp import machine
from octavo.engine.runners.llama_cpp.binding import FLASH_ATTENTION_ON, GGML_TYPES
from octavo.engine.specs import LlamaSpec

NUM_SHOWN = 8
"""Most probable tokens that are told for each position."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The tokenizer of a loaded model."""

    handle: Any

    @classmethod
    def of(cls, model: Any) -> "Vocabulary":
        return cls(lib.llama_model_get_vocab(model))

    @property
    def size(self) -> int:
        return int(lib.llama_vocab_n_tokens(self.handle))

    def tokenize(self, text: str) -> list[int]:
        """With the special tokens that the text spells, and those that the model wants around it."""
        data = text.encode()
        capacity = len(data) + 8
        tokens = (lib.llama_token * capacity)()
        count = lib.llama_tokenize(self.handle, data, len(data), tokens, capacity, True, True)
        assert count >= 0
        return tokens[:count]

    def piece(self, token: int) -> bytes:
        buffer = ctypes.create_string_buffer(256)
        length = lib.llama_token_to_piece(self.handle, token, buffer, len(buffer), 0, False)
        assert length >= 0
        return buffer.raw[:length]

    def ends_generation(self, token: int) -> bool:
        return bool(lib.llama_vocab_is_eog(self.handle, token))


class Decoder:
    """One sequence, with what the engine chooses on this machine."""

    def __init__(self, model: Any, context_length: int) -> None:
        here = machine.Machine.detect()
        cache = machine.preferred_cache_types(here)[0]
        params = lib.llama_context_default_params()
        params.n_ctx = context_length
        params.n_seq_max = 1
        params.n_batch = params.n_ubatch = LlamaSpec("").token_budget
        params.n_threads = params.n_threads_batch = machine.choose_threads(here)
        params.type_k = GGML_TYPES[cache.keys]
        params.type_v = GGML_TYPES[cache.values]
        params.flash_attn_type = FLASH_ATTENTION_ON
        self._vocabulary = Vocabulary.of(model)
        self._context = lib.llama_init_from_model(model, params)
        assert self._context

    def greedy(self, prompt: list[int], max_tokens: int) -> Iterator[dict[str, Any]]:
        """Each new token, and the log-probabilities of the most probable ones in its place."""
        lib.llama_memory_clear(lib.llama_get_memory(self._context), True)
        logprobs = self._decode(prompt)
        for _ in range(max_tokens):
            token = int(logprobs.argmax())
            shown = np.argsort(-logprobs)[:NUM_SHOWN]
            yield {"token": token, "top": {int(each): float(logprobs[each]) for each in shown}}
            if self._vocabulary.ends_generation(token):
                return
            logprobs = self._decode([token])

    def _decode(self, tokens: list[int]) -> NDArray[np.float64]:
        array = (lib.llama_token * len(tokens))(*tokens)  # the batch only points to it
        assert lib.llama_decode(self._context, lib.llama_batch_get_one(array, len(tokens))) == 0
        logits = np.ctypeslib.as_array(lib.llama_get_logits_ith(self._context, -1), shape=(self._vocabulary.size,))
        exact = logits.astype(np.float64) - logits.max()
        return exact - np.log(np.exp(exact).sum())


def load(path: str, *, only_vocabulary: bool) -> Any:
    lib.llama_log_set(_silence, ctypes.c_void_p(0))
    lib.llama_backend_init()
    params = lib.llama_model_default_params()
    params.vocab_only = only_vocabulary
    model = lib.llama_model_load_from_file(path.encode(), params)
    assert model
    return model


@lib.llama_log_callback
def _silence(_level: int, _text: bytes, _user_data: object) -> None:
    pass


def tokenize(request: dict[str, Any]) -> list[list[int]]:
    vocabulary = Vocabulary.of(load(request["model"], only_vocabulary=True))
    return [vocabulary.tokenize(text) for text in request["texts"]]


def decode(request: dict[str, Any]) -> list[dict[str, Any]]:
    model = load(request["model"], only_vocabulary=False)
    vocabulary = Vocabulary.of(model)
    decoder = Decoder(model, request["context_length"])
    answers = []
    for prompt in map(vocabulary.tokenize, request["prompts"]):
        steps = list(decoder.greedy(prompt, request["max_tokens"]))
        text = b"".join(vocabulary.piece(step["token"]) for step in steps).decode(errors="replace")
        answers.append({"prompt": prompt, "steps": steps, "text": text})
    return answers


if __name__ == "__main__":
    request = json.load(sys.stdin)
    json.dump(tokenize(request) if "texts" in request else decode(request), sys.stdout)
