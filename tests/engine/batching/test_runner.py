"""Batches, and the runner with given logits that the other tests rely on."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.builders import VOCABULARY_SIZE, hashed_logits, scripted_runner
from octavo.engine.batching.runner import ForwardBatch, KvCacheFull


def span(slot: int, start: int, *tokens: int, wanted: int = 1) -> tuple[int, int, np.ndarray, int]:
    return slot, start, np.array(tokens, np.int32), wanted


def test_a_batch_has_the_positions_and_slots_of_its_spans_and_wants_logits_of_their_last_tokens() -> None:
    batch = ForwardBatch.build([span(0, 5, 7), span(2, 0, 1, 2, 3, wanted=0), span(3, 1, 8, 9)])
    assert batch.tokens.tolist() == [7, 1, 2, 3, 8, 9]
    assert batch.positions.tolist() == [5, 0, 1, 2, 1, 2]
    assert batch.slots.tolist() == [0, 2, 2, 2, 3, 3]
    assert batch.wants_logits.tolist() == [True, False, False, False, False, True]
    assert ForwardBatch.build([span(0, 0, 7, 8, 9, wanted=2)]).wants_logits.tolist() == [False, True, True]
    assert (batch.tokens.dtype, batch.positions.dtype, batch.slots.dtype) == (np.int32, np.int32, np.int32)


def num_graphs_of_llama_cpp(rows: list[tuple[int, int]]) -> int:
    """rows: slots, ascending, and their new tokens. As its `split_equal` goes about it: from the first row that has
    tokens left, as many neighbours as have some, and of each as many as the shortest has."""
    left, number = dict(rows), 0
    while any(left.values()):
        slot = min(slot for slot, length in left.items() if length)
        taken = [slot]
        while left.get(taken[-1] + 1):
            taken.append(taken[-1] + 1)
        shortest = min(left[slot] for slot in taken)
        for slot in taken:
            left[slot] -= shortest
        number += 1
    return number


@pytest.mark.parametrize(
    "rows",
    [
        [(0, 1)],
        [(0, 1), (1, 1), (2, 1)],
        [(0, 1), (2, 1), (3, 1)],
        [(0, 1), (1, 5), (2, 1), (3, 5), (4, 5)],
        [(0, 4), (1, 4), (2, 1)],
        [(3, 2), (4, 4), (5, 2)],
        [(0, 2), (1, 1), (2, 1)],
        [(0, 2), (1, 1), (3, 1), (4, 3)],
    ],
)
def test_a_batch_knows_in_how_many_graphs_it_is_computed(rows: list[tuple[int, int]]) -> None:
    batch = ForwardBatch.build([span(slot, 0, *range(length)) for slot, length in rows])
    assert batch.num_graphs == num_graphs_of_llama_cpp(rows)


@given(st.integers(0, 3), st.lists(st.integers(1, 4), min_size=1, max_size=8))
def test_a_batch_has_no_fewer_graphs_than_it_knows_of(first_slot: int, lengths: list[int]) -> None:
    """It overlooks those of a length between its neighbours' that nobody before had."""
    rows = list(enumerate(lengths, first_slot))
    batch = ForwardBatch.build([span(slot, 0, *range(length)) for slot, length in rows])
    assert batch.num_graphs <= num_graphs_of_llama_cpp(rows) <= len(rows)


def test_the_scripted_runner_gives_the_logits_of_all_that_a_slot_holds() -> None:
    runner = scripted_runner(hashed_logits(1))
    assert runner.forward(ForwardBatch.build([span(1, 0, 4, 5, wanted=0)])).shape == (0, VOCABULARY_SIZE)
    rows = runner.forward(ForwardBatch.build([span(0, 0, 9), span(1, 2, 6)]))
    assert np.array_equal(rows, [hashed_logits(1)((9,)), hashed_logits(1)((4, 5, 6))])


def test_the_scripted_runner_continues_where_it_was_truncated() -> None:
    runner = scripted_runner(hashed_logits(1))
    runner.forward(ForwardBatch.build([span(0, 0, 1, 2, 3)]))
    runner.truncate(0, 1)
    rows = runner.forward(ForwardBatch.build([span(0, 1, 8)]))
    assert np.array_equal(rows, [hashed_logits(1)((1, 8))])


def test_the_scripted_runner_restores_a_slot_whole() -> None:
    runner = scripted_runner(hashed_logits(1))
    runner.forward(ForwardBatch.build([span(0, 0, 1, 2), span(2, 0, 5)]))
    runner.restore(2, runner.save(0))
    rows = runner.forward(ForwardBatch.build([span(0, 2, 8), span(2, 2, 9)]))
    assert np.array_equal(rows, [hashed_logits(1)((1, 2, 8)), hashed_logits(1)((1, 2, 9))])


def test_the_scripted_runner_does_not_accept_a_gap() -> None:
    with pytest.raises(AssertionError, match="follow each other"):
        scripted_runner().forward(ForwardBatch.build([span(0, 1, 1)]))


def test_a_full_cache_computes_nothing_and_has_room_after_truncation() -> None:
    runner = scripted_runner(cache_tokens=3)
    runner.forward(ForwardBatch.build([span(0, 0, 1, 2)]))
    with pytest.raises(KvCacheFull):
        runner.forward(ForwardBatch.build([span(0, 2, 3), span(1, 0, 4)]))
    runner.truncate(0, 0)
    assert len(runner.forward(ForwardBatch.build([span(0, 0, 3), span(1, 0, 4)]))) == 2
