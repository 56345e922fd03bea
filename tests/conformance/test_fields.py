"""Fields of the contract that no report is about."""

from pathlib import Path
from typing import Any

import pytest

from conformance.ask import CHAT, COMPLETIONS, Wire, fold, said_by, told
from conformance.checks import conforms
from conformance.models import THINKING_TEMPLATE, babbling, saying
from conformance.served import NAME, served
from conformance.vision import NUM_TOKENS
from support.pictures import data_url, image_part, plain, text_part
from support.prompt_logs import open_log

BOTH = pytest.mark.parametrize("path", [COMPLETIONS, CHAT])
SWITCHING = (
    "{% for message in messages %}{{ message.content }}{% endfor %}"
    "{% if enable_thinking is defined and not enable_thinking %}[no thinking]{% endif %}"
    "{% if reasoning_effort is defined %}[{{ reasoning_effort }}]{% endif %}:"
)


async def prompt_of(template: str, **fields: Any) -> str:
    async with served(saying("x", template=template)) as server:
        await server.answer(CHAT, **fields)
        return bytes(server.requests[0].prompt_tokens).decode()


@conforms("model")
@BOTH
@pytest.mark.parametrize("model", [None, 1, True, []], ids=str)
async def test_the_model_must_be_named(path: str, model: Any) -> None:
    async with served(saying("x")) as server:
        await server.refused(path, 422, "model", model=model)


@conforms("messages")
@pytest.mark.parametrize(
    "messages",
    [[], None, "Hi", [{"content": "x"}], [{"role": "robot", "content": "x"}], [{"role": "user", "content": 1}]],
    ids=str,
)
async def test_messages_are_at_least_one_each_with_a_known_role(messages: Any) -> None:
    async with served(saying("x")) as server:
        await server.refused(CHAT, 422, "messages", messages=messages)


@conforms("messages")
async def test_a_developer_is_the_system() -> None:
    template = "{% for message in messages %}{{ message.role }}={{ message.content }};{% endfor %}:"
    messages = [{"role": role, "content": "x"} for role in ("developer", "system", "user", "assistant")]
    assert await prompt_of(template, messages=messages) == "system=x;system=x;user=x;assistant=x;:"


@conforms("min_tokens", "stop")
@BOTH
@pytest.mark.parametrize("number", [3, 5])
async def test_nothing_ends_an_answer_before_min_tokens(path: str, number: int) -> None:
    async with served(saying("AB", "CD")) as server:
        answer = await server.answer(path, min_tokens=number, max_tokens=10)
        stopped = await server.told(path, min_tokens=2, max_tokens=10, stop="AB")
        await server.refused(path, 422, "min_tokens", min_tokens=11, max_tokens=10)
        await server.refused(path, 422, "min_tokens", min_tokens=-1)
    assert answer["usage"]["completion_tokens"] > number or told(answer).finish_reason == "length"
    assert told(answer).text.startswith("ABCD")
    assert stopped.text.startswith("ABCD")


@conforms("stop_token_ids", "include_stop_str_in_output", "ignore_eos")
@BOTH
async def test_a_stop_token_ends_the_answer_and_shows_only_where_the_request_asks_for_it(path: str) -> None:
    async with served(saying("AB", "CD", "EF")) as server:
        ids = [server.model.id_of("CD")]
        plain = await server.told(path, stop_token_ids=ids)
        beyond = await server.told(path, stop_token_ids=ids, ignore_eos=True)
        shown = await server.told(path, stop_token_ids=ids, include_stop_str_in_output=True)
        never = await server.told(path, stop_token_ids=[server.model.id_of("Z")])
    assert (plain.text, plain.finish_reason) == (beyond.text, beyond.finish_reason) == ("AB", "stop")
    assert (shown.text, shown.finish_reason) == ("ABCD", "stop")
    assert never.text == "ABCDEF"


@conforms("stop_token_ids")
@BOTH
@pytest.mark.parametrize("ids", [[999_999_999], [-1], ["1"], [1.0], 1, [1] * 65], ids=lambda ids: str(ids)[:20])
async def test_stop_token_ids_are_a_short_list_of_ids_of_the_vocabulary(path: str, ids: Any) -> None:
    async with served(saying("x")) as server:
        await server.refused(path, 422, "stop_token_ids", stop_token_ids=ids)
        assert not server.requests


@conforms("ignore_eos", "max_tokens")
@BOTH
async def test_ignore_eos_goes_on_after_the_end_until_something_else_ends_it(path: str) -> None:
    async with served(saying("AB", "CD")) as server:
        by_length = await server.told(path, ignore_eos=True, max_tokens=8)
        by_stop = await server.told(path, ignore_eos=True, max_tokens=50, stop="DAB")
        off = await server.told(path, ignore_eos=False, max_tokens=8)
    assert (by_length.text, by_length.finish_reason) == ("ABCDABCDABCD"[:12], "length")
    assert (by_stop.text, by_stop.finish_reason) == ("ABC", "stop")
    assert (off.text, off.finish_reason) == ("ABCD", "stop")


@conforms("chat_template_kwargs")
async def test_variables_of_the_template_reach_it_and_cannot_replace_the_servers_own() -> None:
    assert await prompt_of(SWITCHING) == "Speak.:"
    assert await prompt_of(SWITCHING, chat_template_kwargs={"enable_thinking": False}) == "Speak.[no thinking]:"
    async with served(saying("x")) as server:
        for name in ("messages", "tools", "bos_token"):
            await server.refused(CHAT, 422, "chat_template_kwargs", chat_template_kwargs={name: []})


