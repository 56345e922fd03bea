"""Prompt shapes, order, n and best_of."""

from typing import Any

import pytest

from conformance.ask import CHAT, COMPLETIONS, Asker, Wire, fold, told
from conformance.checks import conforms
from conformance.models import START, babbling, saying
from conformance.served import Served, served

BOTH = pytest.mark.parametrize("path", [COMPLETIONS, CHAT])


def indexes(answer: Wire) -> list[int]:
    return [choice["index"] for choice in answer["choices"]]


def texts(answer: Wire) -> list[str]:
    return [told(answer, index).text for index in sorted(indexes(answer))]


def ends(chunks: list[Wire]) -> list[int]:
    """The indexes of the chunks with a finish reason."""
    return [choice["index"] for chunk in chunks for choice in chunk["choices"] if choice["finish_reason"] is not None]


@conforms("prompt", rows=(43,))
async def test_a_list_of_token_ids_is_one_prompt() -> None:
    async with served(babbling()) as server:
        by_text = await server.answer(COMPLETIONS, prompt="abc")
        by_ids = await server.answer(COMPLETIONS, prompt=[97, 98, 99])
        assert [request.prompt_tokens for request in server.requests] == [(97, 98, 99)] * 2
    assert texts(by_text) == texts(by_ids)
    assert by_ids["usage"]["prompt_tokens"] == 3


@conforms("prompt", "n", "choices", rows=(44,))
@pytest.mark.parametrize("prompts", [["a", "bb", "ccc"], [[97], [98, 98], [99, 99, 99]]], ids=str)
async def test_each_of_several_prompts_has_its_choices_in_order(prompts: list[Any]) -> None:
    async with served(babbling()) as server:
        alone = [texts(await server.answer(COMPLETIONS, prompt=prompt)) for prompt in prompts]
        together = await server.answer(COMPLETIONS, prompt=prompts, n=2)
        chunks = await server.chunks(COMPLETIONS, prompt=prompts, n=2)
    expected = [text for [text] in alone for _ in range(2)]
    assert len(set(expected)) == 3
    assert indexes(together) == list(range(6))
    assert texts(together) == expected == [fold(chunks, index).text for index in range(6)]


@conforms("prompt", rows=(46,))
@pytest.mark.parametrize("prompt", [[999_999_999], [[1], [999_999_999]], [-1], [2**63], [1.0], [True]], ids=str)
async def test_an_id_outside_the_vocabulary_is_refused_and_harms_nobody(demo: Asker, prompt: Any) -> None:
    await demo.refused(COMPLETIONS, 422, "prompt", prompt=prompt)
    assert (await demo.answer(COMPLETIONS, prompt=[1], max_tokens=1))["usage"]["completion_tokens"] == 1


@conforms("best_of", "n", "usage", rows=(47,))
@pytest.mark.parametrize("length", [{"max_tokens": 6}, {"max_tokens": 30, "stop": "e"}], ids=["equal", "unequal"])
async def test_of_best_of_candidates_the_n_of_the_highest_mean_log_probability_come_back_best_first(
    length: Wire,
) -> None:
    fields: Wire = {"prompt": "abc", "temperature": 1.5, "seed": 7, **length}
    async with served(babbling()) as server:
        candidates = await server.answer(COMPLETIONS, n=5, logprobs=0, **fields)
        best = await server.answer(COMPLETIONS, n=2, best_of=5, **fields)
        scored = await server.answer(COMPLETIONS, n=2, best_of=5, logprobs=0, **fields)
        await check_stream_refused(server, fields)
    ranked = sorted(candidates["choices"], key=mean_logprob, reverse=True)
    assert texts(best) == [choice["text"] for choice in ranked[:2]]
    assert indexes(best) == [0, 1]
    assert best["usage"] == candidates["usage"]
    assert best["choices"][0]["logprobs"] is None
    assert [told(scored, index).entries for index in (0, 1)] == [each["logprobs"]["content"] for each in ranked[:2]]


