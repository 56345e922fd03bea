"""How an answer ends, how many candidates it has, and what surrounds a gap or a conversation."""

from typing import Any

import httpx
import pytest

from octavo.core.request import LogprobParams
from octavo.core.vocabulary import InfillTokens
from octavo.engine.scripted import END_TOKEN
from octavo.service import sample_seed
from support.bad_inputs import CHAT, COMPLETIONS
from support.checks import check_error

from .asking import BARE, ask, chat, complete, folded, folded_whole, stream, texts
from .server import App, scripted

VARIABLES = "{{ [reasoning_effort, enable_thinking, thinking, extra] | map('default', '-') | join(' ') }}"
OFF, OUTPUT = LogprobParams(), LogprobParams(of_output=True)
THINKING = "{% for message in messages %}{{ message.content }}{% endfor %}{# <think> </think> #}"
FORCED_END = {str(END_TOKEN): 100}


@pytest.mark.parametrize(
    ("fields", "min_tokens"),
    [
        ({"min_tokens": 3}, 3),
        ({"min_tokens": 3, "max_tokens": 3}, 3),
        ({"min_tokens": 17}, 16),
        ({"min_tokens": 10, "prompt": "x" * 15}, 5),
        ({"min_tokens": 2**63 - 1, "max_tokens": 2**63 - 1}, 19),
    ],
)
async def test_min_tokens_is_at_most_what_can_be_generated(fields: dict[str, Any], min_tokens: int) -> None:
    app = scripted(context_length=20)
    async with app.client() as client:
        assert (await complete(client, **fields)).status_code == 200
    assert app.engine.requests[0].min_tokens == min_tokens


@pytest.mark.parametrize("path", BARE)
async def test_an_answer_does_not_end_before_its_min_tokens(client: httpx.AsyncClient, path: str) -> None:
    answer = await ask(client, path, min_tokens=8)
    assert answer["usage"]["completion_tokens"] > 8
    assert answer["choices"][0]["finish_reason"] == "stop"
    assert texts(answer)[0].startswith("The quick brown fox.The quick")


@pytest.mark.parametrize("path", BARE)
async def test_a_stop_token_ends_the_answer_with_or_without_its_text(
    app: App, client: httpx.AsyncClient, path: str
) -> None:
    own = app.engine.tokenizer.vocabulary.pieces.index(b"own ")
    for includes, text in ((None, "The quick br"), (False, "The quick br"), (True, "The quick brown ")):
        fields = {"stop_token_ids": [own, own, 3], "include_stop_str_in_output": includes}
        answer = await ask(client, path, **fields)
        assert texts(answer) == [text]
        assert answer["choices"][0]["finish_reason"] == "stop"
        assert folded(await stream(client, path, **fields)) == folded_whole(answer)
    assert app.engine.requests[0].stop_tokens == {3, own}


@pytest.mark.parametrize("path", BARE)
async def test_a_stop_string_may_be_part_of_the_answer(client: httpx.AsyncClient, path: str) -> None:
    fields = {"stop": "ick", "include_stop_str_in_output": True}
    answer = await ask(client, path, **fields)
    assert texts(answer) == ["The quick"]
    assert folded(await stream(client, path, **fields)) == folded_whole(answer)


