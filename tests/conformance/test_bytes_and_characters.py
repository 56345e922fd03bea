"""Bytes and UTF-8."""

from typing import Any

import pytest

from conformance.ask import CHAT, COMPLETIONS, Asker, Wire, fold, said_by
from conformance.checks import conforms
from conformance.models import END, GivenModel, saying
from conformance.served import served

MIXED = "你是谁？ I am 🦊👩‍👩‍👧‍👦 and 👍🏽, é e\u0301."
JAPANESE = "日本語のテキスト。🍣"
BOTH = pytest.mark.parametrize("path", [COMPLETIONS, CHAT])


def cut(text: str, size: int) -> GivenModel:
    """A model that says the text in tokens of so many bytes."""
    data = text.encode()
    return saying(*(data[start : start + size] for start in range(0, len(data), size)))


def shown(data: bytes) -> str:
    r"""A token with these bytes, which are written as in \xe2\x80 where they are no text by themselves."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return "".join(f"\\x{byte:02x}" for byte in data)


@conforms("stream", rows=(19,))
@BOTH
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
async def test_characters_are_streamed_whole_wherever_tokens_cut_them(path: str, size: int) -> None:
    async with served(cut(MIXED, size)) as server:
        chunks = await server.chunks(path, max_tokens=200)
        told = await server.told(path, max_tokens=200)
    assert told.text == fold(chunks).text == MIXED
    assert not any("\ufffd" in said_by(choice) for chunk in chunks for choice in chunk["choices"])


@conforms("stream", rows=(19,))
async def test_chinese_and_emoji_of_a_real_model_stream_as_they_are_answered(demo: Asker) -> None:
    for prompt in ("你是谁？", "🦊🐻🐼 🦁"):
        told = await demo.told(COMPLETIONS, prompt=prompt, max_tokens=24, ignore_eos=True)
        assert "\ufffd" not in told.text[:-1]


@conforms("stream", rows=(20,))
@BOTH
async def test_a_token_of_a_space_and_part_of_a_character_waits_for_the_rest(path: str) -> None:
    async with served(saying("Hi", b" \xf0\x9f", b"\xa6", b"\x8a!", b" \xe2", b"\x9c\x93")) as server:
        told = await server.told(path)
        deltas = [said_by(choice) for chunk in await server.chunks(path) for choice in chunk["choices"]]
    assert told.text == "Hi 🦊! ✓"
    assert not any("\ufffd" in delta for delta in deltas)


@conforms("logprobs", "top_logprobs", "stream", rows=(22,))
@pytest.mark.parametrize("size", [1, 2, 3, 4])
async def test_the_text_is_the_same_with_log_probabilities_and_without(size: int) -> None:
    async with served(cut(JAPANESE, size)) as server:
        without = await server.told(CHAT)
        for wanted in ({"logprobs": True}, {"logprobs": True, "top_logprobs": 5}):
            with_them = await server.told(CHAT, **wanted)
            assert with_them.text == without.text == JAPANESE
            assert with_them.entry_bytes == JAPANESE.encode()


@conforms("logit_bias", rows=(23,))
@pytest.mark.parametrize("bias", [-100, -50, 1])
async def test_a_bias_does_not_break_a_character_that_the_model_can_still_spell(bias: float) -> None:
    model = saying("a ", "🦊", " and ", "漢字", "!")
    bans = {str(model.id_of("🦊")): bias, str(model.id_of("漢字")): bias}
    async with served(model) as server:
        told = await server.told(COMPLETIONS, logit_bias=bans, logprobs=0, max_tokens=30)
    assert told.text == "a 🦊 and 漢字!"
    assert told.entry_bytes == told.text.encode()
    assert ("🦊" in told.tokens) == (bias > 0)


@conforms("logprobs", "loglikelihood", rows=(25,))
async def test_bytes_are_those_of_the_text_and_not_of_a_display_alphabet(demo: Asker) -> None:
    text = "你好，世界。Привет 🦊"
    told = await demo.told(CHAT, messages=[{"role": "user", "content": text}], loglikelihood=True, max_tokens=4)
    assert text.encode() in told.entry_bytes
    assert told.entry_bytes.decode(errors="replace").endswith(told.text)


@conforms("logprobs", "echo", rows=(26,))
async def test_token_texts_are_real_text_with_its_spaces_and_line_ends(demo: Asker) -> None:
    text = "The quick fox\n\n\tjumps  over 1 dog."
    told = await demo.told(COMPLETIONS, prompt=text, echo=True, logprobs=2, max_tokens=3)
    tokens = told.logprobs["tokens"]
    assert "".join(tokens) == told.text
    assert told.text.startswith(text)
    seen = [*tokens, *(name for top in told.logprobs["top_logprobs"] if top for name in top)]
    assert not any(mark in name for name in seen for mark in "ĠĊ▁")


@conforms("logprobs", rows=(28,))
@pytest.mark.parametrize(("path", "wanted"), [(COMPLETIONS, {"logprobs": 0}), (CHAT, {"logprobs": True})])
async def test_the_token_that_ends_an_answer_has_its_name_and_null_bytes(path: str, wanted: Wire) -> None:
    async with served(saying("Hello")) as server:
        told = await server.told(path, **wanted)
        logprob = float(server.model.logprobs([*server.requests[0].prompt_tokens, server.model.id_of("Hello")])[END])
    assert [(entry["token"], entry["bytes"]) for entry in told.entries] == [
        ("Hello", list(b"Hello")),
        ("<|end|>", None),
    ]
    assert told.entries[1]["logprob"] == pytest.approx(logprob, abs=1e-4)


@conforms("logprobs", "top_logprobs", rows=(29,))
@pytest.mark.parametrize("size", [1, 2, 3])
async def test_alternatives_are_written_by_the_same_rules_as_the_chosen_token(size: int) -> None:
    async with served(cut("é🦊 x", size)) as server:
        told = await server.told(CHAT, logprobs=True, top_logprobs=20)
    for entry in told.entries:
        assert len(entry["top_logprobs"]) == 20
        alternatives: list[dict[str, Any]] = [entry, *entry["top_logprobs"]]
        assert all(each["bytes"] for each in alternatives if not each["token"].startswith("<|"))
        assert all(each["token"] == shown(bytes(each["bytes"])) for each in alternatives if each["bytes"])
        assert all(each["token"].startswith("<|") for each in alternatives if each["bytes"] is None)
        assert entry["top_logprobs"][0] == {key: entry[key] for key in ("token", "logprob", "bytes")}
