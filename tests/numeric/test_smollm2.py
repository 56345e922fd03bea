"""The demo model beside transformers on the same dequantised weights.

transformers computes with 32-bit floats throughout. So does the engine over a file of the dequantised weights and a
cache of 32-bit floats, and the two agree almost to the bit. As it is served, llama.cpp rounds what it multiplies with
4-bit weights to 8 bits, and keys and values to 16 or 8: then they agree about how probable a text is, not about digits.
"""

import ctypes
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio
from llama_cpp import llama_cpp as lib
from numpy.typing import NDArray

from octavo.cli.demo import find_demo_model
from octavo.engine.base import Engine
from octavo.engine.runners.llama_cpp import binding
from octavo.prompting import encode_text

from .engines import answer, running, scored
from .reference import Scores, ask_transformers

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

ALL_F32 = 0
"""llama.cpp's LLAMA_FTYPE_ALL_F32."""
EXACT = 1e-4
"""Nats; 0.00003 measured."""
MEAN, MAX, BIAS = 0.15, 1.7, 0.16
"""Nats that a token of the served model is off: on average, at most, and over a text, where over and under cancel out.

About twice what was measured with all cache types on a processor with AVX2: 0.068 to 0.071, 0.59 to 0.84, 0.02 to 0.08.
"""
SAME_BEST = 0.87
"""Share of places with the same most probable token; 0.938 to 0.972 measured, so about twice as many may differ."""
CLEAR = 0.7
"""Nats between two continuations from which on their order is not a matter of rounding; a sum was off by up to 0.31."""
KENDALL = 0.95
"""Kendall's rank correlation over 120 pairs; 1 measured."""
TEXTS = (
    "The quick brown fox jumps over the lazy dog, and the dog, which has seen it all before, goes back to sleep.",
    "Water boils at 100 degrees Celsius at sea level, but on a high mountain it boils at a lower temperature, because "
    "the air pressure is lower there.",
    "def fibonacci(n):\n    if n < 2:\n        return n\n    return fibonacci(n - 1) + fibonacci(n - 2)\n",
    "Once upon a time there was a little girl who lived with her grandmother in a small house at the edge of the "
    "forest.",
    "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\nThe capital of France is Paris."
    "<|im_end|>",
    "Die Katze sitzt auf der Matte und schaut aus dem Fenster, während draußen der Regen fällt.",
    '{"name": "Octavo", "version": "0.1.0", "tags": ["text", "generation"], "stars": 5, "private": false}',
    "SELECT name, COUNT(*) FROM users WHERE age > 30 GROUP BY name ORDER BY COUNT(*) DESC LIMIT 10;",
    "To be, or not to be, that is the question: whether 'tis nobler in the mind to suffer the slings and arrows of "
    "outrageous fortune.",
    "Purple elephants negotiate treaties with seventeen transparent umbrellas near yesterday's uncertain lighthouse.",
)
CONTINUATIONS = {
    "The capital of France is": (" Paris", " London", " a city", " known", " not", " banana"),
    "She opened the door and": (" walked in", " looked", " saw", " then", " very", " equations"),
    "2 + 2 =": (" 4", " 5", " 2", " four", " x", " the"),
    "The opposite of hot is": (" cold", " warm", " not", " hot", " a", " seven"),
    "import numpy as": (" np", " n", " numpy", " pd", " the", " an"),
    "The sky is": (" blue", " clear", " the", " green", " falling", " asleep"),
    "Roses are red, violets are": (" blue", " purple", " red", " also", " not", " running"),
    "He was born in": (" London", " the", " 1", " a", " New York", " blue"),
}
Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Sequences:
    """texts: their tokens. continued: each context with each of its continuations, and how many tokens those are."""

    texts: list[tuple[int, ...]]
    continued: list[tuple[tuple[int, ...], int]]

    @property
    def all(self) -> list[tuple[int, ...]]:
        return [*self.texts, *(tokens for tokens, _ in self.continued)]

    def split(self, scores: Sequence[Scores]) -> "View":
        """From the scores of all."""
        endings = zip(scores[len(self.texts) :], self.continued, strict=True)
        sums = iter([float(each.logprobs[-length:].sum()) for each, (_, length) in endings])
        return View(
            scores[: len(self.texts)], [np.array([next(sums) for _ in group]) for group in CONTINUATIONS.values()]
        )


