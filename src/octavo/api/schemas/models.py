"""GET /v1/models and /v1/models/{id}."""

from typing import Literal

from octavo.api.schemas.common import WireResponse


class ModelCard(WireResponse):
    """A served model or adapter.

    context_length: tokens that prompt and answer may have together; null until the model has been ready once.
    parent: the model of an adapter; null for a model.
    """

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: Literal["octavo"] = "octavo"
    context_length: int | None
    parent: str | None


class ModelList(WireResponse):
    object: Literal["list"] = "list"
    data: list[ModelCard]
