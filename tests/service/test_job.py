"""Each sample has a random stream of its own."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from octavo.service import sample_seed

small = st.integers(0, 1000)


@given(st.integers(), small, small)
def test_a_sample_seed_has_64_bits_and_depends_on_nothing_else(seed: int, prompt: int, sample: int) -> None:
    assert 0 <= sample_seed(seed, prompt, sample) < 2**64
    assert sample_seed(seed, prompt, sample) == sample_seed(seed, prompt, sample)


def test_every_sample_of_every_prompt_of_every_seed_has_a_seed_of_its_own() -> None:
    cases = list(product((0, 1, 11, -1, 2**63), range(12), range(130)))
    assert len({sample_seed(*case) for case in cases}) == len(cases)


def test_sample_seeds_stay_the_same_from_release_to_release() -> None:
    assert sample_seed(42, 0, 0) == 9219764411588268185
    assert sample_seed(42, 1, 2) == 816546862783378270
