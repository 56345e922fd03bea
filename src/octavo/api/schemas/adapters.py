"""/v1/adapters."""

from typing import Literal

from pydantic import ConfigDict, Field

from octavo.api.schemas.common import WireRequest, WireResponse
from octavo.service.names import ADAPTER_ID, MAX_ADAPTER_ID

MAX_SCALE = 100


class AdapterRequest(WireRequest):
    model_config = ConfigDict(json_schema_extra={"examples": [{"id": "pirate", "path": "pirate.gguf"}]})

    id: str = Field(
        max_length=MAX_ADAPTER_ID, pattern=ADAPTER_ID, description="Name under which the adapter is to be served."
    )
    path: str = Field(
        description="A .gguf file in the server's folder of adapters, or hf:owner/repository[:FILE.gguf]."
    )
    scale: float | None = Field(
        None, ge=-MAX_SCALE, le=MAX_SCALE, description="Beside the scale in the file; default 1."
    )
    model: str | None = Field(None, description="The model that it changes; default the first one.")


class AdapterCard(WireResponse):
    """model: the one that it changes. created: when it was loaded. num_running: requests that use it now."""

    id: str
    object: Literal["adapter"] = "adapter"
    model: str
    scale: float
    created: int
    num_running: int


class AdapterList(WireResponse):
    object: Literal["list"] = "list"
    data: list[AdapterCard]


class AdapterDeletion(WireResponse):
    id: str
    object: Literal["adapter"] = "adapter"
    deleted: Literal[True] = True