@pytest.mark.parametrize(
    ("path", "fields", "expected"),
    [
        (COMPLETIONS, {}, OFF),
        (COMPLETIONS, {"echo": True}, OFF),
        (COMPLETIONS, {"loglikelihood": False}, OFF),
        (COMPLETIONS, {"logprobs": 0}, OUTPUT),
        (COMPLETIONS, {"logprobs": 20}, LogprobParams(of_output=True, num_top=20)),
        (COMPLETIONS, {"logprobs": 3, "echo": True}, LogprobParams(of_output=True, of_prompt=True, num_top=3)),
        (COMPLETIONS, {"loglikelihood": True}, LogprobParams(of_output=True, of_prompt=True)),
        (COMPLETIONS, {"best_of": 1}, OFF),
        (COMPLETIONS, {"best_of": 2, "n": 2}, OFF),
        (COMPLETIONS, {"best_of": 2}, OUTPUT),
        (CHAT, {}, OFF),
        (CHAT, {"logprobs": False}, OFF),
        (CHAT, {"logprobs": True}, OUTPUT),
        (CHAT, {"logprobs": True, "top_logprobs": 0}, OUTPUT),
        (CHAT, {"logprobs": True, "top_logprobs": 20}, LogprobParams(of_output=True, num_top=20)),
        (CHAT, {"loglikelihood": True}, LogprobParams(of_output=True, of_prompt=True)),
    ],
)
async def test_the_engine_computes_the_log_probabilities_that_are_needed(
    app: App, client: httpx.AsyncClient, path: str, fields: dict[str, Any], expected: LogprobParams
) -> None:
    await ask(client, path, **fields)
    assert {request.logprobs for request in app.engine.requests} == {expected}


async def test_best_of_generates_candidates_of_which_n_are_given_back(app: App, client: httpx.AsyncClient) -> None:
    answer = await ask(client, COMPLETIONS, prompt=["a", "bc"], n=2, best_of=3, seed=5)
    assert [choice["index"] for choice in answer["choices"]] == [0, 1, 2, 3]
    assert all(choice["logprobs"] is None for choice in answer["choices"])
    assert sorted(request.sampling.seed for request in app.engine.requests) == sorted(
        sample_seed(5, prompt, sample) for prompt in range(2) for sample in range(3)
    )
    assert answer["usage"]["prompt_tokens"] == 3
    assert answer["usage"]["completion_tokens"] == 36


@pytest.mark.parametrize("fields", [{"best_of": 1}, {"n": 3, "best_of": 3}, {"n": 2, "best_of": None}])
async def test_as_many_candidates_as_choices_can_be_streamed(client: httpx.AsyncClient, fields: dict[str, Any]) -> None:
    answer = await ask(client, COMPLETIONS, **fields)
    assert folded(await stream(client, COMPLETIONS, **fields)) == folded_whole(answer)


@pytest.mark.parametrize(
    "fields",
    [
        {"logit_bias": FORCED_END},
        {"logit_bias": {"97": 100}, "stop_token_ids": [97]},
        {"logit_bias": {"97": 100}, "stop_token_ids": [97], "ignore_eos": True},
        {"logit_bias": {**FORCED_END, "97": 100}, "stop_token_ids": [97, 98]},
        {"logit_bias": {str(token): -100 for token in range(300) if token != END_TOKEN}},
    ],
    ids=str,
)
async def test_min_tokens_leaves_some_token_to_draw(fields: dict[str, Any]) -> None:
    app = scripted()
    fields["logit_bias"] = {
        token: bias for token, bias in fields["logit_bias"].items() if int(token) < app.engine.tokenizer.vocabulary.size
    }
    async with app.client() as client:
        for path in BARE:
            refused = await client.post(path, json={**BARE[path], **fields, "min_tokens": 1})
            assert "min_tokens" in check_error(refused, 422, "logit_bias")["message"]
        assert not app.engine.requests
        assert (await complete(client, **fields)).status_code == 200
        assert (await complete(client, **fields, min_tokens=0)).status_code == 200


@pytest.mark.parametrize(
    "fields",
    [
        {"logit_bias": FORCED_END, "ignore_eos": True},
        {"logit_bias": {**FORCED_END, "97": 100}},
        {"logit_bias": {"97": 100}, "stop_token_ids": [98]},
        {"logit_bias": {str(END_TOKEN): 99}},
    ],
    ids=str,
)
async def test_min_tokens_goes_with_a_bias_that_leaves_a_token(
    client: httpx.AsyncClient, fields: dict[str, Any]
) -> None:
    assert (await complete(client, **fields, min_tokens=1)).status_code == 200


