"""logit_bias, seed and the edges of sampling."""

import asyncio
from collections import Counter
from math import exp, log

import pytest

from conformance.ask import CHAT, COMPLETIONS, Asker, Wire, told
from conformance.checks import conforms
from conformance.models import babbling, constant
from conformance.served import served

BOTH = pytest.mark.parametrize("path", [COMPLETIONS, CHAT])
ABC = {"a": log(0.5), "b": log(0.3), "c": log(0.2)}
"""Logits of a model that draws a in half of all cases, and so on."""
EDGES = [
    {"temperature": 999_999},
    {"temperature": -0.1},
    {"top_p": -1},
    {"top_p": 1.1},
    {"min_p": 1.1},
    {"min_p": -0.1},
    {"top_k": -2},
    {"repetition_penalty": 0},
    {"repetition_penalty": -1},
    {"frequency_penalty": 2.1},
    {"presence_penalty": -2.1},
    {"seed": 2**63},
    {"seed": 1.5},
    {"logit_bias": {"97": 101}},
    {"logit_bias": {"a": 1}},
    {"temperature": "1"},
]


async def drawn(logits: dict[str, float], **fields: object) -> Counter[str]:
    """How often each character comes in 400 draws at temperature 1, where the fields say nothing else."""
    async with served(constant(logits)) as server:
        answer = await server.answer(COMPLETIONS, **{"temperature": 1, "seed": 3, "max_tokens": 400, **fields})
    return Counter(told(answer).text)


async def greedy(logits: dict[str, float], max_tokens: int, prompt: str = "x", **fields: object) -> str:
    async with served(constant(logits)) as server:
        return (await server.told(COMPLETIONS, prompt=prompt, max_tokens=max_tokens, **fields)).text


@conforms("logit_bias", rows=(56,))
@BOTH
@pytest.mark.parametrize("token", ["191222", "999999999999999999"])
async def test_a_bias_for_an_id_outside_the_vocabulary_is_refused_and_harms_nobody(path: str, token: str) -> None:
    async with served(constant(ABC)) as server:
        await server.refused(path, 422, "logit_bias", logit_bias={token: 1})
        assert told(await server.answer(path, max_tokens=2)).text == "aa"


@conforms("logit_bias", rows=(58,))
async def test_a_request_changes_no_state_of_the_server_its_bias_ends_with_it() -> None:
    async with served(constant(ABC)) as server:
        before = await server.told(COMPLETIONS, max_tokens=3)
        banned = await server.told(COMPLETIONS, max_tokens=3, logit_bias={"97": -100})
        both = [server.answer(COMPLETIONS, max_tokens=30, logit_bias=bias) for bias in ({"99": 100}, None)]
        forced, beside = await asyncio.gather(*both)
        after = await server.told(COMPLETIONS, max_tokens=3)
    assert (before.text, banned.text, after.text) == ("aaa", "bbb", "aaa")
    assert (told(forced).text, told(beside).text) == ("c" * 30, "a" * 30)


@conforms("min_p", "logit_bias", rows=(59,))
async def test_min_p_is_measured_behind_bias_and_temperature() -> None:
    assert set(await drawn(ABC, min_p=0.5)) == {"a", "b"}
    assert set(await drawn(ABC, min_p=0.5, logit_bias={"99": 2})) == {"c"}
    assert set(await drawn(ABC, min_p=0.5, temperature=2)) == {"a", "b", "c"}
    assert set(await drawn(ABC, min_p=1, temperature=2)) == {"a"}


@conforms("seed", rows=(61,))
@BOTH
async def test_the_same_seed_gives_the_same_answer_and_another_seed_another(path: str) -> None:
    async with served(babbling()) as server:
        fields: Wire = {"temperature": 1, "max_tokens": 20, "n": 3}
        first = await server.answer(path, seed=1, **fields)
        again, _ = await asyncio.gather(
            server.answer(path, seed=1, **fields), server.answer(path, seed=9, **{**fields, "n": 20})
        )
        other = await server.answer(path, seed=2, **fields)
    assert first["choices"] == again["choices"]
    assert len({told(answer, index).text for answer in (first, other) for index in range(3)}) == 6


@conforms("seed")
async def test_sample_i_has_a_stream_of_its_own_whatever_n_is() -> None:
    async with served(babbling()) as server:
        fields: Wire = {"temperature": 1, "max_tokens": 20, "seed": 5}
        many = await server.answer(COMPLETIONS, n=4, **fields)
        one = await server.answer(COMPLETIONS, **fields)
        unseeded = [await server.answer(COMPLETIONS, temperature=1, max_tokens=20) for _ in range(2)]
    assert told(one) == told(many, 0)
    assert len({told(many, index).text for index in range(4)}) == 4
    assert told(unseeded[0]).text != told(unseeded[1]).text


@conforms("temperature", "seed", rows=(62,))
async def test_answers_of_a_deterministic_server_do_not_change_under_load(demo: Asker) -> None:
    asked: list[Wire] = [
        {"prompt": "The capital of France is", "max_tokens": 12, "logprobs": 2},
        {"prompt": "Once upon a time", "max_tokens": 12, "temperature": 1, "seed": 11, "logprobs": 2},
    ]
    alone = [told(await demo.answer(COMPLETIONS, **each)) for each in asked]
    load = [demo.answer(COMPLETIONS, prompt=f"Number {i}:", max_tokens=6 + i, temperature=1) for i in range(6)]
    *_, first, second = await asyncio.gather(*load, *(demo.answer(COMPLETIONS, **each) for each in asked))
    assert [told(first), told(second)] == alone


