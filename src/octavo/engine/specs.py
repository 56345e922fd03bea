"""What it takes to build an engine, as plain data that can cross a process boundary."""

from typing import Annotated

import msgspec


class LlamaSpec(msgspec.Struct, frozen=True, tag="llama"):
    """A GGUF model on llama.cpp. None means: chosen on this machine (`octavo doctor` says what and why).

    path: the .gguf file. context_length: tokens per sequence. num_slots: sequences computed at the same time.
    cache_type_k, cache_type_v: ggml type names of the KV cache.
    token_budget: most tokens computed in one step.
    prefix_cache: bytes of the host's memory for the computed tokens of requests that have left their slots.
    speculation: guess tokens from what was there before and check them, where that is faster; none is drawn otherwise.
    draft: the .gguf file of a smaller model with the same vocabulary, whose guesses are checked too.
    mmproj: the .gguf file with which the model sees images.
    deterministic: the same request gives the same bits, whatever else runs; costs throughput.
    use_extra_buffers: let ggml repack weights for this processor (AMX among others); off is slower and safest.
    """

    path: str
    context_length: int | None = None
    num_slots: int | None = None
    num_threads: int | None = None
    cache_type_k: str | None = None
    cache_type_v: str | None = None
    token_budget: int = 512
    prefix_cache: int | None = None
    speculation: bool = True
    draft: str | None = None
    mmproj: str | None = None
    deterministic: bool = False
    use_extra_buffers: bool = True


class ScriptedSpec(msgspec.Struct, frozen=True, tag="scripted"):
    """A fake engine that says a given text; its switches are faults. See `octavo.engine.scripted`.

    piece_bytes: bytes of text per token; a token may split a character.
    delay: seconds between tokens. load_delay: seconds until it is ready.
    raise_at, hang_at, exit_at: index of the token in whose place the fault happens, None for never. A negative
        exit_at ends the process while it loads.
    """

    text: str = "The quick brown fox jumps over the lazy dog."
    piece_bytes: Annotated[int, msgspec.Meta(ge=1)] = 4
    delay: float = 0.0
    load_delay: float = 0.0
    raise_at: int | None = None
    hang_at: int | None = None
    exit_at: int | None = None
    context_length: int = 4096
    num_slots: int = 8


EngineSpec = LlamaSpec | ScriptedSpec
