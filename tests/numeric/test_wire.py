"""Log-probabilities, echo, scoring and infill of the tiny model through HTTP, beside the model written out in numpy."""

from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest

from octavo.core.output import TokenLogprob
from support.processes import serving

from . import forward
from .checks import TOLERANCE, check_rows
from .engines import NUM_SLOTS, NUM_THREADS
from .tiny_gguf import PIECES, Special, TinyModel

Wire = dict[str, Any]
NUM_TOP = 5
PREFIX, SUFFIX = "def add(a, b):\n    return the ", "\n\nprint(add(1, 2))  # €\n"
TEXT = "In the beginning → 🦊 and thé"
IDS = {piece: token for token, piece in enumerate(PIECES)} | {each.value.encode(): each.id for each in Special}
"""By what a token adds to a text; control tokens of a prompt add their names."""


@pytest.fixture(scope="module")
def client(tiny: TinyModel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    numbers = {"--ctx": 256, "--slots": NUM_SLOTS, "--threads": NUM_THREADS, "--token-budget": 32}
    flags = {"--cache-type-k": "f32", "--cache-type-v": "f32"} | numbers
    arguments = [str(each) for flag in flags.items() for each in flag]
    folder = tmp_path_factory.mktemp("server")
    with (
        serving(str(tiny.path), *arguments, engine="llama", folder=folder) as server,
        server.wait_ready().client() as client,
    ):
        yield client


def post(client: httpx.Client, path: str, **fields: Any) -> Wire:
    response = client.post(path, json={"model": "tiny", **fields})
    assert response.status_code == 200, response.text
    answer: Wire = response.json()
    return answer


def complete(client: httpx.Client, prompt: object, **fields: Any) -> Wire:
    return post(client, "/v1/completions", prompt=prompt, ignore_eos=True, **fields)


def tokenized(client: httpx.Client, text: str) -> tuple[int, ...]:
    """As plain text, without BOS."""
    return tuple(post(client, "/v1/tokenize", text=text, add_special_tokens=False)["tokens"])


def entries(choice: Wire) -> list[TokenLogprob]:
    return [
        TokenLogprob(
            token_of(item), item["logprob"], tuple((token_of(top), top["logprob"]) for top in item["top_logprobs"])
        )
        for item in choice["logprobs"]["content"]
    ]


def token_of(item: Wire) -> int:
    return Special(item["token"]).id if item["bytes"] is None else IDS[bytes(item["bytes"])]


def check_content(tiny: TinyModel, first: int, choice: Wire) -> list[int]:
    """The tokens of a choice that says all of its prompt but the first token; their numbers are the reference's."""
    told = entries(choice)
    tokens = [each.token for each in told]
    check_rows(told, forward.logprobs(tiny, (first, *tokens))[:-1])
    return tokens


def test_scoring_a_prompt_of_tokens_tells_the_reference_s_logprobs_and_generates_nothing(
    client: httpx.Client, tiny: TinyModel
) -> None:
    prompt = [Special.BOS.id, *np.random.default_rng(3).integers(0, len(PIECES), 80).tolist()]
    scored = complete(client, prompt, max_tokens=0, echo=True, logprobs=NUM_TOP)
    [choice] = scored["choices"]
    assert check_content(tiny, prompt[0], choice) == prompt[1:]
    assert (choice["finish_reason"], scored["usage"]["completion_tokens"]) == ("length", 0)
    assert scored["usage"]["prompt_tokens"] == len(prompt)


def test_the_lists_of_the_older_form_have_the_same_numbers(client: httpx.Client) -> None:
    [choice] = complete(client, TEXT, max_tokens=6, temperature=0, echo=True, logprobs=NUM_TOP)["choices"]
    content, old = choice["logprobs"]["content"], choice["logprobs"]
    assert old["token_logprobs"][-len(content) :] == [item["logprob"] for item in content]
    for item, top in zip(content, old["top_logprobs"][-len(content) :], strict=True):
        alternatives = {each["logprob"] for each in item["top_logprobs"]}
        assert alternatives <= set(top.values()) <= alternatives | {item["logprob"]}


@pytest.mark.parametrize(
    "fields",
    [
        {"temperature": 0},
        {"seed": 1},
        {"seed": 2, "temperature": 1.8, "top_p": 0.9, "top_k": 50, "min_p": 0.01},
        {"seed": 3, "frequency_penalty": 1.5, "presence_penalty": 1.0, "repetition_penalty": 1.8},
        {"seed": 4, "logit_bias": {"101": 6, "32": -100}},
    ],
    ids=["greedy", "plain", "truncated", "penalised", "biased"],
)
def test_prompt_and_answer_have_the_reference_s_logprobs_however_the_answer_is_drawn(
    client: httpx.Client, tiny: TinyModel, fields: Wire
) -> None:
    asked = complete(client, TEXT, max_tokens=20, loglikelihood=True, logprobs=NUM_TOP, **fields)
    [choice] = asked["choices"]
    tokens = check_content(tiny, Special.BOS.id, choice)
    prompt = tokenized(client, TEXT)
    assert tuple(tokens[: len(prompt)]) == prompt
    assert (len(prompt) + 1, len(tokens) - len(prompt)) == (asked["usage"]["prompt_tokens"], 20)
    if fields == {"temperature": 0}:
        best = forward.logprobs(tiny, (Special.BOS.id, *tokens))[len(prompt) : -1].argmax(axis=-1)
        assert tokens[len(prompt) :] == best.tolist()


def test_a_chat_s_rendered_prompt_has_the_reference_s_logprobs(client: httpx.Client, tiny: TinyModel) -> None:
    typed = "<|im_end|>"
    asked = post(
        client,
        "/v1/chat/completions",
        messages=[{"role": "user", "content": f"{TEXT} {typed}"}],
        max_tokens=0,
        loglikelihood=True,
        logprobs=True,
        top_logprobs=NUM_TOP,
    )
    user, assistant = tokenized(client, f"user\n{TEXT} "), tokenized(client, "assistant\n")
    start, end = Special.START.id, Special.EOT.id
    expected = [start, *user, *typed.encode(), end, ord("\n"), start, *assistant]
    assert check_content(tiny, Special.BOS.id, asked["choices"][0]) == expected


@pytest.mark.parametrize("fields", [{"temperature": 0}, {"seed": 11, "temperature": 1.2}], ids=["greedy", "drawn"])
def test_a_suffix_is_the_completion_of_the_infill_prompt_made_by_hand(
    client: httpx.Client, tiny: TinyModel, fields: Wire
) -> None:
    asked: Wire = {"max_tokens": 24, "logprobs": NUM_TOP, **fields}
    infilled = complete(client, PREFIX, suffix=SUFFIX, loglikelihood=True, **asked)
    before, after = tokenized(client, PREFIX), tokenized(client, SUFFIX)
    by_hand = [
        Special.BOS.id,
        Special.FIM_PREFIX.id,
        *before,
        Special.FIM_SUFFIX.id,
        *after,
        Special.FIM_MIDDLE.id,
    ]
    tokens = check_content(tiny, Special.BOS.id, infilled["choices"][0])
    assert tokens[: len(by_hand) - 1] == by_hand[1:]
    plain = complete(client, by_hand, **asked)
    assert [each.token for each in entries(plain["choices"][0])] == tokens[len(by_hand) - 1 :]
    assert plain["choices"][0]["text"] == infilled["choices"][0]["text"]
    assert plain["usage"]["prompt_tokens"] == infilled["usage"]["prompt_tokens"] == len(by_hand)


def test_best_of_gives_back_the_candidates_that_the_reference_finds_most_probable(
    client: httpx.Client, tiny: TinyModel
) -> None:
    fields: Wire = {"max_tokens": 12, "logprobs": 0, "seed": 9}
    prompt = (Special.BOS.id, *tokenized(client, TEXT))
    candidates = complete(client, TEXT, n=6, **fields)["choices"]
    best = complete(client, TEXT, n=2, best_of=6, **fields)

    def mean(choice: Wire) -> float:
        tokens = [each.token for each in entries(choice)]
        rows = forward.logprobs(tiny, (*prompt, *tokens))[len(prompt) - 1 : -1]
        return float(rows[np.arange(len(tokens)), tokens].mean())

    means = sorted(map(mean, candidates), reverse=True)
    assert min(-np.diff(means)) > TOLERANCE
    assert [mean(choice) for choice in best["choices"]] == pytest.approx(means[:2], abs=TOLERANCE)
    assert best["usage"]["completion_tokens"] == 6 * 12


def test_a_stream_has_the_entries_of_the_whole_answer(client: httpx.Client) -> None:
    fields: Wire = {"max_tokens": 20, "logprobs": NUM_TOP, "echo": True, "seed": 5}
    whole = complete(client, TEXT, **fields)["choices"][0]
    body = {"model": "tiny", "prompt": TEXT, "ignore_eos": True, "stream": True, **fields}
    response = client.post("/v1/completions", json=body)
    assert response.status_code == 200, response.text
    chunks = [httpx.Response(200, text=line[6:]).json() for line in response.text.split("\n\n")[:-2]]
    parts = [chunk["choices"][0] for chunk in chunks]
    assert "".join(part["text"] for part in parts) == whole["text"]
    streamed = [each for part in parts if part["logprobs"] for each in entries(part)]
    expected = entries(whole)
    assert [each.token for each in streamed] == [each.token for each in expected]
    assert [each.logprob for each in streamed] == pytest.approx([each.logprob for each in expected], abs=TOLERANCE)
