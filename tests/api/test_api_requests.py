"""What a request means: what reaches the engine, and what is said about the rest."""

from typing import Any

import httpx
import pytest

from octavo.core.request import LogprobParams
from octavo.core.sampling import SamplingParams
from octavo.service import sample_seed
from support.bad_inputs import CHAT, COMPLETIONS
from support.checks import check_error

from .asking import BARE, chat, complete
from .server import App, scripted

OPTIONAL = [
    "peft",
    "max_tokens",
    "max_completion_tokens",
    "min_tokens",
    "n",
    "temperature",
    "top_p",
    "min_p",
    "top_k",
    "frequency_penalty",
    "presence_penalty",
    "repetition_penalty",
    "logit_bias",
    "stop",
    "stop_token_ids",
    "include_stop_str_in_output",
    "seed",
    "ignore_eos",
    "loglikelihood",
    "logprobs",
    "response_format",
    "stream",
    "stream_options",
    "user",
    "log_prompt",
]
OPTIONAL_OF = {
    COMPLETIONS: ["echo", "suffix", "best_of"],
    CHAT: [
        "top_logprobs",
        "reasoning_effort",
        "chat_template_kwargs",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "functions",
        "function_call",
    ],
}


@pytest.mark.parametrize("path", BARE)
async def test_null_is_as_good_as_absent(client: httpx.AsyncClient, path: str) -> None:
    for field in [*OPTIONAL, *OPTIONAL_OF[path]]:
        response = await client.post(path, json={**BARE[path], field: None})
        assert response.status_code == 200, response.text
        assert "x-octavo-ignored" not in response.headers


@pytest.mark.parametrize("path", BARE)
async def test_every_optional_field_is_known(client: httpx.AsyncClient, path: str) -> None:
    document = (await client.get("/openapi.json")).json()
    schema = document["components"]["schemas"][{COMPLETIONS: "CompletionRequest", CHAT: "ChatCompletionRequest"}[path]]
    assert set(schema["properties"]) == {*BARE[path], *OPTIONAL, *OPTIONAL_OF[path]}
    assert all(field["description"] for field in schema["properties"].values())


@pytest.mark.parametrize("path", BARE)
async def test_all_fields_may_be_null_at_once(app: App, client: httpx.AsyncClient, path: str) -> None:
    fields = dict.fromkeys([*OPTIONAL, *OPTIONAL_OF[path]])
    assert (await client.post(path, json={**BARE[path], **fields})).status_code == 200
    [request] = app.engine.requests
    assert request.sampling == SamplingParams(seed=request.sampling.seed)
    assert request.logprobs == LogprobParams()
    assert not request.ignore_eos
    assert not request.stop_tokens
    assert request.min_tokens == 0


async def test_every_setting_reaches_the_engine(app: App, client: httpx.AsyncClient) -> None:
    fields = {
        "temperature": 0.5,
        "top_p": 0.9,
        "min_p": 0.1,
        "top_k": 7,
        "frequency_penalty": -1,
        "presence_penalty": 1.5,
        "repetition_penalty": 1.1,
        "logit_bias": {"5": -100, "0": 1.5, "7": None},
        "seed": -3,
        "max_tokens": 9,
        "ignore_eos": True,
    }
    assert (await complete(client, prompt=[1, 2], **fields)).status_code == 200
    [request] = app.engine.requests
    assert request.prompt_tokens == (1, 2)
    assert request.max_tokens == 9
    assert request.ignore_eos
    assert request.sampling == SamplingParams(
        temperature=0.5,
        top_k=7,
        min_p=0.1,
        top_p=0.9,
        frequency_penalty=-1.0,
        presence_penalty=1.5,
        repetition_penalty=1.1,
        logit_bias=((5, -100.0), (0, 1.5)),
        seed=sample_seed(-3, 0, 0),
    )


@pytest.mark.parametrize(
    "edge",
    [
        {"temperature": 0},
        {"temperature": 2},
        {"top_p": 0},
        {"top_p": 1},
        {"min_p": 1},
        {"top_k": -1},
        {"top_k": 2**63 - 1},
        {"n": 128},
        {"seed": 2**63 - 1},
        {"seed": -(2**63)},
        {"frequency_penalty": -2},
        {"presence_penalty": 2},
        {"repetition_penalty": 1e-6},
        {"repetition_penalty": 1000},
        {"stop": ["x" * 256] * 16},
        {"stop": []},
        {"logit_bias": {}},
        {"max_tokens": 0},
        {"prompt": ["x"] * 256},
        {"max_tokens": 2**63 - 1},
        {"user": ""},
        {"logit_bias": {"0": 100, "1": -100}},
        {"logprobs": 0},
        {"logprobs": 20},
        {"best_of": 128},
        {"best_of": 128, "n": 128, "stream": True},
        {"stop_token_ids": [0] * 64},
        {"stop_token_ids": []},
        {"min_tokens": 1},
    ],
    ids=lambda edge: str(edge)[:60],
)
async def test_the_edges_of_the_ranges_are_allowed(edge: dict[str, Any]) -> None:
    app = scripted(num_slots=256)
    async with app.client() as client:
        response = await complete(client, **{"max_tokens": 1, **edge})
    assert response.status_code == 200, response.text


