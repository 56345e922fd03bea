"""Validation, null, unknown fields, messages and the context."""

from typing import Any

import pytest

from conformance.ask import CHAT, COMPLETIONS, Asker, Wire, told
from conformance.checks import conforms
from conformance.fields import REQUEST_FIELDS
from conformance.models import START, saying
from conformance.served import served
from support.pictures import data_url, plain

BOTH = pytest.mark.parametrize("path", [COMPLETIONS, CHAT])
ALTERNATING = (
    "{% for message in messages %}{% if message.role == 'system' %}{{ raise_exception('System role not supported') }}"
    "{% endif %}{% if (message.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate user/assistant') }}{% endif %}"
    "{{ message.content }}{% endfor %}:"
)
"""As those of Gemma and Mistral."""
NAMING = "{% for message in messages %}({{ message.name }}){{ message.content }}{% endfor %}:"


def user(content: Any, **fields: Any) -> Wire:
    return {"role": "user", "content": content, **fields}


async def prompt_of(template: str, *messages: Wire, **fields: Any) -> str:
    """What the template makes of the messages; control tokens show as nothing."""
    async with served(saying("x", template=template)) as server:
        await server.answer(CHAT, messages=list(messages), **fields)
        [request] = server.requests
    return b"".join(server.model.vocabulary.pieces[token] for token in request.prompt_tokens).decode()


@conforms("prompt", rows=(101,))
@pytest.mark.parametrize("prompt", ["", [""], ["", ""]], ids=str)
async def test_an_empty_prompt_is_the_token_that_begins_a_text(prompt: Any) -> None:
    async with served(saying("x")) as server:
        answer = await server.answer(COMPLETIONS, prompt=prompt)
        assert {request.prompt_tokens for request in server.requests} == {(START,)}
    assert answer["usage"]["prompt_tokens"] == len([prompt] if isinstance(prompt, str) else prompt)


@conforms("prompt", rows=(101,))
async def test_an_empty_prompt_does_not_harm_a_real_engine(demo: Asker) -> None:
    for prompt in ("", [""]):
        assert (await demo.answer(COMPLETIONS, prompt=prompt, max_tokens=2))["usage"]["prompt_tokens"] == 1


@conforms("messages", "error", rows=(103,))
async def test_a_template_that_refuses_the_system_role_says_so_with_400() -> None:
    async with served(saying("x", template=ALTERNATING)) as server:
        messages = [{"role": "system", "content": "Be brief."}, user("Hi")]
        error = await server.refused(CHAT, 400, "messages", messages=messages)
    assert "System role not supported" in error["message"]


@conforms("messages", "error", rows=(104,))
async def test_two_user_messages_in_a_row_go_to_the_template_whose_refusal_is_400() -> None:
    messages = [user("Hello."), user("Anybody?")]
    async with served(saying("x", template=ALTERNATING)) as server:
        error = await server.refused(CHAT, 400, "messages", messages=messages)
    assert "alternate" in error["message"]
    async with served(saying("x")) as server:
        assert await server.answer(CHAT, messages=messages)


@conforms("max_tokens", rows=(106,))
@BOTH
@pytest.mark.parametrize("field", ["max_tokens", "max_completion_tokens"])
async def test_max_tokens_of_null_is_the_default(path: str, field: str) -> None:
    async with served(saying("AB", context_length=100)) as server:
        await server.answer(path, **{field: None})
        await server.answer(path)
        given, absent = server.requests
    assert given.max_tokens == absent.max_tokens == (16 if path == COMPLETIONS else 100 - len(absent.prompt_tokens))


@conforms(*(field for field in REQUEST_FIELDS if field not in ("model", "prompt", "messages")))
@BOTH
async def test_null_stands_for_an_absent_field(path: str) -> None:
    fields = [name.partition(".")[0] for name in REQUEST_FIELDS if name not in ("model", "prompt", "messages")]
    async with served(saying("AB")) as server:
        for field in fields:
            response = await server.send(path, **{field: None})
            assert response.status_code == 200, response.text
            assert "x-octavo-ignored" not in response.headers
        assert await server.answer(path, **dict.fromkeys(fields))


@conforms("messages", rows=(107,))
async def test_unknown_fields_are_accepted_and_named_and_a_name_reaches_the_template() -> None:
    async with served(saying("x")) as server:
        response = await server.send(CHAT, messages=[user("Hi", name="ann", weight=1)], store=True)
    assert response.status_code == 200
    assert set(response.headers["x-octavo-ignored"].split(", ")) == {"store", "messages.weight"}
    assert await prompt_of(NAMING, user("Hi", name="ann"), user("Ho")) == "(ann)Hi()Ho:"


@conforms("error", rows=(107,))
async def test_a_strict_server_refuses_unknown_fields() -> None:
    async with served(saying("x"), is_strict=True) as server:
        await server.refused(CHAT, 422, "store", store=True)
        await server.refused(COMPLETIONS, 422, "temprature", temprature=1)


@conforms("messages", rows=(109,))
async def test_content_in_parts_is_the_same_as_their_text() -> None:
    template = "{% for message in messages %}{{ message.content }}{% endfor %}:"
    parts = [{"type": "text", "text": "good"}, {"type": "text", "text": "bye"}]
    assert await prompt_of(template, user(parts)) == await prompt_of(template, user("goodbye")) == "goodbye:"