@conforms("reasoning_effort")
@pytest.mark.parametrize("effort", ["low", "medium", "high"])
async def test_the_reasoning_effort_reaches_the_template(effort: str) -> None:
    assert await prompt_of(SWITCHING, reasoning_effort=effort) == f"Speak.[{effort}]:"
    assert await prompt_of(SWITCHING, reasoning_effort="none") == "Speak.[no thinking][none]:"
    async with served(saying("x", template=THINKING_TEMPLATE)) as server:
        assert await server.answer(CHAT, reasoning_effort=effort)
        await server.refused(CHAT, 422, "reasoning_effort", reasoning_effort="enormous")


@conforms("peft", "error", rows=(119,))
@BOTH
@pytest.mark.parametrize("name", ["my-lora", "given", ""])
async def test_an_adapter_that_the_model_does_not_have_is_404_and_never_left_out(path: str, name: str) -> None:
    async with served(saying("x")) as server:
        error = await server.refused(path, 404, "peft", peft=name)
        assert not server.requests
        assert error["code"] == "peft_not_found"
        assert (await server.send(path, peft=None)).status_code == 200


@conforms("log_prompt")
@BOTH
async def test_a_request_and_its_answer_are_in_the_log_when_the_answer_ends_and_only_where_that_is_asked_for(
    tmp_path: Path, path: str
) -> None:
    off: list[Wire] = [{"log_prompt": None}, {"log_prompt": False}]
    async with open_log(tmp_path) as log, served(saying("AB"), prompt_log=log) as server:
        for fields in off:
            assert await server.answer(path, **fields)
        answer = await server.answer(path, log_prompt=True)
        chunks = await server.chunks(path, log_prompt=True)
        rows = (await server.client.get("/v1/logs")).json()["data"]
    assert [row["id"] for row in rows] == [chunks[0]["id"], answer["id"]]
    assert [row["answer"] for row in rows[1:]] == [answer]
    assert told(rows[0]["answer"]) == fold(chunks)


@conforms("log_prompt", "error")
@BOTH
async def test_where_there_is_no_log_a_request_that_is_to_be_logged_is_refused_and_never_only_answered(
    path: str,
) -> None:
    async with served(saying("x")) as server:
        assert (await server.refused(path, 400, "log_prompt", log_prompt=True))["code"] == "prompt_log_off"
        assert not server.requests


@conforms("image_url", "usage")
@pytest.mark.parametrize("detail", ["low", "high", "auto", None])
async def test_a_picture_stands_where_the_message_has_it_and_its_tokens_count(detail: str | None) -> None:
    content = [text_part("A"), image_part(data_url(plain("red")), detail=detail), text_part("B")]
    async with served(saying("CD"), sees=True) as server:
        shown = await server.answer(CHAT, messages=[{"role": "user", "content": content}])
        alone = await server.answer(CHAT, messages=[{"role": "user", "content": "AB"}])
        request = server.requests[0]
    [span] = request.images
    assert (request.prompt_tokens[span.start - 1], request.prompt_tokens[span.end]) == (ord("A"), ord("B"))
    assert shown["usage"]["prompt_tokens"] == alone["usage"]["prompt_tokens"] + NUM_TOKENS
    assert told(shown).text == told(alone).text == "CD"


@conforms("image_url", "error")
async def test_a_model_that_sees_nothing_says_so_and_never_leaves_a_picture_out() -> None:
    message = {"role": "user", "content": [text_part("A"), image_part(data_url(plain("red")))]}
    async with served(saying("x")) as server:
        error = await server.refused(CHAT, 400, "messages", messages=[message])
        assert not server.requests
    assert error["code"] == "vision_unsupported"


@conforms("user")
@BOTH
async def test_a_user_changes_nothing_of_the_answer(path: str) -> None:
    async with served(babbling()) as server:
        plain = await server.told(path, seed=1, max_tokens=8, temperature=1)
        assert await server.told(path, seed=1, max_tokens=8, temperature=1, user="ann") == plain
        await server.refused(path, 422, "user", user=1)


@conforms("id", "object", "created", "model", "system_fingerprint")
@pytest.mark.parametrize(
    ("path", "prefix", "whole", "chunk"),
    [
        (COMPLETIONS, "cmpl-", "text_completion", "text_completion"),
        (CHAT, "chatcmpl-", "chat.completion", "chat.completion.chunk"),
    ],
)
async def test_an_answer_says_what_it_is_and_all_chunks_say_the_same(
    path: str, prefix: str, whole: str, chunk: str
) -> None:
    async with served(saying("AB", "CD")) as server:
        answer = await server.answer(path)
        chunks = await server.chunks(path, n=2, stream_options={"include_usage": True})
    assert answer["id"].startswith(prefix)
    assert answer["object"] == whole
    assert answer["model"] == NAME
    assert answer["system_fingerprint"] == chunks[0]["system_fingerprint"]
    heads = {(each["id"], each["object"], each["created"], each["model"]) for each in chunks}
    assert heads == {(chunks[0]["id"], chunk, chunks[0]["created"], NAME)}
    assert chunks[0]["id"] != answer["id"]
    assert isinstance(answer["created"], int)


@conforms("stream", "choices")
@BOTH
@pytest.mark.parametrize("n", [1, 3])
async def test_deltas_joined_are_the_answer_that_is_not_streamed(path: str, n: int) -> None:
    async with served(babbling()) as server:
        fields: Wire = {"n": n, "seed": 4, "temperature": 1, "max_tokens": 30}
        answer = await server.answer(path, **fields)
        chunks = await server.chunks(path, **fields)
    assert [fold(chunks, index) for index in range(n)] == [told(answer, index) for index in range(n)]
    assert sum(bool(said_by(chunk["choices"][0])) for chunk in chunks) > n
