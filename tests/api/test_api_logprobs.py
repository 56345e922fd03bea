"""Log-probabilities of answers, streamed and whole."""

import math
from typing import Any

import httpx
import pytest

from octavo.engine.scripted import CERTAINTY
from support.bad_inputs import CHAT, COMPLETIONS

from .asking import BARE, TRICKY, ask, folded, folded_whole, stream, texts
from .server import App, scripted

CERTAIN = math.log(CERTAINTY)
ASKED: dict[str, dict[str, Any]] = {COMPLETIONS: {"logprobs": 2}, CHAT: {"logprobs": True, "top_logprobs": 2}}
FIELDS: tuple[dict[str, Any], ...] = (
    {},
    {"n": 3},
    {"stop": "漢字"},
    {"stop": "字か", "include_stop_str_in_output": True},
    {"max_tokens": 0},
    {"max_tokens": 7},
    {"loglikelihood": True},
    {"loglikelihood": True, "max_tokens": 0},
)
ECHOES: tuple[dict[str, Any], ...] = (
    {"echo": True},
    {"echo": True, "prompt": "漢 b", "max_tokens": 0},
    {"echo": True, "prompt": "é\n", "loglikelihood": True, "stop": "字"},
    {"echo": True, "prompt": [[0xE6, 0xBC, 0xA2, 256, 97], [0xE6, 97, 257]], "n": 2},
)


def content_bytes(choice: dict[str, Any]) -> bytes:
    return b"".join(bytes(item["bytes"] or ()) for item in choice["logprobs"]["content"])


def names(choice: dict[str, Any]) -> list[str]:
    return [item["token"] for item in choice["logprobs"]["content"]]


@pytest.mark.parametrize("piece_bytes", [1, 2, 3, 5])
@pytest.mark.parametrize(
    ("path", "fields"),
    [*((path, fields) for path in BARE for fields in FIELDS), *((COMPLETIONS, fields) for fields in ECHOES)],
    ids=str,
)
async def test_a_stream_has_the_texts_entries_and_usage_of_the_whole_answer(
    path: str, fields: dict[str, Any], piece_bytes: int
) -> None:
    async with scripted(TRICKY, piece_bytes=piece_bytes, num_slots=8).client() as client:
        answer = await ask(client, path, **ASKED[path], **fields)
        *events, last, done = await stream(
            client, path, **ASKED[path], **fields, stream_options={"include_usage": True}
        )
    assert folded([*events, done]) == folded_whole(answer)
    assert last["usage"] == answer["usage"]


@pytest.mark.parametrize("piece_bytes", range(1, 6))
@pytest.mark.parametrize("path", BARE)
@pytest.mark.parametrize("stop", [None, "漢字", "字か", "🏳️‍🌈", "nd"])
async def test_the_bytes_of_the_entries_are_those_of_the_text(path: str, piece_bytes: int, stop: str | None) -> None:
    async with scripted(TRICKY, piece_bytes=piece_bytes).client() as client:
        answer = await ask(client, path, **ASKED[path], stop=stop)
    [text] = texts(answer)
    assert text == TRICKY.partition(stop or "never")[0]
    assert content_bytes(answer["choices"][0]) == text.encode()


@pytest.mark.parametrize("piece_bytes", range(1, 6))
@pytest.mark.parametrize("fields", [{}, {"stop": "字か"}, *ECHOES], ids=str)
async def test_offsets_say_where_in_the_text_a_token_is(fields: dict[str, Any], piece_bytes: int) -> None:
    async with scripted(TRICKY, piece_bytes=piece_bytes, num_slots=8).client() as client:
        answer = await ask(client, COMPLETIONS, logprobs=1, **fields)
    for choice in answer["choices"]:
        text, logprobs = choice["text"], choice["logprobs"]
        offsets = logprobs["text_offset"]
        assert len({len(logprobs[name]) for name in ("tokens", "token_logprobs", "top_logprobs", "text_offset")}) == 1
        assert offsets == sorted(offsets)
        assert offsets[0] == 0
        assert offsets[-1] <= len(text)
        content = logprobs["content"]
        num_without = len(offsets) - len(content)
        assert num_without == int("echo" in fields)  # the first token of a prompt
        for item, token, offset in zip(content, logprobs["tokens"][num_without:], offsets[num_without:], strict=True):
            is_whole = not token.startswith("bytes:")
            assert token.removeprefix("bytes:") == item["token"]
            assert not is_whole or text[offset:].encode().startswith(bytes(item["bytes"] or ()))


@pytest.mark.parametrize("path", BARE)
async def test_each_generated_token_has_an_entry_with_its_alternatives(client: httpx.AsyncClient, path: str) -> None:
    answer = await ask(client, path, **ASKED[path])
    [choice] = answer["choices"]
    assert names(choice) == ["The ", "quic", "k br", "own ", "fox.", "<|end|>"]
    for item in choice["logprobs"]["content"]:
        assert item["logprob"] == CERTAIN
        assert item["top_logprobs"][0]["token"] == item["token"]
        assert len(item["top_logprobs"]) == 2
    assert choice["logprobs"]["content"][-1]["bytes"] is None


