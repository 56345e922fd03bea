"""An engine in a real child process: what it answers, and what happens when the process does not live."""

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import aclosing
from pathlib import Path

import psutil
import pytest

from engine.builders import collect, request, text_request, until
from octavo.core.output import FinishReason
from octavo.core.request import LogprobParams
from octavo.engine.base import EngineState
from octavo.engine.scripted import END_TOKEN
from octavo.engine.specs import LlamaSpec, ScriptedSpec
from octavo.engine.worker import WorkerEngine
from octavo.errors import EngineDied, EngineError, EngineUnavailable, ModelLoadError

from .workers import ANSWER, ready, starting

HANG = text_request('@script {"hang_at": 1}').prompt_tokens


async def text(engine: WorkerEngine, prompt: str = "hello") -> str:
    tokens, _ = await collect(engine.generate(text_request(prompt)))
    return b"".join(engine.vocabulary.pieces[token] for token in tokens).decode()


async def hanging_streams(engine: WorkerEngine, number: int) -> list[asyncio.Task[object]]:
    """Streams that have had their first token and then nothing."""
    streams: list[asyncio.Task[object]] = [
        asyncio.create_task(collect(engine.generate(request(HANG)))) for _ in range(number)
    ]
    await until(lambda: engine.health().num_running == number)
    return streams


def is_gone(pid: int) -> bool:
    """Also when nobody has asked for its exit code yet."""
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


async def test_it_answers_as_the_engine_in_its_child_does() -> None:
    async with ready() as engine:
        assert (engine.health().state, engine.health().progress) == (EngineState.READY, 1.0)
        assert engine.health().pid == engine.pid
        assert (engine.info.num_slots, engine.info.context_length) == (16, ANSWER.context_length)
        assert engine.vocabulary.eog_tokens == {END_TOKEN}
        assert await text(engine) == "abcdef"
        tokens, reason = await collect(engine.generate(request(max_tokens=2)))
        assert (len(tokens), reason) == (2, FinishReason.LENGTH)
        assert await collect(engine.generate(request(max_tokens=0))) == ([], FinishReason.LENGTH)
        assert await engine.encode(["é", END_TOKEN]) == (*"é".encode(), END_TOKEN)


async def test_log_probabilities_of_a_long_prompt_come_in_parts_and_whole() -> None:
    prompt, wanted = tuple(range(1, 256)) * 4, LogprobParams(of_prompt=True, num_top=3)
    async with ready() as engine:
        chunks = [chunk async for chunk in engine.generate(request(prompt, max_tokens=2, logprobs=wanted))]
    scored = [each for chunk in chunks for each in chunk.prompt_logprobs]
    assert [each.token for each in scored] == list(prompt[1:])
    assert max(len(chunk.prompt_logprobs) for chunk in chunks) <= 32
    assert sum(len(chunk.tokens) for chunk in chunks) == 2
    assert chunks[-1].finish_reason is FinishReason.LENGTH


async def test_texts_are_encoded_while_all_slots_are_taken() -> None:
    async with ready() as engine:
        streams = await hanging_streams(engine, 16)
        assert await asyncio.gather(*(engine.encode([word]) for word in ("a", "bc", ""))) == [(97,), (98, 99), ()]
        for stream in streams:
            stream.cancel()


async def test_a_closed_stream_frees_its_place_in_the_child() -> None:
    async with ready() as engine:
        async with aclosing(engine.generate(request(HANG))) as stream:
            await anext(stream)
            await until(lambda: engine.health().num_running == 1)
        await until(lambda: engine.health().num_running == 0)
        for waiting in await hanging_streams(engine, 16):
            waiting.cancel()
        await until(lambda: engine.health().num_running == 0)
        assert await text(engine) == "abcdef"


async def test_its_process_starts_no_threads_for_products_of_matrices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    async with ready() as engine:
        assert psutil.Process(engine.pid).environ()["OPENBLAS_NUM_THREADS"] == "1"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_signals_to_the_whole_process_group_leave_the_child_to_its_parent(number: signal.Signals) -> None:
    async with ready() as engine:
        pid = engine.pid
        assert pid is not None
        os.kill(pid, number)
        assert await text(engine) == "abcdef"
        assert (engine.pid, engine.health().num_restarts) == (pid, 0)


