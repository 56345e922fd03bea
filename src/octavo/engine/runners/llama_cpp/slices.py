"""One long computation, interrupted for many short ones."""

from collections.abc import Callable
from time import perf_counter
from typing import TypeVar

from octavo.engine.batching.vision import Pause
from octavo.errors import EngineError

NODES_PER_STOP = 2
"""Of an encoder's graph; a layer has some thirty. What it computes between two stops cannot be interrupted."""
SLICE = 0.1
"""Seconds of the long computation until others have a turn."""

T = TypeVar("T")


class Slices:
    """Stops a graph's computation every few nodes, in the thread that computes it, and lets others compute when it has
    taken a while. So all threads work for one of them at a time, where two teams would wait for each other."""

    def __init__(self) -> None:
        self._pause: Pause = lambda: True
        self._num_nodes = 0
        self._started = 0.0
        self._error: BaseException | None = None
        self._is_wanted = True

    def run(self, compute: Callable[[], T], pause: Pause) -> T:
        """What `compute` gives, which calls `on_node` meanwhile. Raises what `pause` raises, and EngineError where it
        said that the result is not wanted any more."""
        self._pause, self._error, self._is_wanted = pause, None, True
        self._started = perf_counter()
        try:
            result = compute()
        finally:
            if self._error is not None:
                raise self._error
        if not self._is_wanted:
            raise EngineError("Nobody waits for this image any more.")
        return result

    def on_node(self, asks: bool) -> bool:
        if asks:
            self._num_nodes += 1
            return self._num_nodes % NODES_PER_STOP == 0
        if perf_counter() - self._started >= SLICE:
            self._interrupt()
        return self._is_wanted

    def _interrupt(self) -> None:
        try:
            self._is_wanted = self._pause()
        except BaseException as error:  # nothing may be raised through the library that calls this
            self._error, self._is_wanted = error, False
        self._started = perf_counter()
