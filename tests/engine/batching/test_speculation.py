"""Drafts change how fast tokens come, never which."""

from collections import Counter
from collections.abc import Callable
from collections.abc import Sequence as Sequence_
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.batching.cores import Visit, alone, check_all, play, run, samplings, visits_of
from engine.batching.steps import SteadySteps, rising_costs
from engine.builders import EOG_TOKEN, VOCABULARY_SIZE, hashed_logits, request, scripted_runner, sequence
from octavo.core.request import LogprobParams
from octavo.core.sampling import SamplingParams
from octavo.engine.batching.composer import MixedSteps
from octavo.engine.batching.core import EngineCore
from octavo.engine.batching.costly_drafter import PATIENCE
from octavo.engine.batching.draft_model import DraftModel
from octavo.engine.batching.drafts import NO_TOKENS, Drafter, PromptLookup
from octavo.engine.batching.radix_tree import Tokens
from octavo.engine.batching.sequence import Sequence
from octavo.engine.batching.speculation import MAX_DRAFT, Speculation
from octavo.engine.batching.step_costs import FREE_STEPS
from octavo.engine.runners.scripted import NextLogits, ScriptedRunner


class Knowing:
    """Drafts what a greedy model will say, but for every third token."""

    first_rate = 0.4

    def __init__(self, next_logits: NextLogits) -> None:
        self._next_logits = next_logits

    def propose(self, sequences: Sequence_[Sequence], max_lengths: Sequence_[int]) -> list[Tokens]:
        return [self._continue(each.tokens, length) for each, length in zip(sequences, max_lengths, strict=True)]

    def _continue(self, tokens: Tokens, length: int) -> Tokens:
        said = tokens.tolist()
        for _ in range(length):
            best = int(self._next_logits(tuple(said)).argmax())
            said.append(best if len(said) % 3 else (best + 1) % VOCABULARY_SIZE)
        return np.array(said[len(tokens) :], np.int32)


class Dreaming:
    """Drafts anything."""

    first_rate = 0.4

    def propose(self, sequences: Sequence_[Sequence], max_lengths: Sequence_[int]) -> list[Tokens]:
        return [
            np.random.default_rng(each.tokens.tolist()).integers(0, VOCABULARY_SIZE, length, np.int32)
            for each, length in zip(sequences, max_lengths, strict=True)
        ]


def speculating(runner: ScriptedRunner, speculation: Speculation, max_saved: int = 0) -> EngineCore:
    composer = MixedSteps(runner.limits, SteadySteps(), speculation)
    return EngineCore(runner, composer, eog_tokens=frozenset({EOG_TOKEN}), max_saved=max_saved)


def drafting_by(*drafters: Drafter, model: DraftModel | None = None) -> Speculation:
    return Speculation(drafters, SteadySteps(), model)


def draft_model(next_logits: NextLogits, cache_tokens: int | None = None) -> DraftModel:
    """Its forwards cost nothing, so that it is heard wherever it is right."""
    return DraftModel(scripted_runner(next_logits, cache_tokens=cache_tokens), FREE_STEPS)


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
SPECULATIONS: dict[str, Callable[[NextLogits], Speculation]] = {
    "lookup": lambda _: drafting_by(PromptLookup()),
    "knowing": lambda next_logits: drafting_by(Knowing(next_logits)),
    "dreaming": lambda _: drafting_by(Dreaming()),
    "the model itself": lambda next_logits: drafting_by(model=draft_model(next_logits)),
    "another model": lambda _: drafting_by(PromptLookup(), model=draft_model(hashed_logits(9), cache_tokens=40)),
}
ALL = pytest.mark.parametrize("speculation", SPECULATIONS.values(), ids=SPECULATIONS)