def mean_logprob(choice: Wire) -> float:
    values = choice["logprobs"]["token_logprobs"]
    return float(sum(values)) / len(values)


async def check_stream_refused(server: Served, fields: Wire) -> None:
    await server.refused(COMPLETIONS, 422, "best_of", n=2, best_of=5, stream=True, **fields)
    assert len(ends(await server.chunks(COMPLETIONS, n=2, best_of=2, **fields))) == 2


@conforms("best_of", "n")
@pytest.mark.parametrize(
    "fields", [{"n": 3, "best_of": 2}, {"best_of": 0}, {"best_of": 129}, {"best_of": 1.5}], ids=str
)
async def test_a_best_of_below_n_or_out_of_range_is_refused(fields: Wire) -> None:
    async with served(saying("x")) as server:
        await server.refused(COMPLETIONS, 422, "best_of", **fields)
        assert not server.requests
        assert len((await server.answer(COMPLETIONS, best_of=128))["choices"]) == 1


@conforms("n", "stream", "finish_reason", rows=(49,))
@BOTH
async def test_each_choice_of_a_stream_ends_under_its_own_index(path: str) -> None:
    async with served(saying("AB", "CD")) as server:
        chunks = await server.chunks(path, n=3)
    assert sorted(ends(chunks)) == [0, 1, 2]
    assert [fold(chunks, index).text for index in range(3)] == ["ABCD"] * 3


@conforms("n", "choices", rows=(50,))
@BOTH
@pytest.mark.parametrize("num_slots", [1, 3, 8])
async def test_there_are_exactly_n_choices_whatever_the_slots(path: str, num_slots: int) -> None:
    async with served(babbling(num_slots=num_slots)) as server:
        for seed in range(3):
            fields: Wire = {"n": 8, "max_tokens": 3, "temperature": 1, "seed": seed}
            answer = await server.answer(path, **fields)
            chunks = await server.chunks(path, **fields)
            assert indexes(answer) == sorted(ends(chunks)) == list(range(8))
            assert [fold(chunks, index) for index in range(8)] == [told(answer, index) for index in range(8)]


@conforms("n", rows=(52, 53))
@BOTH
@pytest.mark.parametrize("n", [129, 512, 1_000_000, 0, -1, 1.5])
async def test_an_n_above_the_limit_is_refused_before_anything_is_done(path: str, n: float) -> None:
    async with served(saying("x")) as server:
        await server.refused(path, 422, "n", n=n)
        assert not server.requests
        assert indexes(await server.answer(path, n=128, max_tokens=1)) == list(range(128))


@conforms("prompt", "stream", "choices", rows=(55,))
async def test_streamed_prompts_have_indexes_of_their_own() -> None:
    async with served(babbling()) as server:
        chunks = await server.chunks(COMPLETIONS, prompt=["a", "b"], max_tokens=4)
        whole = await server.answer(COMPLETIONS, prompt=["a", "b"], max_tokens=4)
    assert sorted(ends(chunks)) == [0, 1]
    assert [fold(chunks, index).text for index in (0, 1)] == texts(whole)
    assert texts(whole)[0] != texts(whole)[1]


@conforms("prompt")
@pytest.mark.parametrize(
    "prompt", [[], [[]], ["a", 1], [[1], "a"], None, 1, {}, ["x"] * 257], ids=lambda p: str(p)[:20]
)
async def test_a_prompt_of_any_other_shape_is_refused(prompt: Any) -> None:
    async with served(saying("x")) as server:
        await server.refused(COMPLETIONS, 422, "prompt", prompt=prompt)
        assert not server.requests


@conforms("prompt")
async def test_text_of_a_prompt_may_name_control_tokens() -> None:
    async with served(saying("x")) as server:
        await server.answer(COMPLETIONS, prompt="<|start|>Say:")
        assert server.requests[0].prompt_tokens == (START, *b"Say:")