async def test_closing_while_it_loads_ends_the_wait_for_it() -> None:
    async with starting(ScriptedSpec(load_delay=60)) as engine:
        waiting = asyncio.create_task(engine.wait_ready())
        await until(lambda: engine.pid is not None)
        await engine.close()
        with pytest.raises(EngineUnavailable):
            await waiting


async def test_a_request_that_fails_leaves_the_others_alone() -> None:
    async with ready() as engine:
        results = await asyncio.gather(
            text(engine), text(engine, '@script {"raise_at": 1}'), text(engine), return_exceptions=True
        )
        assert [results[0], results[2]] == ["abcdef", "abcdef"]
        assert type(results[1]) is EngineError
        assert engine.health().num_restarts == 0


async def check_death_and_return(engine: WorkerEngine, streams: list[asyncio.Task[object]]) -> None:
    """Every stream ends with EngineDied; the engine restarts, refuses meanwhile, and is ready again."""
    for stream in streams:
        with pytest.raises(EngineDied):
            await stream
    assert engine.health().state is EngineState.RESTARTING
    assert engine.health().num_running == 0
    with pytest.raises(EngineUnavailable):
        await text(engine)
    with pytest.raises(EngineUnavailable):
        await engine.encode(["a"])
    assert engine.info.num_slots == 16, "what was known stays known"
    await until(lambda: engine.health().state is EngineState.READY)
    assert engine.health().num_restarts == 1
    assert await text(engine) == "abcdef"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
async def test_a_killed_child_ends_its_streams_and_is_replaced(number: signal.Signals) -> None:
    async with ready() as engine:
        streams = await hanging_streams(engine, 16)
        assert engine.pid is not None
        os.kill(engine.pid, number)
        await check_death_and_return(engine, streams)


async def test_a_child_that_exits_ends_its_streams_and_is_replaced() -> None:
    async with ready() as engine:
        streams = await hanging_streams(engine, 2)
        streams.append(asyncio.create_task(text(engine, '@script {"exit_at": 1}')))
        await check_death_and_return(engine, streams)


async def test_calls_to_a_stopped_and_killed_child_end_too() -> None:
    async with ready() as engine:
        assert engine.pid is not None
        os.kill(engine.pid, signal.SIGSTOP)
        await until(lambda: psutil.Process(engine.pid).status() == psutil.STATUS_STOPPED)
        call = asyncio.create_task(engine.encode(["a"]))
        await asyncio.sleep(0)
        os.kill(engine.pid, signal.SIGKILL)
        with pytest.raises(EngineDied):
            await call


async def test_a_child_that_dies_whenever_it_loads_is_tried_again_and_never_ready() -> None:
    async with starting(ScriptedSpec(exit_at=-1)) as engine:
        await until(lambda: engine.health().num_restarts >= 2)
        assert engine.health().state is EngineState.RESTARTING
        assert "70" in engine.health().message
        with pytest.raises(EngineUnavailable):
            _ = engine.info
        with pytest.raises(EngineUnavailable):
            await text(engine)
    assert engine.health().state is EngineState.CLOSED
    assert engine.pid is None


async def test_the_fallback_is_used_when_the_child_dies_loading_the_first_spec() -> None:
    async with starting(ScriptedSpec(exit_at=-1), fallback=ANSWER) as engine:
        await engine.wait_ready()
        assert (engine.health().state, engine.health().message) == (EngineState.READY, "")
        assert await text(engine) == "abcdef"


async def test_the_fallback_is_not_used_when_the_child_dies_at_work() -> None:
    async with starting(ANSWER, fallback=ScriptedSpec("fallback", num_slots=16)) as engine:
        await engine.wait_ready()
        await check_death_and_return(engine, [asyncio.create_task(text(engine, '@script {"exit_at": 0}'))])


