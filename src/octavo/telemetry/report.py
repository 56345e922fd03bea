"""What is told of a request when it is over."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

Parameter = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Phases:
    """Seconds from a request's arrival; None for what did not happen.

    admitted: to the engine's queue. computed: from when on a slot was at work. first_token, ended: of its generation.
    """

    admitted: float | None = None
    computed: float | None = None
    first_token: float | None = None
    ended: float | None = None


@dataclass(frozen=True, slots=True)
class RequestReport:
    """Never what was in it: no prompt, no answer, no key, no user by name. Empty is what does not apply.

    id: as in the x-request-id header. endpoint: the route's path. started: Unix time in seconds. seconds: it took.
    key_id: public. user: a hash. model: as served; requested_model: as asked for. answer_id: of the answer's body.
    parameters: of the generation, by the wire's names. error_code: of the error that was answered.
    trace_context: the headers by which it belongs to a trace. server: host and port that were called.
    """

    id: str
    method: str
    endpoint: str
    status: int
    started: float
    seconds: float
    key_id: str = ""
    user: str = ""
    model: str = ""
    requested_model: str = ""
    answer_id: str = ""
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    prompt_tokens: int = 0
    generated_tokens: int = 0
    cached_tokens: int = 0
    phases: Phases = Phases()
    finish_reasons: Sequence[str] = ()
    ignored_fields: Sequence[str] = ()
    error_code: str = ""
    trace_context: Mapping[str, str] = field(default_factory=dict)
    server: tuple[str, int] | None = None

    @property
    def queue_seconds(self) -> float | None:
        """From the admission to the slot of the choice that had a token first."""
        phases = self.phases
        return None if phases.computed is None or phases.admitted is None else phases.computed - phases.admitted


Trace = Callable[[RequestReport], str]
"""Tells the trace that a request belongs to of it; gives the trace's id, empty where it is not traced."""


def no_trace(_: RequestReport) -> str:
    return ""
