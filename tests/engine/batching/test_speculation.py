"""Drafts change how fast tokens come, never which."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.batching.cores import Visit, alone, check_all, play, run, samplings, visits_of
from engine.builders import EOG_TOKEN, VOCABULARY_SIZE, hashed_logits, request, scripted_runner, sequence
from octavo.core.request import GenerationRequest, LogprobParams
from octavo.core.sampling import SamplingParams
from octavo.engine.batching.composer import MixedSteps
from octavo.engine.batching.core import EngineCore
from octavo.engine.batching.drafts import NO_TOKENS, Drafter, PromptLookup
from octavo.engine.batching.radix_tree import Tokens
from octavo.engine.batching.speculation import MAX_DRAFT, Speculation
from octavo.engine.batching.step_costs import SIZES, FreeSteps, MeasuredSteps
from octavo.engine.runners.scripted import NextLogits, ScriptedRunner


class SteadySteps(FreeSteps):
    """Steps that take as long with many tokens as with one: every draft pays."""

    def seconds(self, num_tokens: np.ndarray) -> np.ndarray:
        return np.ones(len(num_tokens))


class Knowing:
    """Drafts what a greedy model will say, but for every third token."""

    def __init__(self, next_logits: NextLogits) -> None:
        self._next_logits = next_logits

    def propose(self, tokens: Tokens, max_tokens: int) -> Tokens:
        said = tokens.tolist()
        for _ in range(max_tokens):
            best = int(self._next_logits(tuple(said)).argmax())
            said.append(best if len(said) % 3 else (best + 1) % VOCABULARY_SIZE)
        return np.array(said[len(tokens) :], np.int32)


class Dreaming:
    """Drafts anything."""

    def propose(self, tokens: Tokens, max_tokens: int) -> Tokens:
        return np.random.default_rng(tokens.tolist()).integers(0, VOCABULARY_SIZE, max_tokens, np.int32)


def speculating(runner: ScriptedRunner, drafter: Drafter, max_saved: int = 0) -> EngineCore:
    composer = MixedSteps(runner.limits, SteadySteps(), Speculation(drafter, SteadySteps()))
    return EngineCore(runner, composer, eog_tokens=frozenset({EOG_TOKEN}), max_saved=max_saved)


requests = st.builds(
    request,
    st.lists(st.integers(1, 4), min_size=1, max_size=25).map(tuple),
    st.integers(0, 20),
    sampling=samplings,
    ignore_eos=st.booleans(),
    stop_tokens=st.frozensets(st.integers(0, 15), max_size=2),
    min_tokens=st.integers(0, 5),
    logprobs=st.builds(LogprobParams, st.booleans(), st.booleans(), st.integers(0, 3)),
)
visits = visits_of(requests)
DRAFTERS = pytest.mark.parametrize(
    "drafter", [lambda _: PromptLookup(), Knowing, lambda _: Dreaming()], ids=["lookup", "knowing", "dreaming"]
)


@DRAFTERS
@given(visits, st.integers(1, 4), st.integers(1, 40), st.integers(0, 20), st.none() | st.integers(50, 90))
def test_everybody_gets_what_the_plain_loop_gives(
    drafter: Callable[[NextLogits], Drafter],
    visits: list[Visit],
    num_slots: int,
    token_budget: int,
    spare_rows: int,
    cache_tokens: int | None,
) -> None:
    next_logits = hashed_logits(5)
    runner = scripted_runner(
        next_logits,
        num_slots=num_slots,
        max_batch_tokens=max(token_budget, num_slots),
        max_logits=num_slots + spare_rows,
        cache_tokens=cache_tokens,
    )
    check_all(visits, play(speculating(runner, drafter(next_logits), max_saved=100), visits), next_logits)


def test_right_guesses_save_steps_and_wrong_ones_cost_none() -> None:
    def num_steps(drafter: Drafter) -> int:
        runner = scripted_runner(hashed_logits(6))
        asked = request((1, 2), 30, ignore_eos=True, sampling=SamplingParams(temperature=0.0))
        assert run(speculating(runner, drafter), asked).of(asked) == alone(asked, hashed_logits(6))
        return len(runner.batches)

    assert num_steps(Dreaming()) >= 25
    assert num_steps(Knowing(hashed_logits(6))) <= 15


def test_what_is_left_behind_a_draft_serves_the_next_request() -> None:
    under_test = speculating(scripted_runner(hashed_logits(6)), Dreaming())
    asked = request(tuple(range(1, 16)), 12, ignore_eos=True)
    answer = run(under_test, asked).of(asked)
    turn = request((*asked.prompt_tokens, *answer.tokens, 9), 3)
    answers = run(under_test, turn)
    assert answers.of(turn) == alone(turn, hashed_logits(6))
    assert answers.num_cached(turn) == 15 + 11


CRITICAL = {3: 16.27, 7: 24.32, 15: 37.70}
"""Of chi square at 0.1 % by degrees of freedom (NIST/SEMATECH e-Handbook, 1.3.6.7.4)."""


@DRAFTERS
@pytest.mark.slow
def test_drawn_tokens_have_the_models_own_distribution(drafter: Callable[[NextLogits], Drafter]) -> None:
    """Pearson's chi square over the tokens that follow each of the most frequent beginnings."""
    next_logits, prompt, sampling = hashed_logits(7), (1, 2, 1, 2, 1), SamplingParams(temperature=0.7)
    runner = scripted_runner(next_logits, num_slots=4)
    under_test = speculating(runner, drafter(next_logits))
    followers: dict[tuple[int, ...], Counter[int]] = {}
    for start in range(0, 6000, 50):
        asked = [
            request(prompt, 4, ignore_eos=True, sampling=replace(sampling, seed=seed))
            for seed in range(start, start + 50)
        ]
        answers = run(under_test, *asked)
        for tokens in (answers.of(each).tokens for each in asked):
            for place, token in enumerate(tokens):
                followers.setdefault(tokens[:place], Counter())[token] += 1
    assert any(len(batch.tokens) > 4 for batch in runner.batches), "there were drafts"
    frequent = sorted(followers, key=lambda beginning: -followers[beginning].total())[:6]
    for beginning in frequent:
        drawn = followers[beginning]
        logits = next_logits((*prompt, *beginning)).astype(np.float64) / sampling.temperature
        expected = np.exp(logits) / np.exp(logits).sum() * drawn.total()
        chi_square, degrees = pearson(np.array([drawn[token] for token in range(VOCABULARY_SIZE)]), expected)
        assert chi_square < critical(degrees), beginning


