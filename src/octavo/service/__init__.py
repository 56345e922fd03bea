"""Served models by name, admission, and the fan-out of a request into its choices."""

from octavo.service.generation import GenerationService
from octavo.service.job import GenerationJob, sample_seed
from octavo.service.models import ModelRegistry, ServedModel

__all__ = ["GenerationJob", "GenerationService", "ModelRegistry", "ServedModel", "sample_seed"]
