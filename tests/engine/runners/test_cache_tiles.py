import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from octavo.engine.runners.llama_cpp.cache_tiles import CELLS_PER_TILE, CacheTiles

NUM_SLOTS, NUM_TILES = 4, 3
NUM_CELLS = NUM_TILES * CELLS_PER_TILE

slots = st.integers(0, NUM_SLOTS - 1)
lengths = st.integers(0, NUM_CELLS)
operations = st.one_of(
    st.tuples(st.just("append"), slots, lengths),
    st.tuples(st.just("truncate"), slots, lengths),
    st.tuples(st.just("save"), slots, st.just(0)),
    st.tuples(st.just("restore"), slots, st.integers(0, 5)),
)


class Cells:
    """What is in each cell: a number for each write. Cells that were cut off keep theirs, as memory does."""

    def __init__(self) -> None:
        self.contents = np.zeros((NUM_SLOTS, NUM_CELLS), int)
        self.lengths = [0] * NUM_SLOTS
        self.tiles = CacheTiles(NUM_SLOTS, NUM_CELLS)
        self._saved: list[tuple[np.ndarray, np.ndarray]] = []
        self._next = 1

    def append(self, slot: int, length: int) -> None:
        start, end = self.lengths[slot], min(self.lengths[slot] + length, NUM_CELLS)
        if start == end:
            return
        self.contents[slot, start:end] = np.arange(self._next, self._next + end - start)
        self._next += end - start
        self.lengths[slot] = end
        self.tiles.written(np.full(end - start, slot, np.int32), np.arange(start, end, dtype=np.int32))

    def truncate(self, slot: int, length: int) -> None:
        self.lengths[slot] = min(self.lengths[slot], length)

    def save(self, slot: int, _: int) -> None:
        self._saved.append((self.contents[slot, : self.lengths[slot]].copy(), self.tiles.of(slot)))

    def restore(self, slot: int, which: int) -> None:
        if self._saved:
            contents, ids = self._saved[which % len(self._saved)]
            self.contents[slot, : len(contents)] = contents
            self.lengths[slot] = len(contents)
            self.tiles.restored(slot, ids)


@given(st.lists(operations, max_size=40))
def test_tiles_of_one_number_hold_the_same_as_far_as_they_are_used(
    operations: list[tuple[str, int, int]],
) -> None:
    cells = Cells()
    for name, slot, argument in operations:
        getattr(cells, name)(slot, argument)
    for slot in range(NUM_SLOTS):
        for other in range(slot):
            used = min(cells.lengths[slot], cells.lengths[other])
            same = np.repeat(cells.tiles.ids[slot] == cells.tiles.ids[other], CELLS_PER_TILE)[:used]
            assert (cells.contents[slot, :used] == cells.contents[other, :used])[same].all()


def test_a_copy_has_the_tiles_of_its_source_until_it_is_written_on() -> None:
    tiles = CacheTiles(2, NUM_CELLS)
    tiles.written(np.zeros(70, np.int32), np.arange(70, dtype=np.int32))
    tiles.restored(1, tiles.of(0))
    assert (tiles.ids[0] == tiles.ids[1]).all()
    tiles.written(np.array([0, 1], np.int32), np.array([70, 40], np.int32))
    assert (tiles.ids[0] == tiles.ids[1]).tolist() == [True, False, False]
