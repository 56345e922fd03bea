"""From logits to tokens: against a slow and obvious reference, and by statistics."""

import math
from collections.abc import Sequence
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.builders import sequence
from octavo.core.sampling import SamplingParams
from octavo.engine.batching.philox import uniform
from octavo.engine.batching.sampler import MAX_ATTEMPTS, sample
from octavo.engine.batching.sequence import Sequence as Sequence_

Probabilities = dict[int, float]
Rows = Sequence[Sequence[float]]
MARGIN = 1e-5
"""Draws and cuts closer than this to a boundary are not compared: 32-bit weights differ from the reference there."""
NUM_DRAWS = 20_000
LOGITS = (1.5, 0.0, -1.0, 0.7, 2.0, -0.4, 1.5, 0.2)


def drawn(rows: Rows, *sequences: Sequence_) -> list[int]:
    return sample(np.array(rows, np.float32), sequences).tolist()


def reference_scores(
    logits: Sequence[float], params: SamplingParams, prompt: Sequence[int] = (), output: Sequence[int] = ()
) -> list[float]:
    """Bias, then penalties, by the formulas."""
    scores = list(logits)
    bias = dict(params.logit_bias)
    forced = [token for token, value in bias.items() if value >= 100]
    for token in range(len(scores)):
        scores[token] += bias.get(token, 0.0)
        if bias.get(token, 0.0) <= -100 or (forced and token not in forced):
            scores[token] = -math.inf
        if token in prompt or token in output:
            positive = scores[token] > 0
            scores[token] *= 1 / params.repetition_penalty if positive else params.repetition_penalty
        times = list(output).count(token)
        scores[token] -= params.frequency_penalty * times + params.presence_penalty * (times > 0)
    return scores


def reference_probabilities(scores: Sequence[float], params: SamplingParams) -> tuple[Probabilities, bool]:
    """What is kept, most probable first, and whether no cut was too close to call."""
    best = max(scores)
    weights = [math.exp((score - best) / params.temperature) for score in scores]
    kept = sorted(range(len(scores)), key=lambda token: (-weights[token], token))
    if params.top_k:
        kept = kept[: params.top_k]
    is_clear = all(abs(weights[token] - params.min_p) > MARGIN or weights[token] == 1 for token in kept)
    kept = [token for token in kept if weights[token] >= params.min_p]
    total = sum(weights[token] for token in kept)
    nucleus: list[int] = []
    mass = 0.0
    for token in kept:
        nucleus.append(token)
        mass += weights[token] / total
        is_clear &= params.top_p == 1.0 or abs(mass - params.top_p) > MARGIN
        if mass >= params.top_p:
            break
    return {token: weights[token] / mass / total for token in nucleus}, is_clear


def reference_draw(probabilities: Probabilities, u: float) -> int | None:
    """The token whose share holds u, or None where it is too close to call."""
    mass = 0.0
    for token, probability in probabilities.items():
        mass += probability
        if abs(mass - u) < MARGIN:
            return None
        if u < mass:
            return token
    return None


def reference_outcome(
    logits: Sequence[float], kept: Probabilities, params: SamplingParams, numbers: Sequence[float]
) -> int | None:
    """In the vocabulary's order. With top_p alone, from all tokens until one is among those that are kept."""
    in_order = dict(sorted(kept.items()))
    if params.top_k or params.min_p or params.top_p == 1.0:
        return reference_draw(in_order, numbers[0])
    everything, _ = reference_probabilities(logits, replace(params, top_p=1.0))
    for u in numbers[:MAX_ATTEMPTS]:
        token = reference_draw(dict(sorted(everything.items())), u)
        if token is None or token in kept:
            return token
    return reference_draw(in_order, numbers[MAX_ATTEMPTS])


level = st.integers(-12, 12).map(lambda steps: steps / 4)
vocabularies = st.lists(level, min_size=2, max_size=12)
samplings = st.builds(
    SamplingParams,
    temperature=st.sampled_from((0.3, 0.7, 1.0, 1.9)),
    top_k=st.sampled_from((0, 0, 2, 3, 5, 12, 1000)),
    min_p=st.sampled_from((0.0, 0.0, 0.04, 0.21, 0.6, 1.0)),
    top_p=st.sampled_from((1.0, 1.0, 0.03, 0.31, 0.62, 0.93, 0.999)),
    seed=st.integers(0, 2**64 - 1),
)


