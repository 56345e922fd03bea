"""Served models and adapters by name, admission, and the fan-out of a request into its choices."""

from octavo.service.adapter_files import AdapterFiles, AdapterFolder, no_folder
from octavo.service.adapter_hub import AdapterHub
from octavo.service.adapter_loader import AdapterLoader, AdapterOrder
from octavo.service.generation import GenerationService
from octavo.service.image_hosts import ImageHosts
from octavo.service.image_source import ImageLink, ImageSource
from octavo.service.job import GenerationJob, sample_seed
from octavo.service.models import ServedModel
from octavo.service.progress import JobProgress
from octavo.service.rate_limits import LimitState, RateLimiter
from octavo.service.registry import ModelRegistry
from octavo.service.served_adapter import ServedAdapter

__all__ = [
    "AdapterFiles",
    "AdapterFolder",
    "AdapterHub",
    "AdapterLoader",
    "AdapterOrder",
    "GenerationJob",
    "GenerationService",
    "ImageHosts",
    "ImageLink",
    "ImageSource",
    "JobProgress",
    "LimitState",
    "ModelRegistry",
    "RateLimiter",
    "ServedAdapter",
    "ServedModel",
    "no_folder",
    "sample_seed",
]
