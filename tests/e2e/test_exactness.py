"""Octavo's greedy answers beside llama.cpp's own decoding of one sequence."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass

import httpx
import pytest

from octavo.core.request import GenerationRequest
from octavo.core.sampling import SamplingParams
from octavo.engine.base import Engine

from .llama import ask_reference, running_engine
from .wire import CONTEXT_LENGTH, ask, completion, text_of

MAX_TOKENS = 20
NEAR_TIE = 0.25
"""Nats between two tokens, up to which a batch may round to the other one."""
PROMPTS = (
    "The fox",
    "Once upon a time",
    "Water boils at",
    "def fibonacci(n):\n",
    "The capital of France is",
    "1, 1, 2, 3, 5, 8,",
    "import numpy as np\n\n",
    "Dear Sir or Madam,",
    "Q: What is 2 + 2?\nA:",
    "Die Katze sitzt auf",
    "La vie est",
    "El perro corre por",
    "東京は",
    "你好，世界",
    "Привет, меня зовут",
    "🦊🐻🐼 are emoji of",
    "SELECT name FROM users WHERE",
    "<html><body><h1>",
    '{"name": "Octavo", "version":',
    "To be, or not to be",
    "The three states of matter are",
    "E = mc",
    "Roses are red,",
    "Ingredients:\n- 2 eggs\n-",
    "In 1492, Columbus",
    "She opened the door and",
    "The quick brown fox jumps over the lazy dog. " * 4,
    "A",
    "\n\n",
    "The opposite of hot is",
    "for i in range(10):",
    "<|im_start|>user\nWhat is a fox?<|im_end|>\n<|im_start|>assistant\n",
)


@dataclass(frozen=True, slots=True)
class Reference:
    """llama.cpp's answer. top: for each position, log-probabilities of its most probable tokens."""

    prompt: tuple[int, ...]
    tokens: tuple[int, ...]
    top: tuple[dict[int, float], ...]
    text: str


@pytest.fixture(scope="module")
def references() -> list[Reference]:
    answers = ask_reference(prompts=PROMPTS, max_tokens=MAX_TOKENS, context_length=CONTEXT_LENGTH)
    return [
        Reference(
            tuple(answer["prompt"]),
            tuple(step["token"] for step in answer["steps"]),
            tuple({int(token): value for token, value in step["top"].items()} for step in answer["steps"]),
            answer["text"],
        )
        for answer in answers
    ]


async def generate(engine: Engine, id: str, prompt: tuple[int, ...]) -> tuple[int, ...]:
    request = GenerationRequest(id, prompt, MAX_TOKENS, SamplingParams(temperature=0.0))
    async with aclosing(engine.generate(request)) as chunks:
        return tuple([token async for chunk in chunks for token in chunk.tokens])


def tie_width(reference: Reference, tokens: tuple[int, ...]) -> float:
    """Nats by which llama.cpp prefers its own token where the answers part."""
    place = next(i for i, (ours, theirs) in enumerate(zip(tokens, reference.tokens, strict=False)) if ours != theirs)
    top = reference.top[place]
    assert tokens[place] in top
    return top[reference.tokens[place]] - top[tokens[place]]


@pytest.mark.slow
def test_greedy_answers_of_a_server_are_those_of_llama_cpp_alone(
    references: list[Reference], client: httpx.Client
) -> None:
    answers = [ask(client, completion(prompt, max_tokens=MAX_TOKENS)) for prompt in PROMPTS]

    assert [text_of(answer) for answer in answers] == [reference.text for reference in references]
    assert [(answer["usage"]["prompt_tokens"], answer["usage"]["completion_tokens"]) for answer in answers] == [
        (len(reference.prompt), len(reference.tokens)) for reference in references
    ]


@pytest.mark.slow
async def test_greedy_tokens_are_those_of_llama_cpp_and_part_in_a_batch_only_at_near_ties(
    references: list[Reference], record_property: Callable[[str, object], None]
) -> None:
    async with running_engine() as engine:
        alone = [await generate(engine, f"alone-{i}", each.prompt) for i, each in enumerate(references)]
        batch = await asyncio.gather(
            *(generate(engine, f"batch-{i}", each.prompt) for i, each in enumerate(references))
        )

    assert alone == [reference.tokens for reference in references]
    pairs = list(zip(references, batch, strict=True))
    widths = [tie_width(reference, tokens) for reference, tokens in pairs if tokens != reference.tokens]
    report = f"{len(pairs) - len(widths)} of {len(pairs)} equal, differences at ties of {sorted(widths)} nats"
    record_property("in_a_batch", report)
    print(f"\n{len(pairs)} at a time: {report}")
    assert all(0 <= width < NEAR_TIE for width in widths)
