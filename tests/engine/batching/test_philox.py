"""The counter-based generator."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.engine.batching.philox import philox4x32, uniform

word64 = st.integers(0, 2**64 - 1)


def words(text: str) -> list[int]:
    return [int(word, 16) for word in text.split()]


def array(*values: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    return np.array(values, np.uint64)


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        ("0 0 0 0", "0 0", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
    ],
)
def test_it_gives_the_known_answers_of_random123(counter: str, key: str, expected: str) -> None:
    c0, c1, c2, c3 = map(array, words(counter))
    k0, k1 = map(array, words(key))
    assert [int(word[0]) for word in philox4x32((c0, c1, c2, c3), (k0, k1))] == words(expected)


@given(st.lists(st.tuples(word64, word64), min_size=1, max_size=20))
def test_a_number_lies_in_0_1_and_does_not_depend_on_its_company(pairs: list[tuple[int, int]]) -> None:
    seeds, positions = (array(*column) for column in zip(*pairs, strict=True))
    together = uniform(seeds, positions)
    assert ((together >= 0) & (together < 1)).all()
    assert together.tolist() == [uniform(array(seed), array(position))[0] for seed, position in pairs]


@given(word64, word64)
def test_all_64_bits_of_seed_and_position_matter(seed: int, position: int) -> None:
    flips = [1 << bit for bit in range(64)]
    others = uniform(array(*(seed ^ flip for flip in flips)), array(*[position] * 64)).tolist()
    others += uniform(array(*[seed] * 64), array(*(position ^ flip for flip in flips))).tolist()
    assert len({*others, uniform(array(seed), array(position))[0]}) == 129


def test_the_numbers_of_a_stream_are_spread_evenly() -> None:
    numbers = uniform(np.full(100_000, 7, np.uint64), np.arange(100_000, dtype=np.uint64))
    counts = np.histogram(numbers, bins=100, range=(0, 1))[0]
    assert ((counts - 1000) ** 2 / 1000).sum() < 148.2  # chi-square, 99 degrees of freedom, p = 0.001
