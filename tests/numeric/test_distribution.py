"""What is drawn, by statistics: a vocabulary of several blocks, every setting, and no draw that tells of another."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.typing import NDArray

from engine.builders import sequence
from octavo.core.sampling import SamplingParams
from octavo.engine.batching.philox import uniform
from octavo.engine.batching.rows import BLOCK
from octavo.engine.batching.sampler import sample
from octavo.service.job import sample_seed

NUM_DRAWS = 20_000
AT_A_TIME = 1000
LEAST_EXPECTED = 10.0
"""Draws that a cell must expect; chi-square is no such thing with fewer than about five."""
CLEARLY = 3.0
"""Times the critical value, at which two distributions are not the same."""
LOGITS = np.random.default_rng(7).normal(-2, 2, 600).astype(np.float32)
"""The best tokens have positive logits, most others negative ones: the repetition penalty treats them unlike."""
BEST = tuple(np.argsort(-LOGITS)[:12].tolist())
NEGATIVE = tuple(np.flatnonzero((LOGITS < -0.7) & (LOGITS > -1.5))[:30].tolist())
PROMPT = (*BEST[4:8], *NEGATIVE, *NEGATIVE[:5])
OUTPUT = (*(BEST[0],) * 3, BEST[1], BEST[2], BEST[5], *NEGATIVE[:2], NEGATIVE[0])

Counts = NDArray[np.float64]
"""Of draws, by token, shape (vocabulary,)."""

SETTINGS = {
    "cool": SamplingParams(temperature=0.7),
    "hot": SamplingParams(temperature=1.7),
    "top_k": SamplingParams(top_k=40),
    "top_k of many": SamplingParams(top_k=400, temperature=2.0),
    "top_p": SamplingParams(top_p=0.8),
    "top_p of many": SamplingParams(top_p=0.97, temperature=2.0),
    "min_p": SamplingParams(min_p=0.05),
    "min_p of a hot distribution": SamplingParams(min_p=0.05, temperature=1.7),
    "top_p of what top_k left": SamplingParams(top_k=30, min_p=0.05, top_p=0.8, temperature=1.3),
    "top_p of what min_p left": SamplingParams(top_k=90, min_p=0.15, top_p=0.8, temperature=1.3),
    "frequency penalty": SamplingParams(frequency_penalty=1.5),
    "frequency reward": SamplingParams(frequency_penalty=-0.7),
    "presence penalty": SamplingParams(presence_penalty=1.8),
    "presence reward": SamplingParams(presence_penalty=-1.3),
    "repetition penalty": SamplingParams(repetition_penalty=1.8),
    "repetition reward": SamplingParams(repetition_penalty=0.6),
    "all penalties, then top_p": SamplingParams(
        frequency_penalty=0.4, presence_penalty=0.5, repetition_penalty=1.2, temperature=0.9, top_p=0.85
    ),
    "bias": SamplingParams(logit_bias=((BEST[0], -1.5), (BEST[3], -100.0), (NEGATIVE[0], 6.0))),
    "bias before the repetition penalty": SamplingParams(
        logit_bias=((NEGATIVE[0], 5.0), (BEST[5], -9.0)), repetition_penalty=1.5
    ),
    "force": SamplingParams(logit_bias=tuple((token, 100.0) for token in (*BEST[:3], *NEGATIVE[:2]))),
}


def expected_counts(params: SamplingParams) -> Counts:
    """By the formulas, in the contract's order, with 64-bit floats."""
    weights = np.exp((scores := penalised(LOGITS.astype(np.float64), params)) / params.temperature)
    order = np.argsort(-scores, kind="stable")
    kept = order[: params.top_k or None]
    kept = kept[weights[kept] >= params.min_p * weights[order[0]]]
    shares = weights[kept] / weights[kept].sum()
    crossing = int(np.searchsorted(shares.cumsum(), params.top_p)) + 1
    counts = np.zeros(len(LOGITS))
    counts[kept[:crossing]] = NUM_DRAWS * shares[:crossing] / shares[:crossing].sum()
    return counts


def penalised(scores: Counts, params: SamplingParams) -> Counts:
    forced = [token for token, bias in params.logit_bias if bias == 100]
    for token, bias in params.logit_bias:
        scores[token] = -np.inf if bias == -100 else scores[token] + bias
    if forced:
        scores[[token for token in range(len(scores)) if token not in forced]] = -np.inf
    for token in {*PROMPT, *OUTPUT}:
        positive = scores[token] > 0
        scores[token] *= 1 / params.repetition_penalty if positive else params.repetition_penalty
    for token in set(OUTPUT):
        scores[token] -= params.frequency_penalty * OUTPUT.count(token) + params.presence_penalty
    return scores


def drawn_counts(params: SamplingParams) -> Counts:
    """Of the samples of one request, each with its own stream."""
    counts = np.zeros(len(LOGITS))
    for start in range(0, NUM_DRAWS, AT_A_TIME):
        seeds = (sample_seed(2026, 0, index) for index in range(start, start + AT_A_TIME))
        sequences = [sequence(PROMPT, OUTPUT, sampling=replace(params, seed=seed)) for seed in seeds]
        counts += np.bincount(sample(np.tile(LOGITS, (AT_A_TIME, 1)), sequences), minlength=len(LOGITS))
    return counts