@conforms("messages", rows=(110,))
@pytest.mark.parametrize("content", [{"content": ""}, {"content": None}, {}], ids=str)
async def test_an_assistant_may_have_said_nothing(content: Wire) -> None:
    template = "{% for message in messages %}[{{ message.content }}]{% endfor %}:"
    said = {"role": "assistant", **content}
    assert await prompt_of(template, user("a"), said, user("b")) == "[a][][b]:"


@conforms("max_completion_tokens", rows=(112,))
@BOTH
async def test_max_completion_tokens_is_another_name_for_max_tokens(path: str) -> None:
    async with served(saying("AB", "CD", "EF")) as server:
        told_ = await server.told(path, max_completion_tokens=2)
        assert await server.told(path, max_completion_tokens=2, max_tokens=2) == told_
        await server.refused(path, 422, "max_completion_tokens", max_completion_tokens=2, max_tokens=3)
    assert (told_.text, told_.finish_reason) == ("ABCD", "length")


@conforms("max_tokens", "finish_reason", rows=(113,))
@BOTH
async def test_max_tokens_beyond_the_context_generates_to_its_end(path: str) -> None:
    async with served(saying("AB", context_length=64)) as server:
        answer = await server.answer(path, max_tokens=10**6, ignore_eos=True)
    assert answer["usage"]["total_tokens"] == 64
    assert told(answer).finish_reason == "length"


@conforms("prompt", "messages", "error", rows=(115,))
@pytest.mark.parametrize(
    ("path", "fields", "param"),
    [
        (COMPLETIONS, {"prompt": "x" * 65}, "prompt"),
        (COMPLETIONS, {"prompt": [1] * 65}, "prompt"),
        (COMPLETIONS, {"prompt": ["x", "x" * 65]}, "prompt"),
        (CHAT, {"messages": [user("x" * 65)]}, "messages"),
    ],
    ids=lambda value: str(value)[:16],
)
async def test_a_prompt_that_does_not_fit_is_refused_with_both_numbers_and_never_cut(
    path: str, fields: Wire, param: str
) -> None:
    async with served(saying("AB", context_length=64)) as server:
        error = await server.refused(path, 400, param, **fields)
        assert not server.requests
    assert error["code"] == "context_length_exceeded"
    assert "64" in error["message"]
    assert any(int(word.strip(";")) > 64 for word in error["message"].split() if word.strip(";").isdigit())


@conforms("image_url", rows=(116,))
@pytest.mark.parametrize(
    "url",
    [
        *("data:image/png;base64,AAAA", "data:image/png;base64,%%%", data_url(plain("red")[:-40]), data_url(b"no")),
        *("ftp://x", "http://[::1", "http://127.0.0.1/", "", None),
    ],
)
async def test_a_broken_picture_is_the_clients_fault(url: str | None) -> None:
    async with served(saying("x"), sees=True) as server:
        content = [{"type": "text", "text": "What is it?"}, {"type": "image_url", "image_url": {"url": url}}]
        response = await server.send(CHAT, messages=[user(content)])
        assert not server.requests
    assert 400 <= response.status_code < 500
    assert response.json()["param"] == "messages"


@conforms("model", rows=(118,))
@pytest.mark.parametrize("name", ["gpt-oss:120b", "owner/model:tag", ":", "模型"])
async def test_a_served_name_is_taken_as_it_is(name: str) -> None:
    async with served(saying("AB"), name=name) as server:
        answer = await server.answer(COMPLETIONS, model=name)
    assert answer["model"] == name


@conforms("model", "peft", rows=(118,))
@BOTH
async def test_a_served_name_wins_over_its_reading_as_model_and_adapter(path: str) -> None:
    name = "given:120b"
    async with served(saying("AB"), name=name, adapters=["120b", "given"]) as server:
        for asked in ({}, {"model": f"{name}:120b"}, {"model": "120b"}, {"peft": "120b"}, {"peft": "given"}):
            await server.answer(path, **asked)
        keys = server.adapter_keys
    used = ["", keys["120b"], keys["120b"], keys["120b"], keys["given"]]
    assert [request.adapter for request in server.requests] == used


@conforms("model", "peft", rows=(119,))
@BOTH
@pytest.mark.parametrize("names", [{"model": "my-lora"}, {"model": "given:my-lora"}, {"peft": "my-lora"}], ids=str)
async def test_a_named_adapter_is_used_by_every_sample_of_its_request_and_no_other(path: str, names: Wire) -> None:
    async with served(saying("AB"), adapters=["other", "my-lora"]) as server:
        for fields in ({}, {**names, "n": 2}, {}):
            await server.answer(path, **fields)
        key = server.adapter_keys["my-lora"]
    assert [request.adapter for request in server.requests] == ["", key, key, ""]


@conforms("model", "error", rows=(119,))
@BOTH
@pytest.mark.parametrize("name", ["my-lora", "given:my-lora", "Given", "given ", ""])
async def test_another_name_is_404_and_never_answered_by_the_model_that_is_there(path: str, name: str) -> None:
    async with served(saying("AB")) as server:
        error = await server.refused(path, 404, "model", model=name)
        assert not server.requests
    assert error["code"] == "model_not_found"