async def test_a_suffix_puts_the_prompt_before_a_gap(app: App, client: httpx.AsyncClient) -> None:
    app.engine.infill = InfillTokens(prefix=1, suffix=2, middle=3)
    for prompt, suffix in (("ab", "c"), ([97, 98], "c"), ("ab", ""), (["ab", ""], "c")):
        await ask(client, COMPLETIONS, prompt=prompt, suffix=suffix)
    assert [request.prompt_tokens for request in app.engine.requests] == [
        (1, 97, 98, 2, 99, 3),
        (1, 97, 98, 2, 99, 3),
        (1, 97, 98, 2, 3),
        (1, 97, 98, 2, 99, 3),
        (1, 2, 99, 3),
    ]


async def test_a_model_without_infill_refuses_a_suffix(client: httpx.AsyncClient) -> None:
    for suffix in ("c", ""):
        assert check_error(await complete(client, suffix=suffix), 400, "suffix")["code"] == "suffix_unsupported"


async def test_a_suffix_and_its_prompt_must_fit_and_be_tokens_of_the_model() -> None:
    app = scripted(context_length=20)
    app.engine.infill = InfillTokens(prefix=1, suffix=2, middle=3)
    async with app.client() as client:
        for prompt in ("x" * 21, [1] * 21, "x" * 17):
            body = check_error(await complete(client, prompt=prompt, suffix="c"), 400, "prompt")
            assert body["code"] == "context_length_exceeded"
        check_error(await complete(client, prompt=[999], suffix="c"), 422, "prompt")


@pytest.mark.parametrize(
    ("fields", "rendered"),
    [
        ({}, "- - - -"),
        ({"chat_template_kwargs": {}}, "- - - -"),
        ({"reasoning_effort": "xhigh"}, "xhigh - - -"),
        ({"reasoning_effort": "none"}, "none False False -"),
        ({"chat_template_kwargs": {"enable_thinking": True, "extra": 2}}, "- True - 2"),
        ({"reasoning_effort": "none", "chat_template_kwargs": {"thinking": True}}, "none False True -"),
        ({"reasoning_effort": "low", "chat_template_kwargs": {"reasoning_effort": "own"}}, "own - - -"),
    ],
)
async def test_the_chat_template_gets_the_effort_and_the_clients_variables(
    app: App, client: httpx.AsyncClient, fields: dict[str, Any], rendered: str
) -> None:
    app.engine.chat_template = VARIABLES
    await ask(client, CHAT, **fields)
    assert bytes(app.engine.requests[0].prompt_tokens).decode() == rendered


@pytest.mark.parametrize(
    ("given", "rendered"),
    [
        ({"reasoning_content": "hm"}, "hm"),
        ({"reasoning": "hm"}, "hm"),
        ({"reasoning_content": "hm", "reasoning": "hm"}, "hm"),
        ({"reasoning_content": None, "reasoning": "hm"}, "hm"),
        ({"reasoning_content": None}, "nothing"),
    ],
)
async def test_what_an_assistant_thought_can_be_sent_back(
    app: App, client: httpx.AsyncClient, given: dict[str, Any], rendered: str
) -> None:
    app.engine.chat_template = "{{ messages[0].reasoning_content | default('nothing') }}"
    response = await chat(client, {"role": "assistant", "content": "so", **given})
    assert response.status_code == 200, response.text
    assert "x-octavo-ignored" not in response.headers
    assert bytes(app.engine.requests[0].prompt_tokens).decode() == rendered


@pytest.mark.parametrize("piece_bytes", [1, 3, 4])
async def test_reasoning_is_told_apart_from_the_answer(piece_bytes: int) -> None:
    app = scripted("<think>hm, 漢字</think>so", piece_bytes=piece_bytes)
    app.engine.chat_template = THINKING
    async with app.client() as client:
        answer = await ask(client, CHAT)
        assert folded(await stream(client, CHAT)) == folded_whole(answer)
    assert answer["choices"][0]["message"] == {
        "role": "assistant",
        "content": "so",
        "reasoning_content": "hm, 漢字",
        "reasoning": "hm, 漢字",
    }