@given(vocabularies, samplings)
def test_draws_are_those_of_the_reference(logits: list[float], params: SamplingParams) -> None:
    probabilities, is_clear = reference_probabilities(logits, params)
    if not is_clear:
        return
    sequences = [sequence(output=(0,) * position, sampling=params) for position in range(64)]
    seeds, positions = np.full(64, params.seed, np.uint64), np.arange(64, dtype=np.uint64)
    numbers = np.stack([uniform(seeds, positions, attempt) for attempt in range(MAX_ATTEMPTS + 1)], axis=1)
    for token, attempts in zip(drawn([logits] * 64, *sequences), numbers.tolist(), strict=True):
        expected = reference_outcome(logits, probabilities, params, attempts)
        assert token in probabilities
        assert expected is None or token == expected


tokens = st.lists(st.integers(0, 7), max_size=8).map(tuple)
biases = st.dictionaries(st.integers(0, 7), st.sampled_from((-100.0, -3.0, 0.5, 4.0, 100.0)), max_size=5)


@given(
    st.lists(level, min_size=8, max_size=8),
    tokens,
    tokens,
    biases,
    st.sampled_from((0.0, 0.3, -1.1)),
    st.sampled_from((0.0, 0.7, -0.4)),
    st.sampled_from((1.0, 1.3, 0.8)),
)
def test_bias_and_penalties_follow_their_formulas(
    logits: list[float],
    prompt: tuple[int, ...],
    output: tuple[int, ...],
    bias: dict[int, float],
    frequency: float,
    presence: float,
    repetition: float,
) -> None:
    params = SamplingParams(
        temperature=0.0,
        frequency_penalty=frequency,
        presence_penalty=presence,
        repetition_penalty=repetition,
        logit_bias=tuple(bias.items()),
    )
    rows = np.array([logits], np.float32)
    (token,) = sample(rows, [sequence((7, *prompt), output, sampling=params)]).tolist()
    scores = reference_scores(logits, params, (7, *prompt), output)
    assert rows[0].tolist() == pytest.approx(scores, abs=1e-4)
    assert scores[token] == pytest.approx(max(scores), abs=1e-4)


GREEDY = (SamplingParams(temperature=0.0), SamplingParams(top_p=0.0), SamplingParams(top_k=1))


@pytest.mark.parametrize("params", GREEDY)
def test_greedy_takes_the_first_of_the_best(params: SamplingParams) -> None:
    assert drawn([[0, 3, 1, 3, 3]], sequence(sampling=params)) == [1]


@given(st.integers(0, 2**64 - 1))
def test_of_equal_tokens_truncation_keeps_the_lower_ids(seed: int) -> None:
    logits = [0, 3, 1, 3, 3, 3]
    assert drawn([logits], sequence(sampling=SamplingParams(top_k=2, seed=seed)))[0] in (1, 3)
    assert drawn([logits], sequence(sampling=SamplingParams(top_p=0.4, seed=seed)))[0] in (1, 3)


@given(st.integers(0, 2**64 - 1))
def test_a_banned_token_is_never_drawn_and_a_forced_one_always(seed: int) -> None:
    ban = SamplingParams(logit_bias=((4, -100.0), (0, -100.0)), temperature=2.0, seed=seed)
    assert drawn([LOGITS], sequence(sampling=ban))[0] not in (0, 4)
    force = SamplingParams(logit_bias=((2, 100.0),), temperature=2.0, seed=seed)
    assert drawn([LOGITS], sequence(sampling=force)) == [2]
    forced_two = SamplingParams(logit_bias=((2, 100.0), (1, 100.0)), temperature=2.0, seed=seed)
    assert drawn([LOGITS], sequence(sampling=forced_two))[0] in (1, 2)


EXTREMES = [
    SamplingParams(temperature=1e-40),
    SamplingParams(temperature=5e-324, top_p=0.9),
    SamplingParams(temperature=1e-40, min_p=0.5),
    SamplingParams(temperature=1e-40, top_k=3, top_p=0.5),
    SamplingParams(repetition_penalty=1e-50, temperature=1e-10, top_p=0.9),
    SamplingParams(top_p=5e-324),
]


