"""Where tokens are for the model, against a list of what each slot holds."""

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from octavo.engine.batching.runner import ImagePiece
from octavo.engine.batching.vision import Embeddings
from octavo.engine.runners.llama_cpp.positions import Positions


def grid(rows: int, columns: int) -> Embeddings:
    """Of a model with M-RoPE: a token for each place of a grid, which takes as many positions as its longer side."""
    places = np.indices((1, rows, columns), np.int32).reshape(3, -1)
    return Embeddings(np.zeros((rows * columns, 2), np.float32), max(rows, columns), places)


def row(num_tokens: int) -> Embeddings:
    """Of a model for which an image's tokens are like a text's."""
    return Embeddings(np.zeros((num_tokens, 2), np.float32), num_tokens)


def array(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def test_without_images_positions_are_the_tokens_numbers() -> None:
    positions = Positions(2)
    slots, places = array(0, 0, 1), array(5, 6, 0)
    assert positions.of_text(slots, places).tolist() == [5, 6, 0]
    assert positions.truncated(0, 4) == 4


def test_the_tokens_of_an_image_without_a_grid_follow_each_other() -> None:
    positions = Positions(1)
    assert positions.of_image(0, 3, ImagePiece(row(4), 0), 4).tolist() == [3, 4, 5, 6]
    assert positions.of_slot(0) == ()
    assert positions.of_text(array(0), array(7)).tolist() == [7]


def test_the_tokens_of_a_grid_are_at_time_row_and_column_and_the_text_goes_on_behind_its_longer_side() -> None:
    positions = Positions(1)
    assert positions.of_image(0, 2, ImagePiece(grid(2, 3), 0), 6).tolist() == [
        [2, 2, 2, 2, 2, 2],
        [2, 2, 2, 3, 3, 3],
        [2, 3, 4, 2, 3, 4],
        [0, 0, 0, 0, 0, 0],
    ]
    assert positions.of_text(array(0, 0), array(8, 9)).tolist() == [5, 6]


@given(st.integers(1, 5), st.integers(1, 5), st.integers(0, 10), st.data())
def test_an_image_in_chunks_is_where_it_is_at_once(rows: int, columns: int, start: int, data: st.DataObject) -> None:
    image = grid(rows, columns)
    size = rows * columns
    whole = Positions(1).of_image(0, start, ImagePiece(image, 0), size)
    positions, cuts = Positions(1), sorted({0, size, *data.draw(st.lists(st.integers(0, size), max_size=4))})
    chunks = [
        positions.of_image(0, start + begin, ImagePiece(image, begin), end - begin) for begin, end in pairwise(cuts)
    ]
    assert np.array_equal(np.concatenate(chunks, axis=1), whole)
    assert whole.flags.c_contiguous
    assert positions.of_text(array(0), array(start + size)).tolist() == [start + max(rows, columns)]


@dataclass
class Held:
    """What a slot holds, naively. positions: of its tokens. ends: places behind its images, where it may be cut."""

    positions: list[int] = field(default_factory=list)
    next: int = 0
    cuts: dict[int, int] = field(default_factory=lambda: {0: 0})

    def add(self, positions: list[int], then: int) -> None:
        """then: the position behind them."""
        self.positions += positions
        self.next = then
        self.cuts[len(self.positions)] = then

    def cut(self, length: int) -> None:
        self.next = self.cuts[length]
        del self.positions[length:]
        self.cuts = {place: position for place, position in self.cuts.items() if place <= length}

    def copy(self) -> "Held":
        return Held(list(self.positions), self.next, dict(self.cuts))


NUM_SLOTS = 3
slot_numbers = st.integers(0, NUM_SLOTS - 1)


class SlotsWithImages(RuleBasedStateMachine):
    """Texts and images are computed, cut back between them, and copied from slot to slot."""

    @initialize()
    def begin(self) -> None:
        self.positions = Positions(NUM_SLOTS)
        self.held = [Held() for _ in range(NUM_SLOTS)]

    @rule(slot=slot_numbers, num_tokens=st.integers(1, 4))
    def compute_text(self, slot: int, num_tokens: int) -> None:
        held = self.held[slot]
        start = len(held.positions)
        places = np.arange(start, start + num_tokens, dtype=np.int32)
        given = self.positions.of_text(np.full(num_tokens, slot, np.int32), places).tolist()
        assert given == list(range(held.next, held.next + num_tokens))
        for position in given:
            held.add([position], position + 1)

    @rule(slot=slot_numbers, rows=st.integers(1, 4), columns=st.integers(1, 4), is_row=st.booleans())
    def compute_image(self, slot: int, rows: int, columns: int, is_row: bool) -> None:
        held, image = self.held[slot], row(rows) if is_row else grid(rows, columns)
        given = self.positions.of_image(slot, len(held.positions), ImagePiece(image, 0), len(image.values))
        first = given if is_row else given[0]
        assert first.min() == held.next
        assert given.max() <= held.next + image.num_positions - 1
        held.add(first.tolist(), held.next + image.num_positions)

    @rule(slot=slot_numbers, data=st.data())
    def begin_an_image_and_give_it_up(self, slot: int, data: st.DataObject) -> None:
        """Somebody left while it was computed, and what comes next needs nothing of it."""
        held, image = self.held[slot], grid(2, 3)
        self.positions.of_image(slot, len(held.positions), ImagePiece(image, 0), data.draw(st.integers(1, 5)))
        assert self.positions.truncated(slot, len(held.positions)) == held.next

    @rule(slot=slot_numbers, data=st.data())
    def cut(self, slot: int, data: st.DataObject) -> None:
        held = self.held[slot]
        length = data.draw(st.sampled_from(sorted(held.cuts)))
        held.cut(length)
        assert self.positions.truncated(slot, length) == held.next

    @precondition(lambda self: any(held.positions for held in self.held))
    @rule(source=slot_numbers, to=slot_numbers)
    def copy(self, source: int, to: int) -> None:
        self.positions.restored(to, self.positions.of_slot(source))
        self.held[to] = self.held[source].copy()

    @invariant()
    def the_next_token_is_behind_all_others(self) -> None:
        for slot, held in enumerate(getattr(self, "held", ())):
            place = array(len(held.positions))
            assert self.positions.of_text(array(slot), place).tolist() == [held.next]
            assert all(position < held.next for position in held.positions)

    @invariant()
    def each_token_of_text_is_where_it_was(self) -> None:
        for slot, held in enumerate(getattr(self, "held", ())):
            for place, position in held.cuts.items():
                assert self.positions.of_text(array(slot), array(place)).tolist() == [position]


TestSlotsWithImages = SlotsWithImages.TestCase
