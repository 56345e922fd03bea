"""openapi.json: the schemas of bodies that the routes read and check themselves."""

from collections.abc import Callable
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from octavo.api.schemas.adapters import AdapterRequest
from octavo.api.schemas.chat import ChatCompletionChunk, ChatCompletionRequest
from octavo.api.schemas.completions import CompletionRequest
from octavo.api.schemas.errors import ErrorResponse
from octavo.api.schemas.tokenize import DetokenizeRequest, TokenizeRequest

OpenApi = dict[str, Any]
Responses = dict[int | str, dict[str, Any]]

BODY_ERRORS = (413, 415, 422)

_REF = "#/components/schemas/{model}"
_UNREFERENCED = (
    CompletionRequest,
    ChatCompletionRequest,
    ChatCompletionChunk,
    AdapterRequest,
    TokenizeRequest,
    DetokenizeRequest,
)


def documented(schema: type[BaseModel]) -> OpenApi:
    """What a route says about its body."""
    return {"requestBody": {"required": True, "content": _content("application/json", schema)}}


def error_responses(*statuses: int) -> Responses:
    return {status: {"model": ErrorResponse} for status in statuses}


def generation_responses(answer: type[BaseModel], chunk: type[BaseModel]) -> Responses:
    """A whole answer, or events where stream is true."""
    events = _content("text/event-stream", chunk)
    return {
        200: {"model": answer, "content": events, "description": "The answer, or its chunks with stream: true."},
        **error_responses(400, 404, *BODY_ERRORS, 500, 503),
    }


def openapi_of(app: FastAPI) -> Callable[[], OpenApi]:
    """The document, made once."""
    made: list[OpenApi] = []

    def openapi() -> OpenApi:
        if not made:
            made.append(_document(app))
        return made[0]

    return openapi


def _document(app: FastAPI) -> OpenApi:
    document = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
    _, definitions = models_json_schema([(schema, "validation") for schema in _UNREFERENCED], ref_template=_REF)
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    for name, schema in definitions["$defs"].items():
        schemas.setdefault(name, schema)
    return document


def _content(media_type: str, schema: type[BaseModel]) -> OpenApi:
    return {media_type: {"schema": {"$ref": _REF.format(model=schema.__name__)}}}
