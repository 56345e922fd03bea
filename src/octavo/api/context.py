"""What the routes work with."""

from concurrent.futures import Executor
from dataclasses import dataclass

from octavo.constraints import GrammarMaker
from octavo.core.limits import Limits
from octavo.service import AdapterLoader, GenerationService, ImageSource, ModelRegistry
from octavo.store.prompt_log import PromptLog
from octavo.telemetry.metrics import Metrics


@dataclass(frozen=True, slots=True)
class ApiContext:
    """prompt_log: None where there is none. is_strict: fields that no document names are errors.
    body_thread: where large bodies are read, one at a time: as objects they take many times their size.
    """

    models: ModelRegistry
    adapters: AdapterLoader
    service: GenerationService
    images: ImageSource
    metrics: Metrics
    limits: Limits
    grammars: GrammarMaker
    prompt_log: PromptLog | None
    is_strict: bool
    body_thread: Executor
