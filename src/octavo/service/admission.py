"""Who may join the queue."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from octavo.core.limits import Limits
from octavo.errors import Overloaded
from octavo.service.models import ServedModel


class Admission:
    """Keeps each model's queue within its limit; requests with an adapter wait in the queue of its model.

    A job takes as many places as it has choices, but no more than there are slots. It is refused when the queue is
    full, not when it would overfill it.
    """

    def __init__(self, limits: Limits) -> None:
        self._max_queue_per_slot = limits.max_queue_per_slot
        self._num_in_flight: Counter[str] = Counter()

    @contextmanager
    def admit(self, model: ServedModel, num_choices: int) -> "Iterator[Ticket]":
        """Places until its choices have left or the block ends. Raises Overloaded or EngineUnavailable."""
        self._refuse_if_full(model.base)
        ticket = Ticket(self._num_in_flight, model.base.id, num_choices, max_places=model.info.num_slots)
        try:
            yield ticket
        finally:
            ticket.leave_all()

    def _refuse_if_full(self, model: ServedModel) -> None:
        num_slots = model.info.num_slots
        max_waiting = self._max_queue_per_slot * num_slots
        # The engine's own count lags behind choices that were just handed to it, ours misses other users of the engine.
        num_waiting = max(model.engine.health().num_waiting, self._num_in_flight[model.id] - num_slots)
        if num_waiting >= max_waiting:
            raise Overloaded(
                f"The queue of model {model.id!r} is full: {num_waiting} sequences wait, at most {max_waiting} may.",
                retry_after=max(1, num_waiting // num_slots),  # a second for each time that all slots must change hands
            )


class Ticket:
    """The places of one job: num_places of them, fewer once fewer choices are left."""

    def __init__(self, num_in_flight: Counter[str], model: str, num_choices: int, *, max_places: int) -> None:
        self._num_in_flight = num_in_flight
        self._model = model
        self._num_choices = num_choices
        self.num_places = min(num_choices, max_places)
        num_in_flight[model] += self.num_places

    def leave(self) -> None:
        """One choice has ended."""
        self._num_choices -= 1
        self._give_back(self.num_places - min(self.num_places, self._num_choices))

    def leave_all(self) -> None:
        self._give_back(self.num_places)

    def _give_back(self, num_places: int) -> None:
        self.num_places -= num_places
        self._num_in_flight[self._model] -= num_places
