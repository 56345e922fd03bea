"""What the routes work with."""

from dataclasses import dataclass

from octavo.core.limits import Limits
from octavo.service import GenerationService, ModelRegistry
from octavo.telemetry import Metrics


@dataclass(frozen=True, slots=True)
class ApiContext:
    """is_strict: fields that no document names are errors."""

    models: ModelRegistry
    service: GenerationService
    metrics: Metrics
    limits: Limits
    is_strict: bool
