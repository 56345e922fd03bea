"""The fake engine that ships."""

import asyncio
from contextlib import aclosing

import pytest

from engine.builders import collect, request, text_request, until
from octavo.core.output import FinishReason
from octavo.core.request import GenerationRequest
from octavo.engine.base import EngineState
from octavo.engine.scripted import END_TOKEN, ScriptedEngine
from octavo.engine.specs import ScriptedSpec
from octavo.errors import EngineError, EngineUnavailable


async def say(engine: ScriptedEngine, asked: GenerationRequest) -> tuple[str, int, FinishReason | None]:
    """Text, number of tokens, finish reason."""
    tokens, reason = await collect(engine.generate(asked))
    pieces = engine.tokenizer.vocabulary.pieces
    return b"".join(pieces[token] for token in tokens).decode(), len(tokens), reason


@pytest.mark.parametrize("piece_bytes", [1, 2, 3, 100])
async def test_it_says_its_text_in_pieces_and_ends(piece_bytes: int) -> None:
    text = "Grüße, 世界! 🦊"
    size = len(text.encode())
    engine = ScriptedEngine(ScriptedSpec(text, piece_bytes))
    expected = (text, -(-size // piece_bytes) + 1, FinishReason.STOP)
    assert await say(engine, text_request("hello")) == expected


async def test_max_tokens_ends_it_before() -> None:
    engine = ScriptedEngine(ScriptedSpec("abcdef", piece_bytes=2))
    assert await say(engine, text_request("hello", 2)) == ("abcd", 2, FinishReason.LENGTH)
    assert await say(engine, text_request("hello", 0)) == ("", 0, FinishReason.LENGTH)


async def test_with_ignore_eos_the_text_starts_over() -> None:
    engine = ScriptedEngine(ScriptedSpec("ab", piece_bytes=1))
    tokens, reason = await collect(engine.generate(request(max_tokens=7, ignore_eos=True)))
    assert tokens.count(END_TOKEN) == 2
    assert (len(tokens), reason) == (7, FinishReason.LENGTH)


async def test_a_script_line_of_the_prompt_is_for_its_own_request() -> None:
    engine = ScriptedEngine(ScriptedSpec("abcd"))
    prompt = 'Please.\n@script {"text": "other", "piece_bytes": 5}\nThanks.'
    assert await say(engine, text_request(prompt)) == ("other", 6, FinishReason.STOP)
    assert await say(engine, text_request("Please.")) == ("abcd", 2, FinishReason.STOP)


@pytest.mark.parametrize(
    "script", ["{broken}", '{"text": 5}', '{"raise_at": "x"}', '{"piece_bytes": 0}', '{"delay": null}']
)
async def test_a_script_line_that_cannot_be_read_fails_its_request(script: str) -> None:
    engine = ScriptedEngine(ScriptedSpec())
    with pytest.raises(EngineError, match="@script"):
        await collect(engine.generate(text_request(f"@script {script}")))
    assert engine.health().num_running == 0


async def test_it_raises_where_the_script_says() -> None:
    engine = ScriptedEngine(ScriptedSpec("abcdef", piece_bytes=1, raise_at=2))
    async with aclosing(engine.generate(text_request(""))) as stream:
        assert [(await anext(stream)).finish_reason for _ in range(2)] == [None, None]
        with pytest.raises(EngineError):
            await anext(stream)


async def test_slots_are_given_in_order_and_freed_by_closing() -> None:
    engine = ScriptedEngine(ScriptedSpec(hang_at=1, num_slots=2))
    streams = [asyncio.create_task(collect(engine.generate(request()))) for _ in range(4)]
    await until(lambda: (engine.health().num_running, engine.health().num_waiting) == (2, 2))
    assert len(engine.running) == 2
    streams[0].cancel()
    streams[3].cancel()
    await until(lambda: (engine.health().num_running, engine.health().num_waiting) == (2, 0))
    await engine.close()


async def test_close_ends_who_runs_hangs_or_waits_and_refuses_others() -> None:
    engine = ScriptedEngine(ScriptedSpec(num_slots=2))
    hang, slow = text_request('@script {"hang_at": 0}'), text_request('@script {"delay": 1000}')
    streams = [asyncio.create_task(collect(engine.generate(each))) for each in (hang, slow, request())]
    await until(lambda: (engine.health().num_running, engine.health().num_waiting) == (2, 1))
    await engine.close()
    for stream in streams:
        with pytest.raises(EngineUnavailable):
            await stream
    with pytest.raises(EngineUnavailable):
        await anext(engine.generate(request()))
    assert engine.health().state is EngineState.CLOSED


async def test_run_ends_with_close() -> None:
    engine = ScriptedEngine(ScriptedSpec())
    running = asyncio.create_task(asyncio.to_thread(engine.run))
    await engine.close()
    await running


async def test_its_tokenizer_has_a_token_for_each_byte_and_for_what_it_says() -> None:
    engine = ScriptedEngine(ScriptedSpec("abcd", piece_bytes=2))
    vocabulary = engine.tokenizer.vocabulary
    assert await engine.tokenizer.encode(["é<|end|>", END_TOKEN]) == (*"é<|end|>".encode(), END_TOKEN)
    assert {b"ab", b"cd"} <= set(vocabulary.pieces)
    assert vocabulary.pieces[END_TOKEN] == b""
    assert vocabulary.eog_tokens == {END_TOKEN}


@pytest.mark.parametrize(("text", "min_tokens"), [("abcd", 2), ("abcd", 5), ("", 3)])
async def test_it_ends_no_sooner_than_it_may_and_never_hangs(text: str, min_tokens: int) -> None:
    engine = ScriptedEngine(ScriptedSpec(text, piece_bytes=1))
    said, num_tokens, reason = await say(engine, request(tuple(b"hello"), 50, min_tokens=min_tokens))
    assert num_tokens > min_tokens
    assert reason is FinishReason.STOP
    assert said.startswith(text)


async def test_a_user_who_comes_late_is_answered_before_all_that_a_heavy_one_has_waiting() -> None:
    engine = ScriptedEngine(ScriptedSpec(num_slots=1))
    ended: list[str] = []

    async def ask(name: str, user: str) -> None:
        await collect(engine.generate(text_request(name, owner=("key", user))))
        ended.append(name)

    async with aclosing(engine.generate(text_request("first", owner=("key", "heavy")))) as first:
        await anext(first)
        names = [*(f"heavy {number}" for number in range(9)), "light"]
        tasks = [asyncio.create_task(ask(name, name.split()[0])) for name in names]
        await until(lambda: engine.health().num_waiting == 10)
    await asyncio.gather(*tasks)
    assert ended == ["light", *names[:-1]]


async def test_one_who_leaves_at_the_moment_of_its_turn_gives_it_on() -> None:
    engine = ScriptedEngine(ScriptedSpec(num_slots=1))
    first, leaving, next_one = (asyncio.create_task(collect(engine.generate(request()))) for _ in range(3))
    first.add_done_callback(lambda _: leaving.cancel())
    await asyncio.wait((first, leaving, next_one))
    assert leaving.cancelled() or leaving.done()
    assert (await next_one)[1] is FinishReason.LENGTH
    assert (engine.health().num_running, engine.health().num_waiting) == (0, 0)
