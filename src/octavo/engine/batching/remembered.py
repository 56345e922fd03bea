"""What is kept as long as there is room."""

from collections import OrderedDict
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Remembered(Generic[K, V]):
    """Values by keys, which weigh at most so much together; what was used last is forgotten last, and never alone."""

    def __init__(self, max_weight: int) -> None:
        self._max_weight = max_weight
        self._weight = 0
        self._values: OrderedDict[K, tuple[V, int]] = OrderedDict()

    def get(self, key: K) -> V | None:
        if key not in self._values:
            return None
        self._values.move_to_end(key)
        return self._values[key][0]

    def keep(self, key: K, value: V, weight: int) -> None:
        """In place of what is kept under the key."""
        self._weight -= self._values.pop(key, (value, 0))[1]
        self._values[key] = (value, weight)
        self._weight += weight
        while self._weight > self._max_weight and len(self._values) > 1:
            _, (_, oldest) = self._values.popitem(last=False)
            self._weight -= oldest
