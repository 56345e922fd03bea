"""How far a job has come."""

from dataclasses import dataclass


@dataclass(slots=True)
class JobProgress:
    """Times are of `time.perf_counter`, None until then.

    admitted: to the engine's queue. first_token: of any choice. ended: whatever ended it.
    queue_seconds: of the choice that had the first token.
    num_cached: prompt tokens found computed, known when it has ended.
    """

    admitted: float | None = None
    first_token: float | None = None
    ended: float | None = None
    queue_seconds: float | None = None
    num_cached: int = 0

    @property
    def computed(self) -> float | None:
        """From when on a slot was at work."""
        if self.admitted is None or self.queue_seconds is None:
            return None
        return self.admitted + self.queue_seconds