@dataclass(frozen=True, slots=True)
class ChiSquare:
    """Pearson's statistic. critical: what it exceeds once in a thousand times where the expectation is right."""

    value: float
    num_cells: int

    @classmethod
    def of(cls, counts: Counts, expected: Counts) -> "ChiSquare":
        """Over neighbouring tokens in cells, so that no cell expects too few draws."""
        possible = expected > 0
        cells = cells_of(expected[possible])
        observed, wanted = np.bincount(cells, counts[possible]), np.bincount(cells, expected[possible])
        return cls(float(((observed - wanted) ** 2 / wanted).sum()), len(wanted))

    @property
    def critical(self) -> float:
        """By Wilson and Hilferty's approximation (1931); 3.09 is the normal distribution's 0.999 quantile."""
        spread = 2 / 9 / (self.num_cells - 1)
        return float((self.num_cells - 1) * (1 - spread + 3.09 * spread**0.5) ** 3)

    @property
    def agrees(self) -> bool:
        return self.value < self.critical

    @property
    def disagrees_clearly(self) -> bool:
        return self.value > CLEARLY * self.critical


def cells_of(expected: Counts) -> NDArray[np.int64]:
    cells, cell, mass = [], 0, 0.0
    for number in expected.tolist():
        cells.append(cell)
        mass += number
        if mass >= LEAST_EXPECTED:
            cell, mass = cell + 1, 0.0
    return np.minimum(cells, cell - 1)  # what is left over goes to the last whole one


def test_20_000_samples_of_a_request_draw_the_model_s_distribution() -> None:
    plain = SamplingParams()
    assert ChiSquare.of(drawn_counts(plain), expected_counts(plain)).agrees
    assert len(LOGITS) > 2 * BLOCK, "the sampler adds up weights by blocks"


@pytest.mark.parametrize("name", SETTINGS)
def test_20_000_samples_draw_what_a_setting_makes_of_it_and_nothing_else(name: str) -> None:
    counts, expected = drawn_counts(SETTINGS[name]), expected_counts(SETTINGS[name])
    assert not counts[expected == 0].any()
    assert ChiSquare.of(counts, expected).agrees
    assert ChiSquare.of(counts, expected_counts(SamplingParams())).disagrees_clearly or (expected == 0).any()


@pytest.mark.parametrize(
    ("name", "without"),
    [
        ("top_p of what top_k left", {"top_k": 0}),
        ("top_p of what top_k left", {"top_p": 1.0}),
        ("top_p of what min_p left", {"min_p": 0.0}),
        ("top_p of what min_p left", {"top_p": 1.0}),
        ("all penalties, then top_p", {"frequency_penalty": 0.0}),
        ("all penalties, then top_p", {"presence_penalty": 0.0}),
        ("all penalties, then top_p", {"repetition_penalty": 1.0}),
        ("bias before the repetition penalty", {"logit_bias": ()}),
        ("bias before the repetition penalty", {"repetition_penalty": 1.0}),
    ],
)
def test_each_of_several_settings_has_its_part(name: str, without: dict[str, object]) -> None:
    whole, rest = expected_counts(SETTINGS[name]), expected_counts(replace(SETTINGS[name], **without))
    assert ((whole > 0) != (rest > 0)).any() or ChiSquare.of(whole, rest).disagrees_clearly


def quarters(numbers: NDArray[np.float64]) -> NDArray[np.int64]:
    return (numbers * 4).astype(np.int64)


def pairs(first: NDArray[np.float64], second: NDArray[np.float64]) -> ChiSquare:
    """Of the sixteen pairs of quarters, which independent uniform numbers hit equally often."""
    counts = np.bincount(4 * quarters(first) + quarters(second), minlength=16).astype(np.float64)
    return ChiSquare.of(counts, np.full(16, len(first) / 16))


def numbers_of(seeds: Iterable[int], positions: Iterable[int]) -> NDArray[np.float64]:
    return uniform(np.array(list(seeds), np.uint64), np.array(list(positions), np.uint64))


@pytest.mark.parametrize("distance", [1, 2, 7])
def test_draws_of_one_stream_do_not_tell_of_each_other(distance: int) -> None:
    seed = sample_seed(5, 0, 0)
    numbers = numbers_of([seed] * (NUM_DRAWS + distance), range(NUM_DRAWS + distance))
    assert pairs(numbers[:-distance], numbers[distance:]).agrees


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([sample_seed(5, 0, i) for i in range(NUM_DRAWS)], [sample_seed(5, 0, i + 1) for i in range(NUM_DRAWS)]),
        ([sample_seed(i, 0, 0) for i in range(NUM_DRAWS)], [sample_seed(i, 0, 1) for i in range(NUM_DRAWS)]),
        ([sample_seed(i, 0, 1) for i in range(NUM_DRAWS)], [sample_seed(i, 1, 0) for i in range(NUM_DRAWS)]),
        ([sample_seed(i, 0, 0) for i in range(NUM_DRAWS)], [sample_seed(i + 1, 0, 0) for i in range(NUM_DRAWS)]),
    ],
    ids=["samples in a row", "samples of a request", "prompts and samples", "requests with seeds in a row"],
)
@pytest.mark.parametrize("position", [0, 31])
def test_the_first_draws_of_two_samples_do_not_tell_of_each_other(
    one: list[int], other: list[int], position: int
) -> None:
    assert pairs(numbers_of(one, [position] * NUM_DRAWS), numbers_of(other, [position] * NUM_DRAWS)).agrees