@conforms("top_k", rows=(64,))
@BOTH
@pytest.mark.parametrize("top_k", [1.5, 1.0, "1", True])
async def test_a_top_k_that_is_no_integer_is_refused(path: str, top_k: object) -> None:
    async with served(constant(ABC)) as server:
        await server.refused(path, 422, "top_k", top_k=top_k)
        assert not server.requests


@conforms(
    "temperature",
    "top_p",
    "min_p",
    "top_k",
    "frequency_penalty",
    "presence_penalty",
    "repetition_penalty",
    "seed",
    "logit_bias",
    rows=(65,),
)
@BOTH
@pytest.mark.parametrize("fields", EDGES, ids=str)
async def test_values_out_of_range_are_refused_by_name(path: str, fields: Wire) -> None:
    async with served(constant(ABC)) as server:
        await server.refused(path, 422, next(iter(fields)), **fields)
        assert not server.requests


@conforms("presence_penalty", "frequency_penalty", rows=(67,))
async def test_presence_and_frequency_count_generated_tokens_only() -> None:
    logits = {"a": 2.0, "b": 1.0}
    assert await greedy(logits, 4, prompt="aaaa", presence_penalty=1.5) == "abaa"
    assert await greedy(logits, 5, prompt="aaaa", frequency_penalty=0.4) == "aaaba"


@conforms("repetition_penalty", rows=(68,))
async def test_the_repetition_penalty_counts_prompt_and_output() -> None:
    logits = {"a": 3.0, "b": 2.0, "c": 1.4}
    assert await greedy(logits, 3, prompt="x", repetition_penalty=2) == "aba"
    assert await greedy(logits, 3, prompt="a", repetition_penalty=2) == "baa"
    assert await greedy(logits, 3, prompt="ab", repetition_penalty=2.2) == "caa"
    assert await greedy({"a": -1.0, "b": -1.5}, 1, prompt="a", repetition_penalty=2) == "b"


@conforms("presence_penalty", "frequency_penalty", rows=(70,))
async def test_a_penalty_that_is_set_has_an_effect_with_no_other_setting() -> None:
    logits = {"a": 1.0, "b": 0.5}
    for penalty in ({"presence_penalty": 1}, {"frequency_penalty": 1}, {"repetition_penalty": 3}):
        assert (await greedy(logits, 2, **penalty)) == "ab"
    assert await greedy(logits, 40, presence_penalty=-2) == "a" * 40


@conforms("temperature")
async def test_temperature_of_zero_takes_the_first_of_equals_and_temperature_shapes_the_rest() -> None:
    assert await greedy({"b": 1.0, "a": 1.0}, 5) == "aaaaa"
    even = await drawn({"a": 2.0, "b": 0.0}, temperature=2)
    sharp = await drawn({"a": 2.0, "b": 0.0}, temperature=0.5)
    assert even["a"] / 400 == pytest.approx(1 / (1 + exp(-1)), abs=0.08)
    assert sharp["a"] / 400 == pytest.approx(1 / (1 + exp(-4)), abs=0.05)


@conforms("top_p")
async def test_top_p_keeps_the_smallest_set_that_reaches_it_the_crossing_token_included() -> None:
    assert set(await drawn(ABC, top_p=0.45)) == {"a"}
    assert set(await drawn(ABC, top_p=0.55)) == {"a", "b"}
    assert set(await drawn(ABC, top_p=0.85)) == set(await drawn(ABC, top_p=1)) == {"a", "b", "c"}
    assert set(await drawn(ABC, top_p=0)) == {"a"}


@conforms("top_k")
async def test_top_k_keeps_the_k_most_probable_tokens() -> None:
    assert set(await drawn(ABC, top_k=1)) == {"a"}
    assert set(await drawn(ABC, top_k=2)) == {"a", "b"}
    for off in (0, -1, 3, 1000, None):
        assert set(await drawn(ABC, top_k=off)) == {"a", "b", "c"}


@conforms("logit_bias")
async def test_a_bias_is_added_to_the_logits_and_its_ends_ban_and_force() -> None:
    assert await greedy(ABC, 2, logit_bias={"98": 1}) == "bb"
    assert await greedy(ABC, 2, logit_bias={"97": -100, "98": -100}) == "cc"
    assert await greedy(ABC, 2, logit_bias={"122": 100}) == "zz"
    assert await greedy(ABC, 2, logit_bias={"98": None}) == "aa"


@conforms("temperature", "top_p")
async def test_draws_follow_the_models_probabilities_by_default() -> None:
    async with served(constant(ABC)) as server:
        body = {"model": "given", "prompt": "x", "seed": 3, "max_tokens": 400}
        response = await server.client.post(COMPLETIONS, json=body)
    counts = Counter(told(response.json()).text)
    assert [counts[letter] / 400 for letter in "abc"] == pytest.approx([0.5, 0.3, 0.2], abs=0.08)
