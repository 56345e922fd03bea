"""GET /v1/models and /v1/models/{id}."""

from typing import Literal

from octavo.api.schemas.common import WireResponse


class ModelCard(WireResponse):
    """context_length: tokens that prompt and answer may have together; null until the model has been ready once."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: Literal["octavo"] = "octavo"
    context_length: int | None


class ModelList(WireResponse):
    object: Literal["list"] = "list"
    data: list[ModelCard]
