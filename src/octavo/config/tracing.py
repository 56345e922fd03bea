"""Whether traces are sent: OpenTelemetry's own variables say so, as for any program that knows it."""

import os

from octavo.errors import ConfigError

_DISABLED = "OTEL_SDK_DISABLED"
_EXPORTERS = "OTEL_TRACES_EXPORTER"
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_PROTOCOL = "http/protobuf"


def wants_traces() -> bool:
    """Whether an endpoint or an exporter is named. Everything else of these variables is OpenTelemetry's to read.

    Raises ConfigError for an exporter or a protocol that is not there.
    """
    if _variable(_DISABLED).lower() == "true":
        return False
    exporter = _variable(_EXPORTERS) or ("otlp" if any(map(_variable, _ENDPOINTS)) else "none")
    if exporter not in ("otlp", "none"):
        raise ConfigError(f"{_EXPORTERS} {exporter!r}: must be otlp or none.")
    if exporter == "otlp":
        _check_protocol()
    return exporter == "otlp"


def _check_protocol() -> None:
    for name in _PROTOCOLS:
        if _variable(name) not in ("", _PROTOCOL):
            raise ConfigError(f"{name} {_variable(name)!r}: traces are sent by {_PROTOCOL} only.")


def _variable(name: str) -> str:
    return os.environ.get(name, "").strip()
