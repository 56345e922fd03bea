"""Echo and log-probabilities of prompts."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from conformance.ask import CHAT, COMPLETIONS, Asker, Wire, fold, told
from conformance.checks import conforms
from conformance.models import GivenModel, babbling, constant, saying, vocabulary_of
from conformance.served import Served, served

LEAST = -9999.0


def reference(model: GivenModel, tokens: Sequence[int], start: int = 1) -> list[float]:
    """The log-probabilities of the tokens from `start` on."""
    return [float(model.logprobs(tokens[:place])[tokens[place]]) for place in range(start, len(tokens))]


def numbers_of(entries: list[Wire]) -> list[float]:
    return [value["logprob"] for entry in entries for value in (entry, *entry["top_logprobs"])]


def with_impossible_tokens() -> GivenModel:
    """A model for which "b" cannot follow anything."""
    row = np.full(vocabulary_of(()).size, -np.inf, np.float32)
    row[[ord("a"), ord("c")]] = (2.0, 1.0)
    return GivenModel(vocabulary_of(()), lambda tokens: row)


@conforms("echo", "logprobs", "prompt", rows=(31,))
@pytest.mark.parametrize("max_tokens", [0, 1, 3])
async def test_echo_has_an_entry_for_each_prompt_token_the_first_without_a_number(max_tokens: int) -> None:
    async with served(saying("AB", "CD", "EF")) as server:
        echoed = await server.told(COMPLETIONS, prompt="Say:", echo=True, logprobs=1, max_tokens=max_tokens)
        model = server.model
    tokens = [*b"Say:", *map(model.id_of, ("AB", "CD", "EF"))][: 4 + max_tokens]
    assert echoed.text == "Say:ABCDEF"[: 4 + 2 * max_tokens]
    legacy = echoed.logprobs
    assert legacy["tokens"] == ["S", "a", "y", ":", "AB", "CD", "EF"][: len(tokens)]
    assert legacy["text_offset"] == [0, 1, 2, 3, 4, 6, 8][: len(tokens)]
    assert legacy["token_logprobs"][0] is None
    assert legacy["top_logprobs"][0] is None
    assert legacy["token_logprobs"][1:] == pytest.approx(reference(model, tokens), abs=1e-4)
    assert [entry["logprob"] for entry in legacy["content"]] == legacy["token_logprobs"][1:]
    named = zip(legacy["tokens"][1:], legacy["token_logprobs"][1:], legacy["top_logprobs"][1:], strict=True)
    assert all(top[token] == logprob and len(top) <= 2 for token, logprob, top in named)


@conforms("echo", "logprobs", rows=(32,))
async def test_echo_with_log_probabilities_does_not_harm_a_real_engine(demo: Asker) -> None:
    for prompt in ("The fox", ["A", "The fox"], [10, 11, 12], [[10], [11, 12]], ""):
        answer = await demo.answer(COMPLETIONS, prompt=prompt, echo=True, logprobs=1, max_tokens=2)
        for choice in answer["choices"]:
            assert choice["logprobs"]["token_logprobs"][0] is None
            assert all(value <= 0 for value in choice["logprobs"]["token_logprobs"][1:])
    assert (await demo.answer(COMPLETIONS, max_tokens=1))["usage"]["completion_tokens"] == 1


@conforms("echo", "logprobs", "top_k", rows=(34,))
async def test_log_probabilities_are_finite_whatever_the_sampler_leaves() -> None:
    async with served(babbling()) as server:
        plain = await server.told(COMPLETIONS, prompt="abc", echo=True, logprobs=5, max_tokens=4)
        cut = await server.told(COMPLETIONS, prompt="abc", echo=True, logprobs=5, max_tokens=4, top_k=1, temperature=1)
    assert cut == plain
    assert all(LEAST <= number <= 0 for number in numbers_of(cut.entries))


@conforms("echo", "logprobs", rows=(34,))
async def test_what_the_model_finds_impossible_has_the_least_number_and_not_infinity() -> None:
    async with served(with_impossible_tokens()) as server:
        echoed = await server.told(COMPLETIONS, prompt="abc", echo=True, logprobs=5, max_tokens=1)
    assert echoed.logprobs["token_logprobs"][1] == LEAST
    assert echoed.logprobs["token_logprobs"][2] > -2
    assert min(numbers_of(echoed.entries)) == LEAST


@conforms("logprobs", "top_logprobs", "top_p", rows=(35,))
@pytest.mark.parametrize(
    "sampling",
    [
        {"top_p": 0.3},
        {"top_p": 0},
        {"min_p": 1},
        {"temperature": 0.01},
        {"logit_bias": {"97": 100}},
        {"logit_bias": {"97": -100}},
        {"repetition_penalty": 5, "presence_penalty": 2, "frequency_penalty": -2},
    ],
    ids=str,
)
async def test_log_probabilities_are_the_models_own_before_anything_of_the_sampler(sampling: Wire) -> None:
    async with served(babbling()) as server:
        fields: Wire = {"logprobs": True, "top_logprobs": 5, "max_tokens": 4, "seed": 1, "temperature": 1, **sampling}
        chat = await server.told(CHAT, **fields)
        tokens = [*server.requests[0].prompt_tokens, *chat.text.encode()]
        num_prompt = len(server.requests[0].prompt_tokens)
    assert len(chat.entries) == 4
    expected = reference(server.model, tokens, num_prompt)
    assert [entry["logprob"] for entry in chat.entries] == pytest.approx(expected, abs=1e-4)
    for place, entry in enumerate(chat.entries, num_prompt):
        best = np.sort(server.model.logprobs(tokens[:place]))[::-1][:5]
        assert [each["logprob"] for each in entry["top_logprobs"]] == pytest.approx(best, abs=1e-4)


@conforms("logprobs", rows=(37,))
async def test_completions_have_both_forms_of_log_probabilities() -> None:
    async with served(saying("AB", "CD")) as server:
        answer = await server.told(COMPLETIONS, logprobs=2)
        without = (await server.answer(COMPLETIONS))["choices"][0]
        zero = await server.told(COMPLETIONS, logprobs=0)
    lists = answer.logprobs
    assert set(lists) == {"content", "tokens", "token_logprobs", "top_logprobs", "text_offset"}
    assert lists["tokens"] == answer.tokens == ["AB", "CD", "<|end|>"]
    assert lists["token_logprobs"] == [entry["logprob"] for entry in answer.entries]
    assert lists["text_offset"] == [0, 2, 4]
    for entry, top in zip(answer.entries, lists["top_logprobs"], strict=True):
        assert list(top.values()) == [each["logprob"] for each in entry["top_logprobs"]]
        assert len(top) == 2
    assert without["logprobs"] is None
    assert [entry["top_logprobs"] for entry in zero.entries] == [[], [], []]


@conforms("logprobs", "top_logprobs", "stream", rows=(38,))
async def test_streams_have_the_log_probabilities_too() -> None:
    async with served(saying("AB", "CD")) as server:
        completion = fold(await server.chunks(COMPLETIONS, logprobs=1))
        chat = fold(await server.chunks(CHAT, logprobs=True, top_logprobs=1))
        echoed = fold(await server.chunks(COMPLETIONS, logprobs=1, echo=True, max_tokens=1))
    assert completion.tokens == completion.logprobs["tokens"] == ["AB", "CD", "<|end|>"]
    assert chat.tokens == completion.tokens
    assert echoed.logprobs["tokens"] == ["S", "a", "y", ":", "AB"]


@conforms("logprobs", "top_logprobs", rows=(40,))
@pytest.mark.parametrize("number", [0, 6, 10, 20])
async def test_up_to_twenty_alternatives_can_be_asked_for(number: int) -> None:
    async with served(babbling()) as server:
        completion = await server.told(COMPLETIONS, logprobs=number, max_tokens=2)
        chat = await server.told(CHAT, logprobs=True, top_logprobs=number, max_tokens=2)
    assert [len(entry["top_logprobs"]) for entry in (*completion.entries, *chat.entries)] == [number] * 4


@conforms("logprobs", "top_logprobs")
@pytest.mark.parametrize(
    ("path", "fields", "param"),
    [
        (COMPLETIONS, {"logprobs": 21}, "logprobs"),
        (COMPLETIONS, {"logprobs": -1}, "logprobs"),
        (COMPLETIONS, {"logprobs": True}, "logprobs"),
        (COMPLETIONS, {"logprobs": 1.5}, "logprobs"),
        (CHAT, {"logprobs": 1}, "logprobs"),
        (CHAT, {"logprobs": True, "top_logprobs": 21}, "top_logprobs"),
        (CHAT, {"logprobs": True, "top_logprobs": -1}, "top_logprobs"),
        (CHAT, {"logprobs": False, "top_logprobs": 1}, "top_logprobs"),
        (CHAT, {"top_logprobs": 1}, "top_logprobs"),
    ],
    ids=str,
)
async def test_other_numbers_of_alternatives_are_refused(path: str, fields: Wire, param: str) -> None:
    async with served(saying("x")) as server:
        await server.refused(path, 422, param, **fields)
        assert not server.requests


@conforms("echo", "logprobs", "prompt", rows=(41,))
async def test_a_long_prompt_is_scored_to_its_end_with_the_most_alternatives() -> None:
    async with served(babbling(context_length=3000)) as server:
        prompt = list(np.random.default_rng(0).integers(97, 123, 3000))
        ids: list[Any] = [int(token) for token in prompt]
        answer = await server.answer(COMPLETIONS, prompt=ids, echo=True, logprobs=20, max_tokens=0)
        response = await server.send(COMPLETIONS, prompt_logprobs=-1, max_tokens=1)
    lists = told(answer).logprobs
    assert len(lists["tokens"]) == len(lists["token_logprobs"]) == 3000
    assert lists["token_logprobs"][1:] == pytest.approx(reference(server.model, ids), abs=1e-4)
    assert all(20 <= len(top) <= 21 for top in lists["top_logprobs"][1:])  # with the token itself, as OpenAI's
    assert response.headers["x-octavo-ignored"] == "prompt_logprobs"


@conforms("max_tokens", "echo", "finish_reason")
async def test_max_tokens_of_zero_generates_no_hidden_token() -> None:
    async with served(saying("AB")) as server:
        echoed = await server.answer(COMPLETIONS, echo=True, max_tokens=0, logprobs=1)
        bare = await server.answer(COMPLETIONS, max_tokens=0)
        chat = await server.answer(CHAT, max_tokens=0)
        assert [request.max_tokens for request in server.requests] == [0, 0, 0]
    assert (told(echoed).text, told(bare).text, told(chat).text) == ("Say:", "", "")
    for answer in (echoed, bare, chat):
        assert told(answer).finish_reason == "length"
        assert answer["usage"]["completion_tokens"] == 0


@conforms("loglikelihood", "logprobs")
@pytest.mark.parametrize("path", [COMPLETIONS, CHAT])
async def test_loglikelihood_puts_the_prompt_before_the_answer_in_the_entries_alone(path: str) -> None:
    async with served(saying("AB", "CD")) as server:
        scored = await server.told(path, loglikelihood=True)
        plain = await server.told(path)
        await check_head(server, scored.entries)
    assert (scored.text, scored.finish_reason) == (plain.text, plain.finish_reason) == ("ABCD", "stop")
    assert not plain.logprobs


async def check_head(server: Served, entries: list[Wire]) -> None:
    """The prompt's tokens but the first, those of the answer and its end."""
    prompt = server.requests[0].prompt_tokens
    tokens = (*prompt, server.model.id_of("AB"), server.model.id_of("CD"), 256)
    assert len(entries) == len(tokens) - 1
    expected = reference(server.model, tokens)
    assert [entry["logprob"] for entry in entries] == pytest.approx(expected, abs=1e-4)


