"""What a core tells of itself: how long sequences waited, and how full its cache is."""

from itertools import count

import pytest

from engine.batching.cores import core
from engine.builders import hashed_logits, request, scripted_runner
from octavo.core.output import TokenChunk
from octavo.engine.base import CacheUse
from octavo.engine.batching import core as core_module
from octavo.engine.batching.core import EngineCore


def waits(under_test: EngineCore) -> dict[str, list[float]]:
    """Of each request, what its chunks with tokens say."""
    told: dict[str, list[float]] = {}
    while under_test.has_work:
        for id, item in under_test.step():
            assert isinstance(item, TokenChunk)
            told.setdefault(id, []).append(item.queue_seconds)
    return told


def test_the_first_token_says_how_long_its_sequence_waited_for_a_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = count()
    monkeypatch.setattr(core_module, "perf_counter", lambda: float(next(ticks)))
    under_test = core(scripted_runner(hashed_logits(1), num_slots=1))
    first, second = request(max_tokens=3, ignore_eos=True), request(max_tokens=3, ignore_eos=True)
    for each in (first, second):
        under_test.submit(each)
    told = waits(under_test)
    assert told[first.id][0] == 2.0  # two came, and then it was its turn
    assert told[second.id][0] > told[first.id][0]
    assert [rest for told_of_one in told.values() for rest in told_of_one[1:]] == [0.0] * 4


def test_a_sequence_that_is_preempted_has_waited_only_until_its_first_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = count()
    monkeypatch.setattr(core_module, "perf_counter", lambda: float(next(ticks)))
    under_test = core(scripted_runner(hashed_logits(1), cache_tokens=24))
    for token in (1, 2):
        under_test.submit(request((token,) * 10, 10, ignore_eos=True))
    first, second = waits(under_test).values()
    assert second[0] == first[0] - 1


def test_the_cache_is_filled_by_running_sequences_and_by_what_is_saved_of_earlier_ones() -> None:
    under_test = core(scripted_runner(hashed_logits(1), num_slots=1), max_saved=1000)
    room = under_test.cache_use.max_tokens
    assert under_test.cache_use == CacheUse(0, room, 0, 0)
    assert room > 0
    under_test.submit(request((1,) * 30, 5, ignore_eos=True))
    under_test.step()
    assert under_test.cache_use.num_tokens == 16, "one step has computed so many"
    waits(under_test)
    assert under_test.cache_use.num_tokens == 0
    under_test.submit(request((2,) * 30, 5, ignore_eos=True))
    waits(under_test)
    assert under_test.cache_use == CacheUse(0, room, num_saved_prefixes=1, num_saved_tokens=34)
