"""Whether a child still works, by what it says."""

from octavo.engine.worker.ending import HUNG_STEP, SILENT, Ending

START_PATIENCE = 4
"""Until its first word a child is only starting Python, perhaps from a slow disk: it may take so many times longer."""


class Watchdog:
    """Counts for how long a child has said nothing, and for how long it has been at the same step.

    It has no clock: who listens tells how long it has listened (`wait`). So neither a machine that was suspended nor a
    parent that stood still blames the child for it.
    """

    def __init__(self, *, max_silence: float, max_step: float) -> None:
        """Both in seconds."""
        self._max_silence = max_silence
        self._max_step = max_step
        self._has_spoken = False
        self._silence = 0.0
        self._step = 0
        self._step_time = 0.0
        self._verdict: Ending | None = None

    @property
    def verdict(self) -> Ending | None:
        """Why the child must be replaced; None as long as it works."""
        return self._verdict

    def hear(self, step: int) -> bool:
        """The child lives. step: as in EngineHealth. Returns whether it is another one than the last time.

        Only here a step is found too long: what is heard twice has run for all the time between.
        """
        self._has_spoken, self._silence = True, 0.0
        is_other = step != self._step
        if is_other or not step:
            self._step, self._step_time = step, 0.0
        elif self._step_time >= self._max_step:
            self._verdict = Ending(
                HUNG_STEP, f"Its process was replaced: a step took longer than {self._max_step:g} s."
            )
        return is_other

    def wait(self, seconds: float) -> None:
        """So long it could have been heard, and was not."""
        self._silence += seconds
        self._step_time += seconds
        if self._silence >= self._max_silence * (1 if self._has_spoken else START_PATIENCE):
            self._verdict = Ending(SILENT, f"Its process was replaced: it said nothing for {self._silence:g} s.")
