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

MAX_DEBT = 2
"""Minutes' worth of tokens; what a key uses beyond that is forgiven."""

_MOST = 2**53
"""Floats know every number up to it, and no limit needs to be more."""

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

    Requests and tokens are given back continuously, a minute's worth in a minute. A prompt is paid for before it is
    computed and must fit in what is left, unless nothing is used. Tokens of answers are paid for as they come: what
    runs may end, and a debt is bounded. How much can run at the same time is the limit on concurrent requests.
    """

    def __init__(self, metrics: Metrics, clock: Callable[[], float] = monotonic) -> None:
        """clock: seconds."""
        self._metrics = metrics
        self._clock = clock
        self._uses: dict[str, _Use] = {}
        self._num_kept = 0  # when those that are over were last forgotten

    @contextmanager
    def request(self, caller: Caller) -> Iterator[None]:
        """The block in which a request is answered. Raises RateLimited before it begins, and then nothing is used."""
        use = self._use(caller)
        use.set_limits(caller.limits)  # which may have been changed
        self._refuse([*use.refusals()])
        use.requests.take(1)
        use.num_running += 1
        try:
            yield
        finally:
            use.num_running -= 1

    def prompt(self, caller: Caller, num_tokens: int) -> None:
        """The caller is about to use a prompt's tokens. Raises RateLimited where they do not fit, and takes none."""
        if caller.limits.tokens is not None:
            tokens = self._use(caller).tokens
            self._refuse([*tokens.refusals(num_tokens)])
            tokens.take(num_tokens)

    def charge(self, caller: Caller, num_tokens: int) -> None:
        """The caller has used so many tokens of an answer."""
        if caller.limits.tokens is not None:
            self._use(caller).tokens.take(num_tokens)

    def states(self, caller: Caller) -> Sequence[LimitState]:
        """The limits on what the caller uses in a minute, those that it has."""
        use = self._use(caller)
        return [state for bucket in (use.requests, use.tokens) if (state := bucket.state)]

    def _refuse(self, refusals: "Sequence[_Refusal]") -> None:
        """Where there are any, for the one that lasts longest."""
        if refusals:
            longest = max(refusals, key=lambda refusal: refusal.seconds)
            with contained():
                self._metrics.count_rate_limited(longest.name)
            raise RateLimited(longest.message, retry_after=longest.seconds)

    def _use(self, caller: Caller) -> "_Use":
        """As it is now."""
        now = self._clock()
        if caller.key_id not in self._uses:
            if len(self._uses) > 2 * self._num_kept:
                self._forget_unused(now)
            self._uses[caller.key_id] = _Use(caller.limits, now)
        use = self._uses[caller.key_id]
        use.give_back(now)
        return use

    def _forget_unused(self, now: float) -> None:
        for use in self._uses.values():
            use.give_back(now)
        self._uses = {key_id: use for key_id, use in self._uses.items() if not use.is_over}
        self._num_kept = len(self._uses)


@dataclass(frozen=True, slots=True)
class _Refusal:
    """name: of the limit. seconds: until it would not be refused."""

    name: str
    message: str
    seconds: float


class _Bucket:
    """What may be used in a minute, told by what is missing in it: more than the limit is a debt. No limit: None."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._limit: int | None = None
        self.used = 0.0

    def set_limit(self, limit: int | None) -> None:
        self._limit = None if limit is None else min(limit, _MOST)

    def take(self, number: int) -> None:
        if self._limit is not None:
            self.used = min(self.used + number, (1 + MAX_DEBT) * self._limit)

    def give_back(self, minutes: float) -> None:
        self.used = 0.0 if self._limit is None else max(0.0, self.used - minutes * self._limit)

    @property
    def state(self) -> LimitState | None:
        if self._limit is None:
            return None
        remaining = max(0, floor(self._limit - self.used + _NO_TIME))
        return LimitState(self._name, self._limit, remaining, reset=self.used * MINUTE / self._limit)

    def refusals(self, number: int = 1) -> Iterator[_Refusal]:
        """Why so many cannot be taken now, where they cannot; more than the limit can be when none is missing."""
        if (state := self.state) is None:
            return
        seconds = state.reset - max(0, state.limit - number) * MINUTE / state.limit
        if seconds > _NO_TIME:
            yield _Refusal(self._name, f"This key may use {state.limit} {self._name} a minute; try later.", seconds)


class _Use:
    """What a key has used and not got back by a time, and how many of its requests are answered."""

    def __init__(self, limits: KeyLimits, now: float) -> None:
        self.requests = _Bucket("requests")
        self.tokens = _Bucket("tokens")
        self.num_running = 0
        self._now = now
        self.set_limits(limits)

    def set_limits(self, limits: KeyLimits) -> None:
        self.requests.set_limit(limits.requests)
        self.tokens.set_limit(limits.tokens)
        self._max_running = limits.concurrent

    @property
    def is_over(self) -> bool:
        return not (self.requests.used or self.tokens.used or self.num_running)

    def give_back(self, now: float) -> None:
        minutes, self._now = (now - self._now) / MINUTE, now
        self.requests.give_back(minutes)
        self.tokens.give_back(minutes)

    def refusals(self) -> Iterator[_Refusal]:
        """Why another request must wait."""
        yield from self.requests.refusals()
        yield from self.tokens.refusals()
        if self._max_running is not None and self.num_running >= self._max_running:
            message = f"This key may have {self._max_running} requests answered at a time, and has as many."
            yield _Refusal("concurrent", message, 1.0)