@pytest.mark.parametrize("params", EXTREMES)
def test_extreme_settings_take_the_best_token(params: SamplingParams) -> None:
    assert drawn([LOGITS], sequence((4, 4), sampling=params)) == [4]


def test_an_endless_repetition_penalty_excludes_what_was_seen() -> None:
    params = SamplingParams(repetition_penalty=1e300, top_p=0.9)
    assert drawn([[0.0, -1.0, 2.0, -3.0]], sequence((1, 3), sampling=params))[0] in (0, 2)


def test_top_k_of_the_whole_vocabulary_or_more_cuts_nothing_from_the_nucleus() -> None:
    # One token of half the mass, fifty that share the other half: 0.75 takes the first and 25 of them.
    logits = [math.log(50.0)] + [0.0] * 50
    for top_k in (0, 51, 52, 10**6):
        params = [SamplingParams(top_k=top_k, top_p=0.749, seed=seed) for seed in range(2000)]
        assert set(drawn([logits] * 2000, *(sequence(sampling=each) for each in params))) == set(range(26))


@given(st.lists(samplings, min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_a_token_does_not_depend_on_the_rest_of_the_batch(many: list[SamplingParams], random: Random) -> None:
    rows = [[random.uniform(-3, 3) for _ in range(20)] for _ in many]
    sequences = [sequence(output=(1,) * i, sampling=params) for i, params in enumerate(many)]
    alone = [drawn([row], each)[0] for row, each in zip(rows, sequences, strict=True)]
    assert drawn(rows, *sequences) == alone
    assert drawn(rows[::-1], *sequences[::-1]) == alone[::-1]


def test_seed_and_position_decide_the_draw() -> None:
    flat = [0.0] * 1000

    def draws(seed: int, length: int) -> int:
        return drawn([flat], sequence((1, 2), (3,) * length, sampling=SamplingParams(seed=seed)))[0]

    assert draws(5, 7) == draws(5, 7)
    assert len({draws(5, length) for length in range(20)}) > 15
    assert len({draws(seed, 7) for seed in range(20)}) > 15


CRITICAL = {1: 10.83, 2: 13.82, 3: 16.27, 4: 18.47, 5: 20.52, 6: 22.46, 7: 24.32}
"""Chi-square, p = 0.001, by degrees of freedom."""
DISTRIBUTIONS = {
    "plain": SamplingParams(),
    "cool": SamplingParams(temperature=0.6),
    "hot": SamplingParams(temperature=1.8),
    "top_k": SamplingParams(top_k=4),
    "top_p": SamplingParams(top_p=0.8),
    "min_p": SamplingParams(min_p=0.25),
    "all three": SamplingParams(temperature=1.4, top_k=6, min_p=0.15, top_p=0.9),
    "frequency penalty": SamplingParams(frequency_penalty=0.5),
    "presence penalty": SamplingParams(presence_penalty=1.2),
    "repetition penalty": SamplingParams(repetition_penalty=1.5),
    "bias": SamplingParams(logit_bias=((1, 1.5), (4, -2.0), (6, -100.0))),
    "force": SamplingParams(logit_bias=((1, 100.0), (4, 100.0))),
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_20_000_seeds_draw_the_distribution(name: str) -> None:
    params = DISTRIBUTIONS[name]
    prompt, output = (5, 2), (0, 0, 0, 4, 7, 7)
    sequences = [sequence(prompt, output, sampling=replace(params, seed=seed)) for seed in range(NUM_DRAWS)]
    check_distribution(
        drawn([LOGITS] * NUM_DRAWS, *sequences), reference_scores(LOGITS, params, prompt, output), params
    )


def test_20_000_positions_of_one_stream_draw_the_distribution() -> None:
    params = SamplingParams(seed=2026)
    growing = sequence(sampling=params)
    for _ in range(NUM_DRAWS):
        growing.append(drawn([LOGITS], growing)[0])
    check_distribution(growing.output.tolist(), LOGITS, params)


def check_distribution(result: Sequence[int], scores: Sequence[float], params: SamplingParams) -> None:
    probabilities, _ = reference_probabilities(scores, params)
    expected = {token: len(result) * probability for token, probability in probabilities.items() if probability > 0}
    assert set(result) <= set(expected)
    chi_square = sum((result.count(token) - number) ** 2 / number for token, number in expected.items())
    assert chi_square < CRITICAL[len(expected) - 1]