@ALL
@given(visits, st.integers(1, 4), st.integers(1, 40), st.integers(0, 20), st.none() | st.integers(50, 90))
def test_everybody_gets_what_the_plain_loop_gives(
    speculation: Callable[[NextLogits], Speculation],
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
    check_all(visits, play(speculating(runner, speculation(next_logits), max_saved=100), visits), next_logits)


def test_right_guesses_save_steps_and_wrong_ones_cost_none() -> None:
    def num_steps(drafter: Drafter) -> int:
        runner = scripted_runner(hashed_logits(6))
        asked = request((1, 2), 30, ignore_eos=True, sampling=SamplingParams(temperature=0.0))
        assert run(speculating(runner, drafting_by(drafter)), asked).of(asked) == alone(asked, hashed_logits(6))
        return len(runner.batches)

    assert num_steps(Dreaming()) >= 25
    assert num_steps(Knowing(hashed_logits(6))) <= 15


def test_what_is_left_behind_a_draft_serves_the_next_request() -> None:
    under_test = speculating(scripted_runner(hashed_logits(6)), drafting_by(Dreaming()))
    asked = request(tuple(range(1, 16)), 12, ignore_eos=True)
    answer = run(under_test, asked).of(asked)
    turn = request((*asked.prompt_tokens, *answer.tokens, 9), 3)
    answers = run(under_test, turn)
    assert answers.of(turn) == alone(turn, hashed_logits(6))
    assert answers.num_cached(turn) == 15 + 11


CRITICAL = {3: 16.27, 7: 24.32, 15: 37.70}
"""Of chi square at 0.1 % by degrees of freedom (NIST/SEMATECH e-Handbook, 1.3.6.7.4)."""


@ALL
@pytest.mark.slow
def test_drawn_tokens_have_the_models_own_distribution(speculation: Callable[[NextLogits], Speculation]) -> None:
    """Pearson's chi square over the tokens that follow each of the most frequent beginnings."""
    next_logits, prompt, sampling = hashed_logits(7), (1, 2, 1, 2, 1), SamplingParams(temperature=0.7)
    runner = scripted_runner(next_logits, num_slots=4)
    under_test = speculating(runner, speculation(next_logits))
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


def in_slot(slot: int, prompt: tuple[int, ...]) -> Sequence:
    """A sequence that decodes there."""
    made = sequence(prompt)
    made.slot = slot
    return made


def drafted(speculation: Speculation, made: Sequence, actual: Callable[[Tokens], int], steps: int) -> list[int]:
    """Tokens that were drafted in each of so many steps, each of which draws one token."""
    lengths = []
    for _ in range(steps):
        [draft] = speculation.drafts([made], 100)
        lengths.append(len(draft))
        made.append(actual(made.tokens))
    return lengths


def test_where_a_token_more_costs_a_step_more_nothing_is_drafted() -> None:
    speculation = Speculation([PromptLookup()], rising_costs(per_token=1.0))
    assert sum(drafted(speculation, in_slot(0, (1, 2, 3) * 5), lambda tokens: int(tokens[-3]), 20)) == 0


def test_a_drafter_that_is_wrong_is_soon_not_heard() -> None:
    speculation = Speculation([PromptLookup()], rising_costs(per_token=0.2))
    dice = np.random.default_rng(0)
    wrong = drafted(speculation, in_slot(0, (1, 2) * 10), lambda _: int(dice.integers(1, 12)), 200)
    assert sum(wrong) < 20


def test_a_drafter_that_has_become_right_is_heard_again_without_having_been_tried() -> None:
    speculation = Speculation([PromptLookup()], rising_costs(per_token=0.2))
    made = in_slot(0, (1, 2) * 10)
    for token in (3, 1, 2, 4, 1, 2, 5, 1, 2, 6, 1, 2, 7, 1, 2):
        speculation.drafts([made], 100)
        made.append(token)
    assert len(speculation.drafts([made], 100)[0]) == 0
    for token in (3, 4) * 10:
        speculation.drafts([made], 100)
        made.append(token)
    assert len(speculation.drafts([made], 100)[0]) > MAX_DRAFT / 2


class Refusing:
    """Knows nothing."""

    first_rate = 1.0

    def propose(self, sequences: Sequence_[Sequence], max_lengths: Sequence_[int]) -> list[Tokens]:
        return [NO_TOKENS] * len(sequences)


class Saying(Refusing):
    """Always says the same, and remembers whom it was asked about."""

    def __init__(self, token: int, rate: float = 1.0) -> None:
        self._token = token
        self.first_rate = rate
        self.asked: list[str] = []

    def propose(self, sequences: Sequence_[Sequence], max_lengths: Sequence_[int]) -> list[Tokens]:
        self.asked += [each.id for each in sequences]
        return [np.full(length, self._token, np.int32) for length in max_lengths]


def test_a_drafter_is_asked_about_those_of_whom_the_ones_before_it_know_nothing() -> None:
    repeating, other = in_slot(0, (1, 2, 3) * 5), in_slot(1, (4, 5, 6))
    last = Saying(7)
    drafts = Speculation([Refusing(), PromptLookup(), last], SteadySteps()).drafts([repeating, other], 100)
    assert drafts[0].tolist()[:3] == [1, 2, 3]
    assert set(drafts[1].tolist()) == {7}
    assert last.asked == [other.id]


class WrongAfter(Refusing):
    """Takes one token to be followed by another one that never comes."""

    def __init__(self, token: int) -> None:
        self._token = token

    def propose(self, sequences: Sequence_[Sequence], max_lengths: Sequence_[int]) -> list[Tokens]:
        return [
            np.full(min(length, int(each.tokens[-1] == self._token)), 9, np.int32)
            for each, length in zip(sequences, max_lengths, strict=True)
        ]


def test_what_one_drafter_has_shown_is_not_held_against_another() -> None:
    speculation = Speculation([WrongAfter(3), PromptLookup()], rising_costs(per_token=0.2))
    lengths = drafted(speculation, in_slot(0, (1, 2, 3) * 5), lambda tokens: int(tokens[-3]), 60)
    assert set(lengths[30::3]) == {0}
    assert min(*lengths[31::3], *lengths[32::3]) > 0


def decoding(prompt: tuple[int, ...] = (1, 2, 3)) -> Sequence:
    made = in_slot(0, prompt)
    made.slot = 0
    return made


def modelled(next_logits: NextLogits, *drafters: Drafter) -> tuple[Speculation, ScriptedRunner]:
    """Speculation with a draft model that takes a tenth of the other one's time, and what runs it."""
    runner = scripted_runner(next_logits, context_length=10_000, max_batch_tokens=1000)
    return Speculation(drafters, rising_costs(per_token=0.1), DraftModel(runner, SteadySteps(0.1))), runner


def best_of(next_logits: NextLogits) -> Callable[[Tokens], int]:
    return lambda tokens: int(next_logits(tuple(tokens.tolist())).argmax())


def worst_of(next_logits: NextLogits) -> Callable[[Tokens], int]:
    return lambda tokens: int(next_logits(tuple(tokens.tolist())).argmin())


def test_a_model_that_is_right_is_heard_for_as_long_as_its_time_pays() -> None:
    speculation, _ = modelled(hashed_logits(6))
    lengths = drafted(speculation, decoding(), best_of(hashed_logits(6)), 20)
    assert min(lengths) > 0
    assert lengths[-1] > lengths[0]


def test_a_model_that_is_wrong_is_tried_again_with_growing_patience() -> None:
    speculation, _ = modelled(hashed_logits(6))
    lengths = drafted(speculation, decoding(), worst_of(hashed_logits(6)), 300)
    waits = np.diff(np.flatnonzero(lengths)).tolist()
    assert waits[-4:] == [1, PATIENCE, 2 * PATIENCE, 4 * PATIENCE]


def test_a_model_that_becomes_right_is_heard_again() -> None:
    speculation, _ = modelled(hashed_logits(6))
    made = decoding()
    drafted(speculation, made, worst_of(hashed_logits(6)), 100)
    lengths = drafted(speculation, made, best_of(hashed_logits(6)), 100)
    assert min(lengths[-30:]) > 0


def test_later_sequences_begin_with_what_others_have_shown_of_a_model() -> None:
    speculation, _ = modelled(hashed_logits(6))
    firsts = [sum(drafted(speculation, decoding(), worst_of(hashed_logits(6)), 20)) for _ in range(20)]
    assert firsts[0] > 0
    assert firsts[-1] == 0


def test_no_model_is_asked_where_a_good_guess_is_known() -> None:
    speculation, runner = modelled(hashed_logits(6), Saying(7, rate=0.9))
    assert min(drafted(speculation, decoding(), lambda _: 7, 10)) > 0
    assert not runner.batches


def test_a_model_is_asked_where_what_is_known_is_usually_wrong() -> None:
    speculation, runner = modelled(hashed_logits(6), Saying(7, rate=0.4))
    assert min(drafted(speculation, decoding(), best_of(hashed_logits(6)), 10)) > 0
    assert runner.batches


def test_a_core_that_is_closed_closes_the_model_that_drafts() -> None:
    class Closing(ScriptedRunner):
        is_closed = False

        def close(self) -> None:
            self.is_closed = True

    runner = Closing(scripted_runner().limits, hashed_logits(6))
    speculating(scripted_runner(), drafting_by(model=DraftModel(runner, FREE_STEPS))).close()
    assert runner.is_closed


def test_drafts_of_many_share_what_a_step_may_hold() -> None:
    sequences = [in_slot(0, (1, 2, 3) * 5), in_slot(1, (4, 5) * 5), in_slot(2, (6, 7, 8, 9))]
    drafts = Speculation([PromptLookup()], SteadySteps()).drafts(sequences, 9)
    assert [len(draft) for draft in drafts] == [5, 4, 0]
    assert drafts[0].tolist() == [1, 2, 3, 1, 2]


@given(st.lists(st.integers(1, 3), max_size=30), st.integers(0, 8))
def test_a_lookup_continues_as_the_text_did_after_the_longest_match(tokens: list[int], max_tokens: int) -> None:
    proposed = PromptLookup().propose([sequence(tuple(tokens))], [max_tokens])[0].tolist()
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