def pearson(observed: np.ndarray, expected: np.ndarray) -> tuple[float, int]:
    """Cells that are expected fewer than five times are joined."""
    rare = expected < 5
    cells = [(observed[i], expected[i]) for i in np.flatnonzero(~rare)]
    if rare.any() and expected[rare].sum() >= 1:
        cells.append((observed[rare].sum(), expected[rare].sum()))
    return sum((seen - hoped) ** 2 / hoped for seen, hoped in cells), len(cells) - 1


def critical(degrees: int) -> float:
    return next(bound for most, bound in CRITICAL.items() if degrees <= most)


def drafted(speculation: Speculation, asked: GenerationRequest, actual: Callable[[Tokens], int], steps: int) -> int:
    """Tokens that were drafted in so many steps, each of which draws one token."""
    made = sequence(asked.prompt_tokens)
    total = 0
    for _ in range(steps):
        [draft] = speculation.drafts([made], 100)
        total += len(draft)
        made.append(actual(made.tokens))
    return total


def costs(per_token: float) -> MeasuredSteps:
    return MeasuredSteps(1.0 + per_token * (SIZES - 1))


def test_where_a_token_more_costs_a_step_more_nothing_is_drafted() -> None:
    speculation = Speculation(PromptLookup(), costs(per_token=1.0))
    assert drafted(speculation, request((1, 2, 3) * 5), lambda tokens: int(tokens[-3]), 20) == 0


def test_a_drafter_that_is_wrong_is_soon_not_heard() -> None:
    speculation = Speculation(PromptLookup(), costs(per_token=0.2))
    dice = np.random.default_rng(0)
    wrong = drafted(speculation, request((1, 2) * 10), lambda _: int(dice.integers(1, 12)), 200)
    assert wrong < 20


def test_a_drafter_that_has_become_right_is_heard_again_without_having_been_tried() -> None:
    speculation = Speculation(PromptLookup(), costs(per_token=0.2))
    made = sequence((1, 2) * 10)
    for token in (3, 1, 2, 4, 1, 2, 5, 1, 2, 6, 1, 2, 7, 1, 2):
        speculation.drafts([made], 100)
        made.append(token)
    assert len(speculation.drafts([made], 100)[0]) == 0
    for token in (3, 4) * 10:
        speculation.drafts([made], 100)
        made.append(token)
    assert len(speculation.drafts([made], 100)[0]) > MAX_DRAFT / 2


def test_drafts_of_many_share_what_a_step_may_hold() -> None:
    sequences = [sequence((1, 2, 3) * 5), sequence((4, 5) * 5), sequence((6, 7, 8, 9))]
    drafts = Speculation(PromptLookup(), SteadySteps()).drafts(sequences, 9)
    assert [len(draft) for draft in drafts] == [5, 4, 0]
    assert drafts[0].tolist() == [1, 2, 3, 1, 2]


@given(st.lists(st.integers(1, 3), max_size=30), st.integers(0, 8))
def test_a_lookup_continues_as_the_text_did_after_the_longest_match(tokens: list[int], max_tokens: int) -> None:
    proposed = PromptLookup().propose(np.array(tokens, np.int32), max_tokens).tolist()
    matches = [
        (length, end)
        for length in range(2, 9)
        for end in range(length, len(tokens))
        if tokens[end - length : end] == tokens[len(tokens) - length :]
    ]
    if not matches or max_tokens == 0:
        assert proposed == NO_TOKENS.tolist()
    else:
        _, end = max(matches)
        repeated = tokens + (tokens[end:] * max_tokens)
        assert proposed == repeated[end : end + max_tokens]