@dataclass(frozen=True, slots=True)
class View:
    """What is thought of the texts, and of each context's continuations: the sums of their log-probabilities."""

    texts: Sequence[Scores]
    sums: Sequence[Values]

    @property
    def logprobs(self) -> Values:
        return np.concatenate([each.logprobs for each in self.texts])

    @property
    def best(self) -> NDArray[np.int64]:
        return np.concatenate([each.best for each in self.texts])


@dataclass(frozen=True, slots=True)
class Views:
    """served: by the engine with its defaults. exact: by the engine with 32-bit floats. reference: by transformers."""

    served: View
    exact: View
    reference: View


async def read_sequences(engine: Engine) -> Sequences:
    async def tokens_of(text: str) -> tuple[int, ...]:
        return await encode_text(engine.tokenizer, text, context_length=engine.info.context_length)

    continued = []
    for context, endings in CONTINUATIONS.items():
        for ending in endings:
            tokens = await tokens_of(ending)
            continued.append(((*await tokens_of(context), *tokens), len(tokens)))
    return Sequences([await tokens_of(text) for text in TEXTS], continued)


async def score_here(engine: Engine, sequences: Sequences) -> View:
    given = [(await answer(engine, scored(tokens, num_top=1))).prompt_logprobs for tokens in sequences.all]
    return sequences.split(
        [Scores(np.array([each.logprob for each in one]), np.array([each.top[0][0] for each in one])) for one in given]
    )


@pytest.fixture(scope="module")
def dequantised(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The demo model with 32-bit weights, 540 MB, written by llama.cpp itself."""
    binding.initialize()
    path = tmp_path_factory.mktemp("dequantised") / "model.gguf"
    params = lib.llama_model_quantize_default_params()
    params.ftype = ALL_F32
    params.allow_requantize = True
    assert lib.llama_model_quantize(str(find_demo_model()).encode(), str(path).encode(), ctypes.byref(params)) == 0
    yield path
    path.unlink()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def views(dequantised: Path) -> AsyncIterator[Views]:
    """One after the other: each takes the whole machine."""
    async with running(find_demo_model()) as engine:
        sequences = await read_sequences(engine)
        served = await score_here(engine, sequences)
    async with running(dequantised, cache_type_k="f32", cache_type_v="f32") as engine:
        exact = await score_here(engine, sequences)
    yield Views(served, exact, sequences.split(ask_transformers(find_demo_model(), sequences.all)))


def test_texts_are_of_a_useful_length(views: Views) -> None:
    assert all(16 <= len(each.logprobs) < 60 for each in views.reference.texts)


def test_with_32_bit_floats_all_logprobs_are_those_of_transformers(views: Views) -> None:
    off = np.abs(views.exact.logprobs - views.reference.logprobs).max()
    print(f"\n32-bit floats: off by {off:.1e} nats at most")
    assert off < EXACT
    assert (views.exact.best == views.reference.best).all()
    for ours, theirs in zip(views.exact.sums, views.reference.sums, strict=True):
        assert ours == pytest.approx(theirs, abs=3 * EXACT)


def test_as_served_tokens_are_as_probable_as_to_transformers_but_for_rounding(
    views: Views, record_property: Callable[[str, object], None]
) -> None:
    off = views.served.logprobs - views.reference.logprobs
    pairs = zip(views.served.texts, views.reference.texts, strict=True)
    biases = [abs(float((ours.logprobs - theirs.logprobs).mean())) for ours, theirs in pairs]
    same_best = float((views.served.best == views.reference.best).mean())
    report = (
        f"{len(off)} tokens off by {np.abs(off).mean():.3f} nats on average, {np.abs(off).max():.2f} at most, "
        f"a text by {max(biases):.3f} a token at most; {same_best:.1%} of the best tokens are the same"
    )
    record_property("as_served", report)
    print(f"\nas served: {report}")
    assert np.abs(off).mean() < MEAN
    assert np.abs(off).max() < MAX
    assert max(biases) < BIAS
    assert same_best > SAME_BEST


def test_as_served_continuations_rank_as_with_transformers(views: Views) -> None:
    pairs = [
        (ours[i] - ours[j], theirs[i] - theirs[j])
        for ours, theirs in zip(views.served.sums, views.reference.sums, strict=True)
        for i, j in combinations(range(len(ours)), 2)
    ]
    kendall = float(np.mean([np.sign(ours * theirs) for ours, theirs in pairs]))
    print(f"\nKendall's tau over {len(pairs)} pairs of continuations: {kendall:.3f}")
    assert kendall > KENDALL
    assert all(ours * theirs > 0 for ours, theirs in pairs if abs(theirs) > CLEAR)
