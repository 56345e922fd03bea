"""What is served, and how it is computed."""

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ByteSize, field_validator

from octavo.config.option import option

MAX_SLOTS = 256
"""llama.cpp's LLAMA_MAX_SEQ."""
MAX_CONTEXT = 2**22
"""Times MAX_SLOTS, this still fits llama.cpp's 32-bit cell count."""

MODEL = "Model"


def _read_adapter(text: str) -> tuple[str, str]:
    """Id and path. Raises ValueError."""
    id, _, path = text.partition("=")
    if not (id and path):
        raise ValueError("must be ID=PATH")
    return id, path


class ModelSettings(BaseModel):
    models: tuple[str, ...] = option((), "A .gguf file; nothing is the demo model.", panel=MODEL, metavar="MODEL")
    engine: Literal["llama", "scripted"] = option(
        "llama", "llama, or scripted: a fake that says a given text.", panel=MODEL, metavar="NAME"
    )
    alias: str | None = option(
        None,
        "Name under which the model is served; the file's name otherwise.",
        panel=MODEL,
        metavar="NAME",
        min_length=1,
        max_length=200,
    )
    ctx: int | None = option(None, "Context of each sequence.", panel=MODEL, metavar="TOKENS", ge=2, le=MAX_CONTEXT)
    slots: int | None = option(
        None, "Sequences computed at the same time; more wait in turns.", panel=MODEL, metavar="N", ge=1, le=MAX_SLOTS
    )
    threads: int | None = option(None, "Threads of the engine.", panel=MODEL, metavar="N", ge=1, le=512)
    token_budget: int = option(
        512,
        "Tokens computed in a step: fewer for steadier streams beside long prompts, more for throughput.",
        panel=MODEL,
        metavar="TOKENS",
        ge=32,
        le=8192,
    )
    cache_type_k: str | None = option(
        None, "Type of the KV cache's keys: f32, f16, bf16, q8_0, q4_0.", panel=MODEL, metavar="TYPE", min_length=1
    )
    cache_type_v: str | None = option(
        None, "Type of the KV cache's values: the same names.", panel=MODEL, metavar="TYPE", min_length=1
    )
    prefix_cache: ByteSize | None = option(
        None,
        "Memory for computed tokens of earlier requests, beside that of the slots: bytes, or as in 512MiB; 0 is none.",
        panel=MODEL,
        metavar="SIZE",
    )
    speculation: bool = option(
        True, "Check several guessed tokens in a step where that is faster; each is drawn as without.", panel=MODEL
    )
    draft: str | None = option(
        None,
        "A .gguf file of a smaller model with the same vocabulary: it guesses too, where that is faster.",
        panel=MODEL,
        metavar="GGUF",
        min_length=1,
    )
    mmproj: str | None = option(
        None, "A .gguf file with which the model sees images (mmproj).", panel=MODEL, metavar="GGUF", min_length=1
    )
    adapter: tuple[str, ...] = option(
        (),
        "A LoRA adapter to serve beside the model, a .gguf file; may be given several times.",
        panel=MODEL,
        metavar="ID=PATH",
    )
    adapter_dir: str | None = option(
        None,
        "Folder from which clients may load adapters; without it they may load none.",
        panel=MODEL,
        metavar="FOLDER",
        min_length=1,
    )
    allow_adapter_downloads: bool = option(
        False, "Let clients load adapters from Hugging Face (hf:owner/repo).", panel=MODEL
    )
    deterministic: bool = option(
        False, "The same request gives the same bits, whatever else runs; costs throughput.", panel=MODEL
    )

    @field_validator("models", mode="before")
    @classmethod
    def _accept_one_string(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value

    @field_validator("models")
    @classmethod
    def _refuse_later_models(cls, models: tuple[str, ...]) -> tuple[str, ...]:
        if len(models) > 1:
            raise ValueError("more than one model is not yet supported")
        if any(model.startswith("hf:") for model in models):
            raise ValueError("downloads from Hugging Face are not yet supported; give the path of a .gguf file")
        return models

    @field_validator("adapter")
    @classmethod
    def _check_adapters(cls, adapters: tuple[str, ...]) -> tuple[str, ...]:
        if len({_read_adapter(adapter)[0] for adapter in adapters}) < len(adapters):
            raise ValueError("two adapters have the same id")
        return adapters

    @field_validator("engine", mode="before")
    @classmethod
    def _refuse_later_engines(cls, engine: object) -> object:
        if engine == "vllm":
            raise ValueError("this engine is not yet supported; there are llama and scripted")
        return engine

    @property
    def adapters(self) -> Sequence[tuple[str, str]]:
        """Ids and paths of `adapter`."""
        return [_read_adapter(text) for text in self.adapter]
