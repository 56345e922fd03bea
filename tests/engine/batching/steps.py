"""What steps cost, as tests would have it."""

import numpy as np

from octavo.engine.batching.step_costs import SIZES, FreeSteps, MeasuredSteps


class SteadySteps(FreeSteps):
    """Steps that take as long with many tokens and graphs as with one: every draft pays."""

    def __init__(self, seconds: float = 1.0) -> None:
        self._seconds = seconds

    def seconds(self, num_tokens: np.ndarray, num_graphs: np.ndarray | int = 1) -> np.ndarray:
        return np.full(len(num_tokens), self._seconds)


def rising_costs(per_token: float, first: float = 1.0) -> MeasuredSteps:
    """first: seconds of a step of one token. per_token: of each one more."""
    return MeasuredSteps(first + per_token * (SIZES - 1))
