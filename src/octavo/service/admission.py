"""Who may join the queue."""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from octavo.core.fair_queue import Owner
from octavo.core.limits import Limits
from octavo.errors import Overloaded
from octavo.service.models import ServedModel
from octavo.service.places import Places


class Admission:
    """Keeps each model's queue within its limit; requests with an adapter wait in the queue of its model.

    A job takes as many places as it has choices, but no more than there are slots. It is refused when the queue is
    full, not when it would overfill it.

    So that nobody who fills the queue keeps others out, a full one still takes what is within its key's share of slots
    and queue, an equal part for each key that is there, or within its user's equal part of that. Users are names that
    a key may invent, so a key has never more than twice its share by them. There are never more than four times as
    many places, but for a job that takes several.
    """

    def __init__(self, limits: Limits) -> None:
        self._max_queue_per_slot = limits.max_queue_per_slot
        self._in_flight: defaultdict[str, Places] = defaultdict(Places)
        self._preparing: defaultdict[str, Places] = defaultdict(Places)

    @contextmanager
    def preparing(self, model: ServedModel, owner: Owner) -> Iterator[None]:
        """As long as the block runs, a request is made ready whose parts take memory before it is a job.

        As many of these as may wait in the queue, and at least one for each slot, are shared like the places there.
        Raises Overloaded, also where the queue is full already, and EngineUnavailable.
        """
        base = model.base
        self._refuse_if_full(base, owner)
        self._refuse_if_many_prepare(base, owner)
        places = self._preparing[base.id]
        places.take(owner, 1)
        try:
            yield
        finally:
            places.give_back(owner, 1)

    @contextmanager
    def admit(self, model: ServedModel, owner: Owner, num_choices: int) -> "Iterator[Ticket]":
        """Places until its choices have left or the block ends. Raises Overloaded or EngineUnavailable."""
        self._refuse_if_full(model.base, owner)
        ticket = Ticket(self._in_flight[model.base.id], owner, num_choices, max_places=model.info.num_slots)
        try:
            yield ticket
        finally:
            ticket.leave_all()

    def _refuse_if_full(self, model: ServedModel, owner: Owner) -> None:
        num_slots, in_flight = model.info.num_slots, self._in_flight[model.id]
        max_waiting = self._max_queue_per_slot * num_slots
        # The engine's own count lags behind choices that were just handed to it, ours misses other users of the engine.
        num_waiting = max(model.engine.health().num_waiting, in_flight.num_taken - num_slots)
        num_taken = num_slots + num_waiting if num_waiting else in_flight.num_taken
        if not in_flight.has_one_for(owner, num_slots + max_waiting, num_taken):
            raise Overloaded(
                f"The queue of model {model.id!r} is full: {num_waiting} sequences wait, at most {max_waiting} may.",
                retry_after=max(1, num_waiting // num_slots),  # a second for each time that all slots must change hands
            )

    def _refuse_if_many_prepare(self, model: ServedModel, owner: Owner) -> None:
        preparing = self._preparing[model.id]
        num_places = max(1, self._max_queue_per_slot) * model.info.num_slots
        if not preparing.has_one_for(owner, num_places, preparing.num_taken):
            raise Overloaded(
                f"The images of {preparing.num_taken} requests to model {model.id!r} are being got; no more may be "
                "at a time."
            )


class Ticket:
    """The places of one job: num_places of them, fewer once fewer choices are left."""

    def __init__(self, places: Places, owner: Owner, num_choices: int, *, max_places: int) -> None:
        self._places = places
        self._owner = owner
        self._num_choices = num_choices
        self.num_places = min(num_choices, max_places)
        places.take(owner, self.num_places)

    def leave(self) -> None:
        """One choice has ended."""
        self._num_choices -= 1
        self._give_back(self.num_places - min(self.num_places, self._num_choices))

    def leave_all(self) -> None:
        self._give_back(self.num_places)

    def _give_back(self, num_places: int) -> None:
        if num_places:
            self.num_places -= num_places
            self._places.give_back(self._owner, num_places)
