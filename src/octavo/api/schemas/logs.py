"""GET /v1/logs and /v1/logs/{id}."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from octavo.api.schemas.common import UsageStats, WireRequest, WireResponse

MAX_ROWS = 1000

Name = Annotated[str, Field(max_length=1000, pattern=r"^[^\x00]*$")]


class LogListRequest(WireRequest):
    """The query. A parameter that is not listed is refused: with a filter left out there are more rows than were asked
    for."""

    model_config = ConfigDict(strict=False, extra="forbid")

    limit: int = Field(50, ge=1, le=MAX_ROWS, description="Most rows to give, the newest first.")
    before: Name = Field("", description="Id of a row: only older ones.")
    key: Name = Field("", description="Id of the key that was used.")
    user: Name = Field("", description="The end user that the request names.")
    model: Name = Field("", description="The model or adapter that answered.")
    since: float | None = Field(None, description="Unix time in seconds: only rows from then on.")
    until: float | None = Field(None, description="Unix time in seconds: only rows before then.")


class LogRow(WireResponse):
    """A request with log_prompt.

    created: Unix time in seconds, when it arrived. status: HTTP's, or 499 where the client went away.
    prompts: the texts that the model was given. answer: the whole body, streamed or not; of an answer that was broken
    off what had come, with the `error` that ended it. seconds_to_first_token: null where no token came.
    """

    object: Literal["log_entry"]
    id: str
    request_id: str
    created: float
    key_id: str
    user: str
    endpoint: str
    model: str
    status: int
    request: dict[str, Any]
    prompts: list[str]
    answer: dict[str, Any]
    finish_reasons: list[str]
    usage: UsageStats
    seconds: float
    seconds_to_first_token: float | None


class LogList(WireResponse):
    """has_more: whether there are older rows; ask for those before the last one."""

    object: Literal["list"]
    data: list[LogRow]
    has_more: bool
