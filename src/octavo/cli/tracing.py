"""Traces of `octavo serve`, where the environment asks for them."""

from contextlib import ExitStack

from octavo.config import wants_traces
from octavo.errors import ConfigError
from octavo.telemetry import Trace, no_trace


def open_traces(closing: ExitStack) -> Trace:
    """What tells of requests; ended with `closing`, which may take some seconds. Raises ConfigError."""
    if not wants_traces():
        return no_trace
    from octavo.telemetry.traces import Traces  # its libraries are of use to nobody else

    try:
        traces = Traces.to_receiver()
    except ValueError as error:
        raise ConfigError(f"OpenTelemetry's variables (OTEL_…): {error}") from error
    closing.callback(traces.close)
    return traces.tell
