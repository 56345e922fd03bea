"""What an operator sees: Prometheus metrics and the log."""

from octavo.telemetry.logging import configure_logging, log_request
from octavo.telemetry.metrics import Metrics

__all__ = ["Metrics", "configure_logging", "log_request"]
