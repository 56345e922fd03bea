"""With an adapter, log-probabilities are those of the merged weights; without it and beside it, the model's own."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio

from engine.builders import until
from octavo.core.adapters import Adapter, digest_of
from octavo.core.request import GenerationRequest, LogprobParams
from octavo.engine.base import Engine, EngineState
from octavo.engine.worker import WorkerEngine
from octavo.errors import AdapterRefused, EngineError
from support.bad_adapters import BAD_ADAPTERS, write_bad_adapter
from support.gguf_mutations import header_mutations, truncations

from . import forward
from .checks import check_answer, check_rows
from .engines import NUM_SLOTS, NUM_TOP, Answer, answer, running, scored
from .tiny_gguf import VOCABULARY_SIZE, TinyModel
from .tiny_lora import ALL, ATTENTION, ENDS, FEED_FORWARD, TinyAdapter, tensors_of, write_lora, write_tiny_lora

pytestmark = pytest.mark.asyncio(loop_scope="module")

MAX_TOKENS = 12
NUM_MUTATIONS = 80
CUTS = slice(0, None, 4)
"""Each one is tried in a process of its own."""
_keys = count()


def drawn_prompt(seed: int, length: int) -> tuple[int, ...]:
    return tuple(np.random.default_rng(seed).integers(0, VOCABULARY_SIZE, length).tolist())


PROMPT = drawn_prompt(30, 90)


def described(path: Path, scale: float = 1.0) -> Adapter:
    """With a key that no other has."""
    digest = ""
    if path.is_file():
        with path.open("rb") as file:
            digest = digest_of(file)
    return Adapter(f"key-{next(_keys)}", str(path), digest, scale)


def adapted(request: GenerationRequest, key: str) -> GenerationRequest:
    return replace(request, adapter=key)


def unscored(prompt: tuple[int, ...], key: str = "") -> GenerationRequest:
    """A request whose prompt may be found computed."""
    logprobs = LogprobParams(of_output=True, num_top=NUM_TOP)
    return replace(scored(prompt, MAX_TOKENS), logprobs=logprobs, adapter=key)


def check_output(model: TinyModel, prompt: tuple[int, ...], given: Answer) -> None:
    reference = forward.logprobs(model, (*prompt, *given.tokens))[len(prompt) - 1 : -1]
    assert given.tokens == tuple(reference.argmax(axis=-1).tolist())
    check_rows(given.logprobs, reference)


@asynccontextmanager
async def loaded(engine: Engine, adapter: TinyAdapter, scale: float = 1.0) -> AsyncIterator[str]:
    """The key under which the adapter is loaded meanwhile."""
    entry = described(adapter.path, scale)
    await engine.load_adapter(entry)
    try:
        yield entry.key
    finally:
        await engine.unload_adapter(entry.key)


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=[False, True], ids=["mixed", "deterministic"])
async def engine(request: pytest.FixtureRequest, tiny: TinyModel) -> AsyncIterator[WorkerEngine]:
    fields = {"cache_type_k": "f32", "cache_type_v": "f32", "deterministic": request.param}
    async with running(tiny.path, token_budget=64, **fields) as engine:
        yield engine


@pytest.fixture(scope="module")
def adapters(tiny: TinyModel, tmp_path_factory: pytest.TempPathFactory) -> tuple[TinyAdapter, TinyAdapter]:
    """Two of different matrices and ranks."""
    folder = tmp_path_factory.mktemp("adapters")
    return (
        write_tiny_lora(folder / "first.gguf", tiny, seed=1, rank=4, alpha=8.0),
        write_tiny_lora(folder / "second.gguf", tiny, seed=2, rank=7, alpha=3.0, matrices=ATTENTION),
    )


@pytest.mark.parametrize("scale", [1.0, 0.5, -0.7, 2.0])
@pytest.mark.parametrize(
    ("rank", "alpha", "matrices"),
    [
        (4, 8.0, ALL),
        (1, 1.0, ATTENTION),
        (16, 32.0, FEED_FORWARD),
        (7, 3.0, ENDS),
        (64, 16.0, ("attn_q",)),
        (3, -5.0, ("ffn_down", "output")),
        (4, 0.0, ALL),
    ],
    ids=lambda value: "+".join(value) if isinstance(value, tuple) else f"{value}",
)
async def test_an_adapter_s_answers_have_the_logprobs_of_the_merged_weights(
    engine: Engine,
    tiny: TinyModel,
    tmp_path: Path,
    rank: int,
    alpha: float,
    matrices: tuple[str, ...],
    scale: float,
) -> None:
    adapter = write_tiny_lora(tmp_path / "adapter.gguf", tiny, seed=5, rank=rank, alpha=alpha, matrices=matrices)
    async with loaded(engine, adapter, scale) as key:
        with_it = await answer(engine, adapted(scored(PROMPT, MAX_TOKENS), key))
        without = await answer(engine, scored(PROMPT, MAX_TOKENS))
    check_answer(adapter.merged(tiny, scale), PROMPT, with_it)
    check_answer(tiny, PROMPT, without)
    assert with_it.logprobs != without.logprobs


async def test_an_adapter_of_scale_0_changes_nothing(
    engine: Engine, tiny: TinyModel, adapters: tuple[TinyAdapter, TinyAdapter]
) -> None:
    async with loaded(engine, adapters[0], 0.0) as key:
        check_answer(tiny, PROMPT, await answer(engine, adapted(scored(PROMPT, MAX_TOKENS), key)))


async def test_requests_with_two_adapters_and_with_none_run_together_and_have_their_own_logprobs(
    engine: Engine, tiny: TinyModel, adapters: tuple[TinyAdapter, TinyAdapter]
) -> None:
    first, second = adapters
    async with loaded(engine, first) as one, loaded(engine, second, -0.5) as other:
        models = {"": tiny, one: first.merged(tiny), other: second.merged(tiny, -0.5)}
        asked = [
            adapted(scored(drawn_prompt(seed, 10 + 13 * seed), MAX_TOKENS + seed), list(models)[seed % 3])
            for seed in range(3 * NUM_SLOTS)
        ]
        answers = await asyncio.gather(*(answer(engine, each) for each in asked))
    for each, given in zip(asked, answers, strict=True):
        check_answer(models[each.adapter], each.prompt_tokens, given)


async def test_one_file_at_two_scales_is_two_adapters(
    engine: Engine, tiny: TinyModel, adapters: tuple[TinyAdapter, TinyAdapter]
) -> None:
    async with loaded(engine, adapters[0], 1.0) as whole, loaded(engine, adapters[0], 0.25) as quarter:
        for _ in range(2):
            for key, scale in ((whole, 1.0), (quarter, 0.25)):
                check_output(adapters[0].merged(tiny, scale), PROMPT, await answer(engine, unscored(PROMPT, key)))


async def test_a_prompt_is_found_computed_only_under_the_adapter_that_computed_it(
    engine: Engine, tiny: TinyModel, adapters: tuple[TinyAdapter, TinyAdapter]
) -> None:
    first, second = adapters
    prompt = drawn_prompt(31, 100)
    async with loaded(engine, first) as one, loaded(engine, second) as other:
        models = {"": tiny, one: first.merged(tiny), other: second.merged(tiny)}
        anew = {key: await answer(engine, unscored(prompt, key)) for key in models}
        again = {key: await answer(engine, unscored(prompt, key)) for key in reversed(models)}
    assert [given.num_cached for given in anew.values()] == [0, 0, 0]
    assert all(given.num_cached >= len(prompt) // 2 for given in again.values())
    for key, model in models.items():
        check_output(model, prompt, anew[key])
        check_output(model, prompt, again[key])


async def test_another_file_in_an_adapter_s_place_finds_nothing_of_the_first_one_s(
    engine: Engine, tiny: TinyModel, tmp_path: Path
) -> None:
    prompt, path = drawn_prompt(32, 100), tmp_path / "replaced.gguf"
    for seed in range(3):
        adapter = write_tiny_lora(path, tiny, seed=seed)
        async with loaded(engine, adapter) as key:
            given = await answer(engine, unscored(prompt, key))
        assert given.num_cached == 0
        check_output(adapter.merged(tiny), prompt, given)


async def test_an_adapter_can_be_loaded_and_unloaded_while_others_are_used(
    engine: Engine, tiny: TinyModel, adapters: tuple[TinyAdapter, TinyAdapter]
) -> None:
    first, second = adapters
    async with loaded(engine, first) as key:
        asked = [adapted(scored(drawn_prompt(seed, 40), 60), key if seed % 2 else "") for seed in range(NUM_SLOTS)]
        answers = [asyncio.create_task(answer(engine, each)) for each in asked]
        for _ in range(5):
            async with loaded(engine, second) as other:
                check_output(second.merged(tiny), PROMPT, await answer(engine, unscored(PROMPT, other)))
        for each, given in zip(asked, await asyncio.gather(*answers), strict=True):
            check_answer(first.merged(tiny) if each.adapter else tiny, each.prompt_tokens, given)


async def test_unloading_what_is_not_loaded_is_not_an_error(engine: Engine) -> None:
    await engine.unload_adapter("never loaded")


async def test_a_replaced_process_has_the_adapters_of_the_one_before(
    tiny: TinyModel, adapters: tuple[TinyAdapter, TinyAdapter]
) -> None:
    async with running(tiny.path, cache_type_k="f32", cache_type_v="f32") as engine, loaded(engine, adapters[0]) as key:
        assert engine.pid is not None
        os.kill(engine.pid, signal.SIGKILL)
        await until(lambda: engine.health().num_restarts == 1 and engine.health().state is EngineState.READY)
        check_answer(adapters[0].merged(tiny), PROMPT, await answer(engine, adapted(scored(PROMPT), key)))


async def is_refused(engine: Engine, adapter: Adapter) -> bool:
    try:
        await engine.load_adapter(adapter)
    except AdapterRefused:
        return True
    return False


async def check_refused(engine: WorkerEngine, tiny: TinyModel, path: Path) -> None:
    """With a message that names no path, and the engine goes on as before."""
    with pytest.raises(AdapterRefused) as refusal:
        await engine.load_adapter(described(path))
    assert str(path.parent) not in refusal.value.message
    check_answer(tiny, PROMPT[:9], await answer(engine, scored(PROMPT[:9])))
    assert engine.health().num_restarts == 0


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def plain(tiny: TinyModel) -> AsyncIterator[WorkerEngine]:
    async with running(tiny.path, cache_type_k="f32", cache_type_v="f32") as engine:
        yield engine


@pytest.mark.parametrize("name", BAD_ADAPTERS)
async def test_what_is_no_adapter_for_the_model_is_refused(
    plain: WorkerEngine, tiny: TinyModel, tmp_path: Path, name: str
) -> None:
    path = tmp_path / "bad.gguf"
    write_bad_adapter(name, path, tiny)
    await check_refused(plain, tiny, path)


async def test_a_file_that_is_not_there_is_refused(plain: WorkerEngine, tiny: TinyModel, tmp_path: Path) -> None:
    await check_refused(plain, tiny, tmp_path / "missing.gguf")


async def test_numbers_that_are_none_end_only_the_requests_that_come_upon_them(
    plain: WorkerEngine, tiny: TinyModel, tmp_path: Path
) -> None:
    """Which token will be said with an adapter is not known when it is loaded."""
    adapter = write_tiny_lora(tmp_path / "holed.gguf", tiny, matrices=("token_embd",))
    [change] = adapter.changes.values()
    change.b[200] = np.nan
    write_lora(adapter.path, tensors_of(adapter))
    async with loaded(plain, adapter) as key:
        with pytest.raises(EngineError):
            await answer(plain, adapted(scored((1, 200, 3), 2), key))
        check_answer(adapter.merged(tiny), (1, 2, 3), await answer(plain, adapted(scored((1, 2, 3)), key)))
    check_answer(tiny, (1, 200, 3), await answer(plain, scored((1, 200, 3), 2)))


@pytest.fixture(scope="module")
def short(tiny: TinyModel, tmp_path_factory: pytest.TempPathFactory) -> TinyAdapter:
    """With few tensors, so that a large part of it is header."""
    path = tmp_path_factory.mktemp("short") / "short.gguf"
    return write_tiny_lora(path, tiny, rank=2, matrices=("attn_q", "token_embd"))


@pytest.mark.slow
async def test_an_adapter_that_is_cut_off_is_refused_wherever(
    plain: WorkerEngine, tiny: TinyModel, short: TinyAdapter, tmp_path: Path
) -> None:
    path, taken = tmp_path / "cut.gguf", []
    for cut, data in [*truncations(short.path)][CUTS]:
        path.write_bytes(data)
        if not await is_refused(plain, described(path)):
            taken.append(cut)
    assert not taken
    assert plain.health().num_restarts == 0
    check_answer(tiny, PROMPT, await answer(plain, scored(PROMPT)))


@pytest.mark.slow
async def test_no_lie_in_a_header_disturbs_anyone(
    plain: WorkerEngine, tiny: TinyModel, short: TinyAdapter, tmp_path: Path
) -> None:
    """One that is taken all the same can be used: it gives numbers, not the end of the process."""
    path, num_refused = tmp_path / "lie.gguf", 0
    for what, data in header_mutations(short.path, NUM_MUTATIONS):
        path.write_bytes(data)
        entry = described(path)
        if await is_refused(plain, entry):
            num_refused += 1
        else:
            await answer(plain, adapted(scored(PROMPT[:9], 2), entry.key))
            await plain.unload_adapter(entry.key)
        assert plain.health().num_restarts == 0, what
    assert num_refused > NUM_MUTATIONS // 2
    check_answer(tiny, PROMPT, await answer(plain, scored(PROMPT)))
