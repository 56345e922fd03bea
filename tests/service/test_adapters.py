"""Adapters that come and go while requests run."""

import asyncio
import gc
import logging
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families
from service_builders import AdapterWorld, PuppetEngine, abandon, job_of, start, turns

from octavo.core.limits import Limits
from octavo.core.output import FinishReason
from octavo.errors import AdapterNotFound, AdapterRefused, EngineError, EngineUnavailable, ModelNotFound, Overloaded
from octavo.service import AdapterFiles, AdapterFolder, ServedModel

LENGTH = FinishReason.LENGTH


@pytest.fixture
def world(tmp_path: Path) -> AdapterWorld:
    return AdapterWorld(tmp_path)


def samples(world: AdapterWorld) -> dict[tuple[str, tuple[str, ...]], float]:
    families = text_string_to_metric_families(world.metrics.render().decode())
    return {
        (sample.name, tuple(sample.labels.values())): sample.value for family in families for sample in family.samples
    }


def assert_nothing_is_left(world: AdapterWorld) -> None:
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert sorted(world.engine.closed) == sorted(world.engine.opened)


async def test_a_loaded_adapter_is_served_with_what_its_model_has(world: AdapterWorld, tmp_path: Path) -> None:
    served = await world.load("zorp", scale=0.5)
    assert world.models.get("zorp") is served
    assert world.models.adapters == (served,)
    assert list(world.models) == [world.base]
    assert served.base is world.base
    assert served.engine is world.engine
    assert served.tokenizer is world.base.tokenizer
    assert served.chat_template is world.base.chat_template
    assert served.created > 0
    [adapter] = world.engine.adapters.values()
    assert (adapter.path, adapter.scale) == (str(tmp_path / "a.gguf"), 0.5)
    assert served.adapter_key == adapter.key
    assert world.base.adapter_key == ""


async def test_an_adapter_says_nothing_new_about_a_missing_chat_template(
    world: AdapterWorld, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    for id in ("a", "b"):
        assert (await world.load(id)).chat_template is world.base.chat_template
    assert sum("no chat template" in record.getMessage() for record in caplog.records) == 1


async def test_users_are_isolated_with_an_adapter_as_they_are_without(tmp_path: Path) -> None:
    world = AdapterWorld(tmp_path)
    world.base = ServedModel("m", world.engine, 0, isolates_users=True)
    served = await world.load("zorp")
    assert served.cache_key("", "ann", "job") == world.base.cache_key("", "ann", "job") != ""


async def test_a_fingerprint_is_that_of_engine_adapter_and_scale(world: AdapterWorld) -> None:
    before = world.base.info.fingerprint
    zorp, same, half, other = [
        await world.load(id, reference, scale)
        for id, reference, scale in (
            ("zorp", "a.gguf", 1),
            ("same", "a.gguf", 1.0),
            ("half", "a.gguf", 0.5),
            ("other", "b.gguf", 1),
        )
    ]
    assert world.base.info.fingerprint == before
    assert zorp.info.fingerprint == same.info.fingerprint
    assert len({each.info.fingerprint for each in (world.base, zorp, half, other)}) == 4
    first = zorp.info.fingerprint
    world.engine.info = replace(world.engine.info, fingerprint="another build")
    assert zorp.info.fingerprint != first
    assert zorp.info.context_length == world.base.info.context_length


async def test_each_time_that_a_file_is_loaded_it_has_another_key(world: AdapterWorld) -> None:
    keys = []
    for _ in range(3):
        keys.append((await world.load("zorp")).adapter_key)
        await world.loader.unload("zorp")
    assert len(set(keys)) == 3
    assert world.engine.adapters == {}


@pytest.mark.parametrize("reference", ["missing.gguf", "../x", "hf:owner/repository"])
async def test_a_refused_file_leaves_the_name_free(world: AdapterWorld, reference: str) -> None:
    with pytest.raises(AdapterRefused):
        await world.load("zorp", reference)
    with pytest.raises(ModelNotFound):
        world.models.get("zorp")
    assert (await world.load("zorp")).id == "zorp"


@pytest.mark.parametrize(
    "error", [AdapterRefused("not for this model"), EngineUnavailable("loading"), EngineError("x")]
)
async def test_what_the_engine_refuses_leaves_the_name_free(world: AdapterWorld, error: Exception) -> None:
    world.engine.adapter_refusal = error
    with pytest.raises(type(error)) as refusal:
        await world.load("zorp")
    assert refusal.value is error
    world.engine.adapter_refusal = None
    assert (await world.load("zorp")).id == "zorp"
    assert_nothing_is_left(world)


@pytest.mark.parametrize("id", ["m", "zorp"])
async def test_a_served_name_cannot_be_loaded_again(world: AdapterWorld, id: str) -> None:
    served = await world.load("zorp")
    with pytest.raises(AdapterRefused):
        await world.load(id, "b.gguf")
    assert world.models.get("zorp") is served
    assert len(world.engine.adapters) == 1


async def test_of_several_who_load_one_name_at_the_same_time_one_wins(world: AdapterWorld) -> None:
    results = await asyncio.gather(*(world.load("zorp") for _ in range(5)), return_exceptions=True)
    assert [isinstance(result, AdapterRefused) for result in results] == [False, True, True, True, True]
    assert len(world.engine.adapters) == 1


async def test_adapters_with_different_names_load_at_the_same_time(world: AdapterWorld) -> None:
    await asyncio.gather(*(world.load(f"a{number}") for number in range(5)))
    assert {adapter.id for adapter in world.models.adapters} == {f"a{number}" for number in range(5)}


async def test_loading_goes_on_when_nobody_waits_for_it_any_more(world: AdapterWorld) -> None:
    world.engine.may_load.clear()
    task = asyncio.create_task(world.load("zorp"))
    await turns(3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(AdapterRefused, match="is being loaded"):
        await world.load("zorp")
    world.engine.may_load.set()
    await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()})
    assert [adapter.key for adapter in world.engine.adapters.values()] == [world.models.adapters[0].adapter_key]


