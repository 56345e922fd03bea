"""Adapters in llama.cpp's runner: one at a time, and nothing of one is left when another one is used."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from numeric.tiny_gguf import TinyModel, write_tiny_gguf
from numeric.tiny_lora import ATTENTION, write_lora, write_tiny_lora
from octavo.core.adapters import Adapter, digest_of
from octavo.engine.batching.runner import ForwardBatch, RunnerLimits
from octavo.engine.runners.llama_cpp import binding
from octavo.engine.runners.llama_cpp.binding import ContextSettings
from octavo.engine.runners.llama_cpp.context import LlamaRunner
from octavo.engine.runners.llama_cpp.model import load_model
from octavo.errors import AdapterRefused
from support.bad_adapters import pair

PROMPT = tuple(np.random.default_rng(0).integers(0, 256, 20).tolist())
NUM_SLOTS = 3


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> TinyModel:
    return write_tiny_gguf(tmp_path_factory.mktemp("adapted") / "tiny.gguf")


@pytest.fixture(scope="module")
def adapters(tiny: TinyModel, tmp_path_factory: pytest.TempPathFactory) -> tuple[Adapter, Adapter, Adapter]:
    """Two, and the first one at another scale."""
    folder = tmp_path_factory.mktemp("files")
    first = write_tiny_lora(folder / "first.gguf", tiny, seed=1)
    second = write_tiny_lora(folder / "second.gguf", tiny, seed=2, rank=7, matrices=ATTENTION)
    return described("first", first.path), described("second", second.path), described("half", first.path, 0.5)


def described(key: str, path: Path, scale: float = 1.0) -> Adapter:
    with path.open("rb") as file:
        return Adapter(key, str(path), digest_of(file), scale)


@contextmanager
def runner_of(tiny: TinyModel, *adapters: Adapter, cache_type: str = "f16") -> Iterator[LlamaRunner]:
    binding.initialize()
    model = load_model(tiny.path, use_extra_buffers=False, on_progress=lambda fraction: None)
    context = binding.Context(model, ContextSettings(256, NUM_SLOTS, 1, 64, cache_type, cache_type))
    runner = LlamaRunner(model, context, RunnerLimits(NUM_SLOTS, 256, 64, model.vocabulary_size, max_logits=64))
    try:
        for adapter in adapters:
            runner.load_adapter(adapter)
        yield runner
    finally:
        runner.close()


def logits(
    runner: LlamaRunner, adapter: str, tokens: tuple[int, ...] = PROMPT, slot: int = 0, start: int = 0
) -> np.ndarray:
    batch = ForwardBatch.build([(slot, start, np.array(tokens, np.int32), 1)], adapter=adapter)
    return runner.forward(batch)[0].copy()


def anew(runner: LlamaRunner, adapter: str) -> np.ndarray:
    runner.truncate(0, 0)
    return logits(runner, adapter)


def answered(runner: LlamaRunner, adapter: str, slot: int, tokens: range) -> list[np.ndarray]:
    """The logits of a few steps of one sequence that has computed the prompt."""
    return [logits(runner, adapter, (token,), slot, len(PROMPT) + place) for place, token in enumerate(tokens)]


def test_each_adapter_gives_other_logits_and_the_model_alone_again_its_own(
    tiny: TinyModel, adapters: tuple[Adapter, ...]
) -> None:
    with runner_of(tiny, *adapters) as runner:
        rows = {key: anew(runner, key) for key in ("", "first", "second", "half")}
        again = {key: anew(runner, key) for key in reversed(rows)}
    assert all(np.array_equal(rows[key], again[key]) for key in rows)
    keys = list(rows)
    for one in keys:
        assert all(not np.allclose(rows[one], rows[other], atol=0.01) for other in keys if other != one)


@pytest.mark.parametrize("cache_type", ["f16", "f32", "bf16"])
def test_sequences_in_turns_have_the_bits_that_they_have_without_others_between(
    tiny: TinyModel, adapters: tuple[Adapter, ...], cache_type: str
) -> None:
    keys, tokens = ("", "first", "second"), range(30, 40)
    with runner_of(tiny, *adapters, cache_type=cache_type) as runner:
        apart = []
        for slot, key in enumerate(keys):
            logits(runner, key, PROMPT, slot)
            apart.append(answered(runner, key, slot, tokens))
            runner.truncate(slot, 0)
        for slot, key in enumerate(keys):
            logits(runner, key, PROMPT, slot)
        in_turns: list[list[np.ndarray]] = [[] for _ in keys]
        for place, token in enumerate(tokens):
            for slot, key in enumerate(keys):
                in_turns[slot].append(logits(runner, key, (token,), slot, len(PROMPT) + place))
    assert np.array_equal(apart, in_turns)


def test_the_adapter_in_use_can_be_unloaded(tiny: TinyModel, adapters: tuple[Adapter, ...]) -> None:
    with runner_of(tiny, *adapters) as runner:
        plain, adapted = anew(runner, ""), anew(runner, "first")
        runner.unload_adapter("first")
        assert np.array_equal(anew(runner, ""), plain)
        runner.load_adapter(adapters[0])
        assert np.array_equal(anew(runner, "first"), adapted)


def test_unloading_one_adapter_leaves_the_others(tiny: TinyModel, adapters: tuple[Adapter, ...]) -> None:
    with runner_of(tiny, *adapters) as runner:
        second, half = anew(runner, "second"), anew(runner, "half")
        runner.unload_adapter("first")
        runner.unload_adapter("never loaded")
        assert np.array_equal(anew(runner, "half"), half)
        assert np.array_equal(anew(runner, "second"), second)


def test_a_runner_is_closed_with_an_adapter_in_use(tiny: TinyModel, adapters: tuple[Adapter, ...]) -> None:
    with runner_of(tiny, *adapters) as runner:
        assert np.isfinite(anew(runner, "second")).all()


def test_a_file_that_changed_or_is_gone_is_refused_and_changes_nothing(
    tiny: TinyModel, adapters: tuple[Adapter, ...], tmp_path: Path
) -> None:
    path = tmp_path / "changing.gguf"
    path.write_bytes(Path(adapters[0].path).read_bytes())
    named = described("changing", path)
    with runner_of(tiny, adapters[1]) as runner:
        rows = [anew(runner, key) for key in ("", "second")]
        path.write_bytes(path.read_bytes() + b"\0")
        with pytest.raises(AdapterRefused, match="has changed"):
            runner.load_adapter(named)
        path.unlink()
        with pytest.raises(AdapterRefused, match="cannot be read"):
            runner.load_adapter(named)
        assert np.array_equal([anew(runner, key) for key in ("", "second")], rows)


def test_what_is_no_adapter_for_the_model_is_refused(tiny: TinyModel, tmp_path: Path) -> None:
    path = tmp_path / "wrong.gguf"
    write_lora(path, pair("blk.99.attn_q.weight"))
    with runner_of(tiny) as runner:
        with pytest.raises(AdapterRefused, match="not a LoRA adapter for this model"):
            runner.load_adapter(described("wrong", path))
        assert np.isfinite(anew(runner, "")).all()


def test_an_adapter_that_is_meant_for_some_tokens_only_is_refused(tiny: TinyModel, tmp_path: Path) -> None:
    path = tmp_path / "activated.gguf"
    write_lora(path, pair(), invocation_tokens=[1, 2])
    with runner_of(tiny) as runner, pytest.raises(AdapterRefused, match="aLoRA"):
        runner.load_adapter(described("activated", path))