@conforms("echo")
@pytest.mark.parametrize("prompt", ["Say:", "Sagt, 你好 🦊:", [83, 58], ["a:", "b:"]], ids=str)
async def test_echo_begins_each_choice_with_its_prompt(prompt: Any) -> None:
    async with served(saying("AB", "CD")) as server:
        answer = await server.answer(COMPLETIONS, prompt=prompt, echo=True, n=2)
        chunks = await server.chunks(COMPLETIONS, prompt=prompt, echo=True, n=2)
    texts = prompt if isinstance(prompt, list) and isinstance(prompt[0], str) else [prompt]
    shown = ["S:" if isinstance(text, list) else text for text in texts]
    expected = [f"{text}ABCD" for text in shown for _ in range(2)]
    assert [choice["text"] for choice in answer["choices"]] == expected
    assert [fold(chunks, index).text for index in range(len(expected))] == expected


@conforms("echo", "stop")
async def test_a_stop_string_in_the_echoed_prompt_does_not_end_the_answer() -> None:
    async with served(saying("AB", "STOP", "CD")) as server:
        answer = await server.told(COMPLETIONS, prompt="Say STOP:", echo=True, stop="STOP")
    assert (answer.text, answer.finish_reason) == ("Say STOP:AB", "stop")


@conforms("logprobs", "temperature")
async def test_a_probability_is_the_softmax_of_the_models_logits() -> None:
    async with served(constant({"a": 2.0, "b": 1.0})) as server:
        answer = await server.told(COMPLETIONS, logprobs=2, max_tokens=1, temperature=0.1)
    odds = np.exp([2.0, 1.0]) / np.exp([2.0, 1.0]).sum()
    found = [each["logprob"] for each in answer.entries[0]["top_logprobs"]]
    assert found == pytest.approx(np.log(odds).tolist(), abs=1e-4)