async def test_a_request_runs_with_its_adapter_and_counts_as_long_as_it_does(world: AdapterWorld) -> None:
    zorp, other = await world.load("zorp"), await world.load("other")
    tasks = [
        await world.start(model, name) for model, name in ((zorp, "a"), (zorp, "b"), (other, "c"), (world.base, "d"))
    ]
    assert (zorp.num_running, other.num_running) == (2, 1)
    for name in "abcd":
        world.engine.send(f"{name}0", "x", LENGTH)
    await asyncio.gather(*tasks)
    assert (zorp.num_running, other.num_running) == (0, 0)


@pytest.mark.parametrize("num_choices", [1, 3])
@pytest.mark.parametrize("how", ["cancelled", "failed"])
async def test_a_request_that_is_cut_off_does_not_count_any_more(
    world: AdapterWorld, num_choices: int, how: str
) -> None:
    zorp = await world.load("zorp")
    task = await world.start(zorp, "r", num_choices)
    assert zorp.num_running == 1
    if how == "cancelled":
        await abandon(task)
    else:
        world.engine.fail("r0", EngineError("x"))
        with pytest.raises(EngineError):
            await task
    assert zorp.num_running == 0
    await world.loader.unload("zorp")
    assert_nothing_is_left(world)


async def test_a_request_that_is_turned_away_does_not_count(world: AdapterWorld) -> None:
    zorp = await world.load("zorp")
    world.engine.num_waiting = 1_000
    with pytest.raises(Overloaded):
        await (await world.start(zorp, "r"))
    assert zorp.num_running == 0


async def test_requests_with_adapters_wait_in_the_queue_of_their_model(tmp_path: Path) -> None:
    world = AdapterWorld(tmp_path, engine=PuppetEngine(num_slots=1))
    zorp = await world.load("zorp")
    running = [await world.start(zorp if number % 2 else world.base, f"r{number}") for number in range(5)]
    for model in (world.base, zorp):
        with pytest.raises(Overloaded, match="The queue of model 'm' is full"):
            await (await world.start(model, "more"))
    await abandon(*running)


async def test_an_unused_adapter_is_unloaded_at_once(world: AdapterWorld) -> None:
    await world.load("zorp")
    await world.loader.unload("zorp")
    assert world.engine.adapters == {}
    with pytest.raises(AdapterNotFound) as refusal:
        await world.loader.unload("zorp")
    assert refusal.value.message == "There is no adapter 'zorp'. There are none."
    assert_nothing_is_left(world)


async def test_unloading_waits_for_the_requests_that_run_and_lets_no_other_begin(world: AdapterWorld) -> None:
    zorp = await world.load("zorp")
    running = [await world.start(zorp, name) for name in "ab"]
    unloading = asyncio.create_task(world.loader.unload("zorp"))
    await turns(3)
    for name in ("zorp", "m:zorp"):
        with pytest.raises(ModelNotFound):
            world.models.get(name)
    with pytest.raises(AdapterNotFound, match="has just been deleted"):  # it was resolved before
        await (await world.start(zorp, "late"))
    with pytest.raises(AdapterNotFound):
        await world.loader.unload("zorp")
    with pytest.raises(AdapterRefused, match="is being deleted; requests that use it still run"):
        await world.load("zorp")
    for task, name in zip(running, "ab", strict=True):
        assert not unloading.done()
        assert len(world.engine.adapters) == 1
        world.engine.send(f"{name}0", "x", LENGTH)
        assert [event.text for event in await task] == ["x"]
        await turns(3)
    await unloading
    assert world.engine.adapters == {}
    assert world.engine.opened == ["a0", "b0"]
    assert (await world.load("zorp")) is not zorp
    assert_nothing_is_left(world)


async def test_unloading_goes_on_when_nobody_waits_for_it_any_more(world: AdapterWorld) -> None:
    running = await world.start(await world.load("zorp"), "r")
    unloading = asyncio.create_task(world.loader.unload("zorp"))
    await turns(3)
    await abandon(unloading)  # type: ignore[arg-type]
    await turns(3)
    assert len(world.engine.adapters) == 1
    await abandon(running)
    await turns(3)
    assert world.engine.adapters == {}
    assert_nothing_is_left(world)


async def test_an_engine_that_is_down_has_freed_its_adapters(
    world: AdapterWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def down(key: str) -> None:
        raise EngineUnavailable("restarting")

    await world.load("zorp")
    monkeypatch.setattr(world.engine, "unload_adapter", down)
    await world.loader.unload("zorp")
    assert (await world.load("zorp")).id == "zorp"


async def test_other_requests_are_not_waited_for(world: AdapterWorld) -> None:
    await world.load("zorp")
    running = [await world.start(await world.load("other"), "a"), await start(world.service, job_of(world.engine))]
    await world.loader.unload("zorp")
    assert len(world.engine.adapters) == 1
    await abandon(*running)


async def test_loads_are_counted_by_what_came_of_them(world: AdapterWorld) -> None:
    for reference in ("a.gguf", "a.gguf", "missing.gguf"):
        for id in ("zorp", "other"):
            await asyncio.gather(world.load(id, reference), return_exceptions=True)
    world.engine.adapter_refusal = EngineUnavailable("loading")
    with pytest.raises(EngineUnavailable):
        await world.load("third")
    counted = samples(world)
    assert counted["octavo_adapter_loads_total", ("m", "loaded")] == 2
    assert counted["octavo_adapter_loads_total", ("m", "refused")] == 4


async def test_tokens_are_counted_by_adapter_and_forgotten_with_it(world: AdapterWorld) -> None:
    for model, name in ((await world.load("zorp"), "a"), (world.base, "b")):
        task = await world.start(model, name)
        world.engine.send(f"{name}0", "xyz", LENGTH)
        await task
    counted = samples(world)
    assert counted["octavo_generation_tokens_total", ("zorp",)] == 3
    assert counted["octavo_generation_tokens_total", ("m",)] == 3
    await world.loader.unload("zorp")
    left = samples(world)
    assert not any("zorp" in labels for _, labels in left)
    assert left["octavo_generation_tokens_total", ("m",)] == 3


@given(st.permutations(range(4)), st.lists(st.sampled_from(["ends", "fails", "leaves"]), min_size=4, max_size=4))
def test_an_adapter_is_freed_when_the_last_request_is_over_in_whatever_order_and_way(
    order: list[int], ways: list[str]
) -> None:
    async def run(folder: Path) -> None:
        world = AdapterWorld(folder)
        zorp = await world.load("zorp")
        tasks = [await world.start(zorp, f"r{number}-") for number in range(4)]
        unloading = asyncio.create_task(world.loader.unload("zorp"))
        for number, way in zip(order, ways, strict=True):
            await turns(3)
            assert list(world.engine.adapters) == [zorp.adapter_key]
            if way == "ends":
                world.engine.send(f"r{number}-0", "x", LENGTH)
            elif way == "fails":
                world.engine.fail(f"r{number}-0", EngineError("x"))
            else:
                tasks[number].cancel()
            await asyncio.wait([tasks[number]])
            tasks[number].cancelled() or tasks[number].exception()
        await unloading
        assert world.engine.adapters == {}
        assert_nothing_is_left(world)

    with TemporaryDirectory() as folder:
        asyncio.run(run(Path(folder)))


async def test_a_hundred_adapters_come_and_go_and_leave_nothing(world: AdapterWorld) -> None:
    size = len(world.metrics.render())
    for number in range(100):
        served = await world.load(f"zorp-{number}")
        task = await world.start(served, f"r{number}-")
        world.engine.send(f"r{number}-0", "x", LENGTH)
        await asyncio.gather(task, world.loader.unload(served.id))
    assert world.engine.adapters == {}
    assert world.models.adapters == ()
    assert world.models.awaited == []
    assert len(world.metrics.render()) < size + 500
    assert_nothing_is_left(world)


async def test_adapters_are_tried_one_at_a_time_by_whatever_loader(world: AdapterWorld, tmp_path: Path) -> None:
    other = world.loader.over(AdapterFiles(AdapterFolder(tmp_path).find, hub=None, max_size=100))
    await asyncio.gather(
        *(loader.load(world.order(f"{loader is other}-{i}")) for loader in (world.loader, other) for i in range(5))
    )
    assert len(world.models.adapters) == 10
    assert world.engine.most_loading == 1


async def test_there_are_at_most_so_many_adapters_those_that_come_and_go_included(tmp_path: Path) -> None:
    world = AdapterWorld(tmp_path, limits=Limits(max_adapters=2))
    running = await world.start(await world.load("zorp"), "r")
    world.engine.may_load.clear()
    loading = asyncio.create_task(world.load("second"))
    await turns(3)
    unloading = asyncio.create_task(world.loader.unload("zorp"))
    await turns(3)
    with pytest.raises(AdapterRefused, match=r"^This server has at most 2 adapters at a time\.$"):
        await world.load("third")
    await abandon(running)
    await unloading
    world.engine.may_load.set()
    await loading
    await world.load("third")


async def test_a_file_that_is_too_large_is_refused(tmp_path: Path) -> None:
    world = AdapterWorld(tmp_path, limits=Limits(max_adapter_size=6))
    with pytest.raises(AdapterRefused, match="has 7 bytes; this server takes at most 6"):
        await world.load("zorp")
    assert_nothing_is_left(world)


async def test_an_adapter_that_the_engine_has_lost_is_not_found_and_can_be_loaded_again(tmp_path: Path) -> None:
    world = AdapterWorld(tmp_path, limits=Limits(max_adapters=2))
    lost, kept = [await world.load(id) for id in ("zorp", "kept")]
    world.engine.lost_adapters = frozenset({lost.adapter_key})
    assert world.models.adapters == (kept,)
    for ask in (lambda: world.models.get("zorp"), lambda: world.models.get("m:zorp")):
        with pytest.raises(ModelNotFound, match=r"Served: m, kept\.$"):
            ask()
    with pytest.raises(AdapterNotFound, match=r"There are: kept\.$"):
        world.models.get("m", "zorp")
    with pytest.raises(AdapterNotFound, match=r"There are: kept\.$"):
        await world.loader.unload("zorp")
    again = await world.load("zorp")
    assert world.models.get("m", "zorp") is again
    await world.loader.unload("zorp")


async def test_a_request_finds_its_adapter_lost_only_as_it_begins(world: AdapterWorld) -> None:
    zorp = await world.load("zorp")
    world.engine.lost_adapters = frozenset({zorp.adapter_key})
    with pytest.raises(AdapterNotFound, match="was lost when the engine was restarted") as error:
        await (await world.start(zorp, "r"))
    assert error.value.param == "peft"
    assert world.engine.opened == []


@pytest.mark.parametrize("refused", [None, AdapterRefused("no"), RuntimeError("a fault")])
async def test_what_came_of_a_load_is_counted_and_no_riddle_when_nobody_waits_for_it_any_more(
    world: AdapterWorld, refused: Exception | None, caplog: pytest.LogCaptureFixture
) -> None:
    world.engine.may_load.clear()
    world.engine.adapter_refusal = refused
    loading = asyncio.create_task(world.load("zorp"))
    await world.engine.loads.wait()
    await abandon(loading)  # type: ignore[arg-type]
    world.engine.may_load.set()
    await turns(10)
    del loading
    gc.collect()
    assert "never retrieved" not in caplog.text
    counted = samples(world)
    assert counted.get(("octavo_adapter_loads_total", ("m", "loaded")), 0) == (refused is None)
    assert counted.get(("octavo_adapter_loads_total", ("m", "refused")), 0) == isinstance(refused, AdapterRefused)
