"""What is drafted for a step, and by whom."""

from collections.abc import Iterable
from collections.abc import Sequence as Sequence_
from dataclasses import dataclass
from typing import Protocol

from octavo.engine.batching.costly_drafter import CostlyDrafter
from octavo.engine.batching.draft_model import DraftModel
from octavo.engine.batching.draft_plan import DraftPlan, DraftPlanner, Offer
from octavo.engine.batching.drafts import NO_TOKENS, Drafter
from octavo.engine.batching.radix_tree import Tokens
from octavo.engine.batching.sequence import Sequence
from octavo.engine.batching.step_costs import FREE_STEPS, StepCosts
from octavo.engine.batching.track_record import TrackRecord

MAX_DRAFT = 16


class Drafting(Protocol):
    def drafts(self, decoding: Sequence_[Sequence], max_tokens: int) -> list[Tokens]:
        """What to check for each of the sequences beside the token that it misses; together at most so many."""
        ...

    def close(self) -> None:
        """Free what drafts, where it holds more than memory of Python's."""
        ...


class NoDrafting:
    def drafts(self, decoding: Sequence_[Sequence], max_tokens: int) -> list[Tokens]:
        return [NO_TOKENS] * len(decoding)

    def close(self) -> None:
        pass


NO_DRAFTING: Drafting = NoDrafting()


class Speculation:
    """Drafts while the tokens they promise are worth the time that drafting and checking them takes."""

    def __init__(self, drafters: Iterable[Drafter], costs: StepCosts, model: DraftModel | None = None) -> None:
        """drafters: each is asked about those of whom the ones before it know nothing.

        costs: of the steps that check. model: drafts where that promises more than what the drafters know.
        """
        self._drafters = [_FreeDrafter(drafter) for drafter in drafters]
        self._model = CostlyDrafter(model) if model is not None else None
        self._planner = DraftPlanner(costs, model.costs if model is not None else FREE_STEPS)

    def drafts(self, decoding: Sequence_[Sequence], max_tokens: int) -> list[Tokens]:
        known = self._known(decoding)
        slots = list(map(_slot, decoding))
        plan = self._planner.plan([proposal.offer for proposal in known], slots, max_tokens)
        if self._model is None:
            return _cut(known, plan)
        offers = self._offers(self._model, decoding, known)
        assisted = self._planner.plan(offers, slots, max_tokens)
        if assisted.speed <= plan.speed:
            return _cut(known, plan)
        drafts = _cut(known, assisted)
        asked = [i for i, offer in enumerate(offers) if offer.takes_time and assisted.lengths[i]]
        drafted = self._model.propose([decoding[i] for i in asked], assisted.lengths[asked].tolist())
        for i, tokens in zip(asked, drafted, strict=True):
            drafts[i] = tokens if len(tokens) else drafts[i]
        return drafts

    def close(self) -> None:
        if self._model is not None:
            self._model.close()

    def _known(self, decoding: Sequence_[Sequence]) -> list["_Proposal"]:
        """What the drafters say of each."""
        known: dict[str, _Proposal] = {}
        for drafter in self._drafters:
            drafter.judge(decoding)
            others = [sequence for sequence in decoding if sequence.id not in known]
            known |= drafter.propose(others)
        return [known.get(sequence.id, NO_PROPOSAL) for sequence in decoding]

    def _offers(
        self, model: CostlyDrafter, decoding: Sequence_[Sequence], known: Sequence_["_Proposal"]
    ) -> list[Offer]:
        """What is known, or the model's, for whom that is likelier right."""
        model.judge(decoding)
        pairs = [
            (proposal.offer, model.offer(sequence, _max_length(sequence)))
            for sequence, proposal in zip(decoding, known, strict=True)
        ]
        return [max(pair, key=lambda offer: offer.chance) for pair in pairs]


@dataclass(frozen=True, slots=True, eq=False)
class _Proposal:
    """tokens: known to a drafter. rate: how often a token of that drafter was right in the sequence."""

    tokens: Tokens
    rate: float

    @property
    def offer(self) -> Offer:
        return Offer(self.rate, len(self.tokens))


NO_PROPOSAL = _Proposal(NO_TOKENS, 0.0)


class _FreeDrafter:
    """A drafter that is asked about everybody: a bad guesser costs nothing, and is heard again when it has become a
    good one."""

    def __init__(self, drafter: Drafter) -> None:
        self._drafter = drafter
        self._record = TrackRecord(drafter.first_rate)

    def judge(self, decoding: Sequence_[Sequence]) -> None:
        self._record.judge(decoding)

    def propose(self, sequences: Sequence_[Sequence]) -> dict[str, _Proposal]:
        """For those of whom it knows something, by id."""
        drafts = self._drafter.propose(sequences, list(map(_max_length, sequences)))
        known = [(each, tokens) for each, tokens in zip(sequences, drafts, strict=True) if len(tokens)]
        for sequence, tokens in known:
            self._record.note(sequence, tokens)
        return {each.id: _Proposal(tokens, self._record.rate(each)) for each, tokens in known}


def _slot(sequence: Sequence) -> int:
    assert sequence.slot is not None, "who decodes has one"
    return sequence.slot


def _max_length(sequence: Sequence) -> int:
    return max(min(MAX_DRAFT, sequence.max_draft), 0)


def _cut(known: Sequence_[_Proposal], plan: DraftPlan) -> list[Tokens]:
    return [proposal.tokens[:length] for proposal, length in zip(known, plan.lengths, strict=True)]
