"""What the routes work with."""

from dataclasses import dataclass

from octavo.constraints import GrammarMaker
from octavo.core.limits import Limits
from octavo.service import AdapterLoader, GenerationService, ImageSource, ModelRegistry
from octavo.telemetry.metrics import Metrics


@dataclass(frozen=True, slots=True)
class ApiContext:
    """is_strict: fields that no document names are errors."""

    models: ModelRegistry
    adapters: AdapterLoader
    service: GenerationService
    images: ImageSource
    metrics: Metrics
    limits: Limits
    grammars: GrammarMaker
    is_strict: bool
