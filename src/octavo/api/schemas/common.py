"""What all wire types share."""

from typing import Any

from pydantic import BaseModel, ConfigDict

MAX_INT = 2**63 - 1
MIN_INT = -(2**63)

WireData = dict[str, Any]
"""Plain data in the shape of a WireResponse."""


class WireRequest(BaseModel):
    """Strict: no value is turned into another type. Fields that no document names are kept apart in model_extra."""

    model_config = ConfigDict(strict=True, extra="allow", allow_inf_nan=False, frozen=True, protected_namespaces=())


class WireResponse(BaseModel):
    model_config = ConfigDict(extra="forbid", protected_namespaces=())


class PromptTokensDetails(WireResponse):
    cached_tokens: int


class UsageStats(WireResponse):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptTokensDetails
