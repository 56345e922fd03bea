"""A long computation that stops for others, as a graph's nodes are computed."""

from collections.abc import Callable

import pytest

from octavo.engine.runners.llama_cpp import slices
from octavo.engine.runners.llama_cpp.slices import NODES_PER_STOP, Slices
from octavo.errors import EngineError


def graph(computation: Slices, num_nodes: int, computed: list[int]) -> str:
    """As ggml computes one with a callback: it asks before each node whether to stop behind it, and then whether to go
    on; who is told no leaves the rest out."""
    for node in range(num_nodes):
        stops = computation.on_node(True)
        computed.append(node)
        if stops and not computation.on_node(False):
            return "a part"
    return "all"


@pytest.fixture
def at_every_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "SLICE", 0.0)


@pytest.mark.usefixtures("at_every_stop")
def test_others_have_a_turn_every_few_nodes() -> None:
    pauses: list[int] = []
    computed: list[int] = []

    def pause() -> bool:
        pauses.append(len(computed))
        return True

    computation = Slices()
    assert computation.run(lambda: graph(computation, 5 * NODES_PER_STOP + 1, computed), pause) == "all"
    assert pauses == [NODES_PER_STOP * number for number in range(1, 6)]
    assert len(computed) == 5 * NODES_PER_STOP + 1


def test_a_short_computation_is_not_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "SLICE", float("inf"))
    computation = Slices()

    def pause() -> bool:
        raise AssertionError("it was")

    assert computation.run(lambda: graph(computation, 100, []), pause) == "all"


def test_a_turn_comes_when_a_slice_is_over_and_the_next_one_begins_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    now: list[float] = [0.0]
    pauses: list[float] = []
    monkeypatch.setattr(slices, "SLICE", 1.0)
    monkeypatch.setattr(slices, "perf_counter", lambda: now[0])
    computation = Slices()

    def pause() -> bool:
        pauses.append(now[0])
        now[0] += 100  # others take long
        return True

    def compute() -> str:
        for _ in range(12):
            now[0] += 0.25
            computation.on_node(False)
        return "all"

    assert computation.run(compute, pause) == "all"
    assert len(pauses) == 3, "a turn a slice, whatever others took"


@pytest.mark.usefixtures("at_every_stop")
def test_what_is_not_wanted_any_more_is_given_up_at_the_next_stop() -> None:
    computed: list[int] = []
    computation = Slices()
    with pytest.raises(EngineError, match="Nobody waits"):
        computation.run(lambda: graph(computation, 1000, computed), lambda: False)
    assert len(computed) == NODES_PER_STOP


@pytest.mark.usefixtures("at_every_stop")
@pytest.mark.parametrize("error", [KeyError("a fault"), KeyboardInterrupt()])
def test_what_others_raise_comes_out_behind_the_computation(error: BaseException) -> None:
    computed: list[int] = []
    computation = Slices()
    with pytest.raises(type(error)) as raised:
        computation.run(lambda: graph(computation, 1000, computed), raising(error))
    assert raised.value is error
    assert len(computed) == NODES_PER_STOP


@pytest.mark.usefixtures("at_every_stop")
def test_one_computation_leaves_nothing_to_the_next() -> None:
    computation = Slices()
    for pause in (lambda: False, raising(KeyError())):
        with pytest.raises((EngineError, KeyError)):
            computation.run(lambda: graph(computation, 100, []), pause)
        assert computation.run(lambda: graph(computation, 100, []), lambda: True) == "all"


def test_what_the_computation_itself_raises_comes_out() -> None:
    with pytest.raises(OSError, match="it failed"):
        Slices().run(raising(OSError("it failed")), lambda: True)


def raising(error: BaseException) -> Callable[[], bool]:
    def fail() -> bool:
        raise error

    return fail