@pytest.mark.parametrize("path", BARE)
async def test_who_does_not_ask_gets_null(client: httpx.AsyncClient, path: str) -> None:
    assert (await ask(client, path))["choices"][0]["logprobs"] is None
    assert all(event["choices"][0]["logprobs"] is None for event in (await stream(client, path))[:-1])


@pytest.mark.parametrize("path", BARE)
async def test_the_text_does_not_depend_on_whether_logprobs_are_asked_for(path: str) -> None:
    async with scripted(TRICKY, piece_bytes=2).client() as client:
        plain, asked = await ask(client, path), await ask(client, path, **ASKED[path])
    assert texts(plain) == texts(asked) == [TRICKY]
    assert plain["usage"] == asked["usage"]


async def test_logprobs_of_zero_tell_the_chosen_tokens_alone(client: httpx.AsyncClient) -> None:
    [choice] = (await ask(client, COMPLETIONS, logprobs=0, max_tokens=1))["choices"]
    assert choice["logprobs"] == {
        "content": [{"token": "The ", "logprob": CERTAIN, "bytes": list(b"The "), "top_logprobs": []}],
        "tokens": ["The "],
        "token_logprobs": [CERTAIN],
        "top_logprobs": [{"The ": CERTAIN}],
        "text_offset": [0],
    }


async def test_an_echo_puts_the_prompt_before_the_completion(client: httpx.AsyncClient) -> None:
    [choice] = (await ask(client, COMPLETIONS, prompt="ab", echo=True, logprobs=1, max_tokens=1))["choices"]
    assert choice["text"] == "abThe "
    assert choice["logprobs"]["tokens"] == ["a", "b", "The "]
    assert choice["logprobs"]["token_logprobs"] == [None, CERTAIN, CERTAIN]
    assert choice["logprobs"]["top_logprobs"] == [None, {"b": CERTAIN}, {"The ": CERTAIN}]
    assert choice["logprobs"]["text_offset"] == [0, 1, 2]
    assert names(choice) == ["b", "The "]


async def test_an_echo_of_a_prompt_needs_no_generated_token(app: App, client: httpx.AsyncClient) -> None:
    fields = {"prompt": ["ab", "cd"], "echo": True, "max_tokens": 0}
    answer = await ask(client, COMPLETIONS, **fields)
    assert texts(answer) == ["ab", "cd"]
    assert [choice["finish_reason"] for choice in answer["choices"]] == ["length", "length"]
    assert answer["usage"]["completion_tokens"] == 0
    assert [choice.text for choice in folded(await stream(client, COMPLETIONS, **fields))] == ["ab", "cd"]
    assert all(request.max_tokens == 0 for request in app.engine.requests)


@pytest.mark.parametrize("text", ["x" * 20, "漢字かなé!"])
async def test_a_prompt_as_long_as_the_context_is_scored(text: str) -> None:
    async with scripted(context_length=len(text.encode())).client() as client:
        [choice] = (await ask(client, COMPLETIONS, prompt=text, echo=True, logprobs=0))["choices"]
    assert choice["text"] == text
    assert choice["finish_reason"] == "length"
    assert len(choice["logprobs"]["tokens"]) == len(text.encode())


async def test_a_loglikelihood_puts_the_prompts_tokens_but_the_first_before_those_of_the_answer(
    client: httpx.AsyncClient,
) -> None:
    [choice] = (await ask(client, COMPLETIONS, prompt="abc", loglikelihood=True, max_tokens=2))["choices"]
    assert choice["text"] == "The quic"
    assert names(choice) == ["b", "c", "The ", "quic"]
    assert choice["logprobs"]["tokens"] == ["The ", "quic"]
    [alone] = (await ask(client, COMPLETIONS, prompt="abc", loglikelihood=True, max_tokens=0))["choices"]
    assert names(alone) == ["b", "c"]


async def test_the_loglikelihood_of_a_conversation_is_that_of_the_rendered_prompt(
    app: App, client: httpx.AsyncClient
) -> None:
    [choice] = (await ask(client, CHAT, loglikelihood=True))["choices"]
    prompt = bytes(app.engine.requests[0].prompt_tokens).decode()
    assert "".join(names(choice)) == prompt[1:] + "The quick brown fox.<|end|>"


async def test_the_best_candidates_show_their_entries_where_asked_for(client: httpx.AsyncClient) -> None:
    [choice] = (await ask(client, COMPLETIONS, best_of=3, logprobs=0))["choices"]
    assert choice["logprobs"]["tokens"] == ["The ", "quic", "k br", "own ", "fox.", "<|end|>"]
