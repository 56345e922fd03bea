"""What keys may use in a minute, and how many requests of theirs are answered at the same time."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import floor
from time import monotonic

from octavo.core.caller import Caller, KeyLimits
from octavo.errors import RateLimited
from octavo.telemetry.contained import contained
from octavo.telemetry.metrics import Metrics

MINUTE = 60.0

_NO_TIME = 1e-6
"""Seconds; shorter waits are rounding."""


@dataclass(frozen=True, slots=True)
class LimitState:
    """A limit of a key as it is now.

    name: requests or tokens. limit: in a minute. reset: seconds until as many remain.
    """

    name: str
    limit: int
    remaining: int
    reset: float


class RateLimiter:
    """Keeps each key within its own limits, and forgets those that have nothing to give back.

    Requests and tokens are given back continuously, a minute's worth in a minute. Tokens are paid for once they are
    known: who has none left may begin nothing more, and what runs may end.
    """

    def __init__(self, metrics: Metrics, clock: Callable[[], float] = monotonic) -> None:
        """clock: seconds."""
        self._metrics = metrics
        self._clock = clock
        self._uses: dict[str, _Use] = {}

    @contextmanager
    def request(self, caller: Caller) -> Iterator[None]:
        """The block in which a request is answered. Raises RateLimited before it begins, and then nothing is used."""
        use = self._use(caller)
        if refusals := [*use.refusals()]:
            longest = max(refusals, key=lambda refusal: refusal.seconds)
            with contained():
                self._metrics.count_rate_limited(longest.name)
            raise RateLimited(longest.message, retry_after=longest.seconds)
        use.num_requests += 1
        use.num_running += 1
        try:
            yield
        finally:
            use.num_running -= 1

    def charge(self, caller: Caller, num_tokens: int) -> None:
        """The caller has used so many tokens."""
        if caller.limits.tokens is not None:
            self._use(caller).num_tokens += num_tokens

    def states(self, caller: Caller) -> Sequence[LimitState]:
        """The limits on what the caller uses in a minute, those that it has."""
        return [*self._use(caller).states()]

    def _use(self, caller: Caller) -> "_Use":
        """As it is now."""
        now = self._clock()
        if caller.key_id not in self._uses:
            self._forget_unused(now)
            self._uses[caller.key_id] = _Use(caller.limits, now)
        use = self._uses[caller.key_id]
        use.give_back(now)
        use.limits = caller.limits  # which may have been changed
        return use

    def _forget_unused(self, now: float) -> None:
        for use in self._uses.values():
            use.give_back(now)
        self._uses = {key_id: use for key_id, use in self._uses.items() if not use.is_over}


@dataclass(frozen=True, slots=True)
class _Refusal:
    """name: of the limit. seconds: until it would not be refused."""

    name: str
    message: str
    seconds: float


@dataclass(slots=True)
class _Use:
    """What a key has used and not got back by `now`: a token bucket for each limit, told by what is missing in it.

    num_tokens may be more than the limit: that is a debt.
    """

    limits: KeyLimits
    now: float
    num_requests: float = 0.0
    num_tokens: float = 0.0
    num_running: int = 0

    @property
    def is_over(self) -> bool:
        return not (self.num_requests or self.num_tokens or self.num_running)

    def give_back(self, now: float) -> None:
        minutes, self.now = (now - self.now) / MINUTE, now
        self.num_requests = _left(self.num_requests, self.limits.requests, minutes)
        self.num_tokens = _left(self.num_tokens, self.limits.tokens, minutes)

    def states(self) -> Iterator[LimitState]:
        used = (("requests", self.limits.requests, self.num_requests), ("tokens", self.limits.tokens, self.num_tokens))
        for name, limit, number in used:
            if limit is not None:
                yield LimitState(name, limit, max(0, floor(limit - number + _NO_TIME)), reset=number * MINUTE / limit)

    def refusals(self) -> Iterator[_Refusal]:
        """Why another request must wait."""
        for state in self.states():
            seconds = state.reset - (state.limit - 1) * MINUTE / state.limit  # until there is one
            if seconds > _NO_TIME:
                yield _Refusal(state.name, f"This key may use {state.limit} {state.name} a minute; try later.", seconds)
        if self.limits.concurrent is not None and self.num_running >= self.limits.concurrent:
            message = f"This key may have {self.limits.concurrent} requests answered at a time, and has as many."
            yield _Refusal("concurrent", message, 1.0)


def _left(number: float, limit: int | None, minutes: float) -> float:
    return 0.0 if limit is None else max(0.0, number - minutes * limit)