@pytest.mark.parametrize("content", [None, b"", b"not a model"])
async def test_a_file_that_is_no_model_is_not_tried_again(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "wrong.gguf"
    if content is not None:
        path.write_bytes(content)
    async with starting(LlamaSpec(str(path)), fallback=ANSWER) as engine:
        with pytest.raises(ModelLoadError, match=r"wrong\.gguf"):
            await engine.wait_ready()
        assert (engine.health().state, engine.health().num_restarts) == (EngineState.FAILED, 0)
        await until(lambda: engine.pid is None)
        with pytest.raises(EngineUnavailable):
            await text(engine)


async def test_nothing_is_known_before_it_is_ready() -> None:
    async with starting(ScriptedSpec(load_delay=0.3)) as engine:
        assert engine.health().state is EngineState.LOADING
        for member in ("info", "vocabulary"):
            with pytest.raises(EngineUnavailable):
                getattr(engine, member)


async def test_close_ends_streams_and_child_and_may_be_called_twice() -> None:
    async with ready() as engine:
        streams = await hanging_streams(engine, 3)
        pid = engine.pid
        assert pid is not None
        await engine.close()
        for stream in streams:
            with pytest.raises(EngineUnavailable):
                await stream
        assert is_gone(pid)
        assert engine.pid is None
        with pytest.raises(EngineUnavailable):
            await text(engine)


async def test_close_also_ends_a_child_that_does_not_listen() -> None:
    async with ready() as engine:
        pid = engine.pid
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        await engine.close()
        assert is_gone(pid)


async def test_two_engines_work_side_by_side() -> None:
    async with ready() as first, ready(ScriptedSpec("other")) as second:
        assert await asyncio.gather(text(first), text(second)) == ["abcdef", "other"]
        assert first.pid != second.pid


PARENT = """
import asyncio
from octavo.engine.specs import ScriptedSpec
from octavo.engine.worker import WorkerEngine

async def main():
    engine = WorkerEngine(ScriptedSpec())
    await engine.start()
    await engine.wait_ready()
    print(engine.pid, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""
STOPPED = pytest.param(
    True, marks=pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a stopped process with its parent")
)


@pytest.mark.parametrize("is_stopped", [False, STOPPED])
async def test_the_child_ends_with_its_parent(is_stopped: bool) -> None:
    parent = await asyncio.create_subprocess_exec(sys.executable, "-c", PARENT, stdout=subprocess.PIPE)
    try:
        assert parent.stdout is not None
        child = int(await parent.stdout.readline())
        if is_stopped:
            os.kill(child, signal.SIGSTOP)
    finally:
        parent.kill()
        await parent.wait()
    await until(lambda: is_gone(child))


async def test_a_reader_that_is_behind_lets_others_have_their_turn() -> None:
    num_turns = 0

    async def others() -> None:
        nonlocal num_turns
        while True:
            num_turns += 1
            await asyncio.sleep(0)

    answer = ScriptedSpec("ab" * 600, piece_bytes=2, num_slots=1)
    async with ready(answer) as engine, aclosing(engine.generate(request(max_tokens=600))) as chunks:
        tokens = list((await anext(chunks)).tokens)
        await collect(engine.generate(request(max_tokens=1)))  # in the only slot: all the rest has come by then
        task, sizes = asyncio.create_task(others()), []
        async for chunk in chunks:
            tokens += chunk.tokens
            sizes.append(len(chunk.tokens))
        task.cancel()
    assert len(tokens) == 600
    assert 1 < len(sizes) < 60
    assert num_turns >= len(sizes) - 1


async def test_a_new_child_with_the_same_vocabulary_leaves_what_is_made_for_it() -> None:
    async with ready() as engine:
        vocabulary = engine.vocabulary
        assert engine.pid is not None
        os.kill(engine.pid, signal.SIGKILL)
        await until(lambda: engine.health().num_restarts == 1 and engine.health().state is EngineState.READY)
        assert engine.vocabulary is vocabulary


@pytest.fixture
def bad_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The present one has files with the names of modules."""
    for name in ("msgspec", "numpy", "asyncio", "octavo"):
        Path(tmp_path, f"{name}.py").write_text("raise SystemExit('imported from here')")
    monkeypatch.chdir(tmp_path)


async def test_nothing_is_imported_from_the_folder_in_which_it_is_started(bad_folder: None) -> None:
    async with ready() as engine:
        assert await text(engine) == "abcdef"
