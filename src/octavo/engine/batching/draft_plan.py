"""How many drafted tokens a step is given to check: as many as pay."""

from collections.abc import Sequence as Sequence_
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from octavo.engine.batching.runner import count_graphs
from octavo.engine.batching.step_costs import FREE_STEPS, StepCosts

MIN_GAIN = 1.05
"""Tokens per second that drafting must promise, as a multiple of those without."""


@dataclass(frozen=True, slots=True)
class Offer:
    """At most `length` tokens for a sequence, each right with the probability `rate` where those before it are.

    takes_time: they are still to be drafted, one after the other.
    """

    rate: float
    length: int
    takes_time: bool = False

    @property
    def chance(self) -> float:
        """That one token more is gained by it."""
        return self.rate if self.length else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class DraftPlan:
    """lengths: what to take of each offer. speed: tokens a second that are expected then."""

    lengths: NDArray[np.int64]
    speed: float


class DraftPlanner:
    """Weighs tokens gained against seconds taken.

    costs: of the steps that check. drafting_costs: of the forwards of a draft model, each of which drafts a token for
    any number of sequences.
    """

    def __init__(self, costs: StepCosts, drafting_costs: StepCosts = FREE_STEPS) -> None:
        self._costs = costs
        self._drafting_costs = drafting_costs

    def plan(self, offers: Sequence_[Offer], slots: Sequence_[int], max_tokens: int) -> DraftPlan:
        """The likeliest tokens first, as many as make the step worth most, but at most so many.

        slots: of those to whom the offers are made.
        """
        num_sequences = len(offers)
        owners = np.repeat(np.arange(num_sequences), [offer.length for offer in offers])
        places = np.concatenate([np.arange(1, offer.length + 1) for offer in offers])
        chances = np.array([offer.rate for offer in offers])[owners] ** places
        likeliest = np.argsort(-chances, kind="stable")[:max_tokens]  # stable: no token before the one it follows
        owners, places = owners[likeliest], places[likeliest]
        gained = num_sequences + np.cumsum(chances[likeliest])
        takes_time = np.array([offer.takes_time for offer in offers])[owners]
        num_checked, num_graphs = _shapes(np.array(slots, np.int32), owners)
        seconds = self._costs.seconds(num_checked, num_graphs)
        plain = num_sequences / float(seconds[0])
        speeds = gained / (seconds[1:] + self._drafting_seconds(places * takes_time))
        if not len(speeds) or speeds.max() <= MIN_GAIN * plain:
            return DraftPlan(np.zeros(num_sequences, np.int64), plain)
        best = int(speeds.argmax())
        return DraftPlan(np.bincount(owners[: best + 1], minlength=num_sequences), float(speeds[best]))

    def _drafting_seconds(self, places: NDArray[np.int64]) -> NDArray[np.float64]:
        """Of drafting the first token of these, the first two, and so on. places: in their drafts; 0 costs nothing."""
        if not places.any():
            return np.zeros(len(places))
        widths = (places[:, None] == np.arange(1, places.max() + 1)).cumsum(axis=0)
        seconds = np.append(0.0, self._drafting_costs.seconds(np.arange(1, widths.max() + 1)))
        total: NDArray[np.float64] = seconds[widths].sum(axis=1)
        return total


def _shapes(slots: NDArray[np.int32], owners: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Tokens and graphs of the step that checks no drafted token, the first one, the first two, and so on.

    owners: of the drafted tokens, as places in slots.
    """
    lengths = np.ones((len(owners) + 1, len(slots)), np.int64)
    lengths[1:] += (owners[:, None] == np.arange(len(slots))).cumsum(axis=0)
    by_slot = np.argsort(slots)
    return lengths.sum(axis=1), count_graphs(slots[by_slot], lengths[:, by_slot])
