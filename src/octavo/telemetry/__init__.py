"""What an operator sees: Prometheus metrics and the log.

`metrics` is imported by itself: what logs does not need Prometheus' library.
"""

from octavo.telemetry.logging import configure_logging, log_request

__all__ = ["configure_logging", "log_request"]
