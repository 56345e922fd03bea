"""Who may join the queue."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from octavo.core.limits import Limits
from octavo.errors import Overloaded
from octavo.service.models import ServedModel


class Admission:
    """Keeps each model's queue within its limit.

    A job is refused when the queue is full, not when it would overfill it: a job with more choices than the whole
    queue must be able to get in at some time.
    """

    def __init__(self, limits: Limits) -> None:
        self._max_queue_per_slot = limits.max_queue_per_slot
        self._num_in_flight: Counter[str] = Counter()

    @contextmanager
    def admit(self, model: ServedModel, num_choices: int) -> "Iterator[Ticket]":
        """A place for each choice, until it leaves or the block ends. Raises Overloaded or EngineUnavailable."""
        self._refuse_if_full(model)
        ticket = Ticket(self._num_in_flight, model.id, num_choices)
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
    """The places of one job's choices."""

    def __init__(self, num_in_flight: Counter[str], model: str, num_choices: int) -> None:
        self._num_in_flight = num_in_flight
        self._model = model
        self._num_choices = num_choices
        num_in_flight[model] += num_choices

    def leave(self) -> None:
        """One choice has ended."""
        self._give_back(1)

    def leave_all(self) -> None:
        self._give_back(self._num_choices)

    def _give_back(self, num_choices: int) -> None:
        self._num_choices -= num_choices
        self._num_in_flight[self._model] -= num_choices
