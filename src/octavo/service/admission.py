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
        self._num_preparing: Counter[str] = Counter()

    @contextmanager
    def preparing(self, model: ServedModel) -> Iterator[None]:
        """As long as the block runs, a request is made ready whose parts take memory before it is a job.

        There are at most as many of these at a time as may wait in the queue. Raises Overloaded, also where the queue
        is full already, and EngineUnavailable.
        """
        base = model.base
        self._refuse_if_full(base)
        self._refuse_if_many_prepare(base)
        self._num_preparing[base.id] += 1
        try:
            yield
        finally:
            self._num_preparing[base.id] -= 1

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
        num_slots, max_waiting = model.info.num_slots, self._max_waiting(model)
        # The engine's own count lags behind choices that were just handed to it, ours misses other users of the engine.
        num_waiting = max(model.engine.health().num_waiting, self._num_in_flight[model.id] - num_slots)
        if num_waiting >= max_waiting:
            raise Overloaded(
                f"The queue of model {model.id!r} is full: {num_waiting} sequences wait, at most {max_waiting} may.",
                retry_after=max(1, num_waiting // num_slots),  # a second for each time that all slots must change hands
            )

    def _refuse_if_many_prepare(self, model: ServedModel) -> None:
        max_preparing = self._max_waiting(model)
        if self._num_preparing[model.id] >= max_preparing:
            raise Overloaded(
                f"The images of {max_preparing} requests to model {model.id!r} are being got; no more may be at a time."
            )

    def _max_waiting(self, model: ServedModel) -> int:
        return self._max_queue_per_slot * model.info.num_slots


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