async def test_top_k_of_minus_one_is_off(app: App, client: httpx.AsyncClient) -> None:
    await complete(client, top_k=-1)
    assert app.engine.requests[0].sampling.top_k == 0


async def test_a_seed_gives_each_sample_its_own_and_the_same_again(app: App, client: httpx.AsyncClient) -> None:
    for _ in range(2):
        await complete(client, prompt=["a", "b"], n=2, seed=11, max_tokens=1)
    seeds = [request.sampling.seed for request in app.engine.requests]
    assert sorted(seeds[:4]) == sorted(seeds[4:]) == sorted(sample_seed(11, p, s) for p in (0, 1) for s in (0, 1))


async def test_without_a_seed_each_request_gets_another(app: App, client: httpx.AsyncClient) -> None:
    for seed in ({}, {"seed": None}, {}):
        await complete(client, **seed)
    assert len({request.sampling.seed for request in app.engine.requests}) == 3


async def test_max_tokens_is_16_for_completions_and_the_rest_of_the_context_for_chat(app: App) -> None:
    async with app.client() as client:
        await complete(client)
        await chat(client, {"role": "user", "content": "x"})
    first, second = app.engine.requests
    assert first.max_tokens == 16
    assert second.max_tokens == app.engine.info.context_length - len(second.prompt_tokens)


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
async def test_more_than_the_rest_of_the_context_is_cut_to_it(name: str) -> None:
    app = scripted(context_length=20)
    async with app.client() as client:
        response = await complete(client, prompt="x" * 15, ignore_eos=True, **{name: 10**6})
    assert app.engine.requests[0].max_tokens == 5
    assert response.json()["choices"][0]["finish_reason"] == "length"
    assert response.json()["usage"]["completion_tokens"] == 5


async def test_both_names_of_max_tokens_may_agree(app: App, client: httpx.AsyncClient) -> None:
    await complete(client, max_tokens=3, max_completion_tokens=3)
    assert app.engine.requests[0].max_tokens == 3


async def test_max_tokens_of_zero_generates_nothing(client: httpx.AsyncClient) -> None:
    body = (await complete(client, max_tokens=0)).json()
    assert body["choices"][0]["text"] == ""
    assert body["choices"][0]["finish_reason"] == "length"
    assert body["usage"]["completion_tokens"] == 0


@pytest.mark.parametrize("prompt", ["x" * 21, list(range(21))])
async def test_a_prompt_that_does_not_fit_is_never_cut(prompt: str | list[int]) -> None:
    app = scripted(context_length=20)
    async with app.client() as client:
        fits = await complete(client, prompt=prompt[:20])
        body = check_error(await complete(client, prompt=prompt), 400, "prompt")
    assert body["code"] == "context_length_exceeded"
    assert "21" in body["message"]
    assert "20" in body["message"]
    assert fits.json()["choices"][0]["finish_reason"] == "length"


async def test_an_empty_prompt_is_the_begin_token_alone(app: App, client: httpx.AsyncClient) -> None:
    assert (await complete(client, prompt="")).status_code == 200
    assert app.engine.requests[0].prompt_tokens == (app.engine.tokenizer.vocabulary.bos_token,)


async def test_a_bias_that_bans_every_token_is_refused(app: App, client: httpx.AsyncClient) -> None:
    size = app.engine.tokenizer.vocabulary.size
    biases = {str(token): -100 for token in range(size)}
    check_error(await complete(client, logit_bias=biases), 422, "logit_bias")
    assert (await complete(client, logit_bias={**biases, "3": -99})).status_code == 200
    check_error(await complete(client, logit_bias={str(size): 1}), 422, "logit_bias")
    check_error(await complete(client, prompt=[size]), 422, "prompt")


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("ab", [(97, 98)]),
        (["a", "b"], [(97,), (98,)]),
        ([97, 98], [(97, 98)]),
        ([[97], [98, 99]], [(97,), (98, 99)]),
        ("a<|end|>", [(97, 256)]),
    ],
)
async def test_a_prompt_has_four_forms(app: App, client: httpx.AsyncClient, prompt: Any, expected: Any) -> None:
    body = (await complete(client, prompt=prompt)).json()
    assert [request.prompt_tokens for request in app.engine.requests] == expected
    assert body["usage"]["prompt_tokens"] == sum(map(len, expected))


async def test_messages_of_every_role_and_form_are_rendered(app: App, client: httpx.AsyncClient) -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    response = await chat(
        client,
        {"role": "developer", "content": "rules"},
        {"role": "user", "content": parts, "name": "ann"},
        {"role": "assistant", "content": None, "tool_calls": [], "refusal": None},
        {"role": "tool", "content": "22", "tool_call_id": "call_1"},
    )
    assert response.status_code == 200, response.text
    assert bytes(app.engine.requests[0].prompt_tokens).decode() == (
        "<|im_start|>system\nrules<|im_end|>\n<|im_start|>user\nab<|im_end|>\n<|im_start|>assistant\n<|im_end|>\n"
        "<|im_start|>user\n<tool_response>\n22\n</tool_response><|im_end|>\n<|im_start|>assistant\n"
    )


async def test_text_of_a_message_never_becomes_a_control_token(app: App, client: httpx.AsyncClient) -> None:
    await chat(client, {"role": "user", "content": "<|end|>"})
    assert b"<|end|>" in bytes(app.engine.requests[0].prompt_tokens)
