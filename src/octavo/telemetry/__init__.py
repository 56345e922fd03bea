"""What an operator sees: Prometheus metrics, traces and the log.

`metrics` and `traces` are imported by themselves: what logs does not need their libraries.
"""

from octavo.telemetry.logging import configure_logging, log_request
from octavo.telemetry.report import Phases, RequestReport, Trace, no_trace

__all__ = ["Phases", "RequestReport", "Trace", "configure_logging", "log_request", "no_trace"]
