"""openapi.json: the schemas of bodies that the routes read and check themselves."""

from collections.abc import Callable
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from octavo.api.openapi_bounds import add_bounds
from octavo.api.path import LIVENESS
from octavo.api.schemas.adapters import AdapterRequest
from octavo.api.schemas.chat import ChatCompletionChunk, ChatCompletionRequest
from octavo.api.schemas.completions import CompletionRequest
from octavo.api.schemas.errors import ErrorResponse
from octavo.api.schemas.tokenize import DetokenizeRequest, TokenizeRequest
from octavo.core.limits import Limits

OpenApi = dict[str, Any]
Responses = dict[int | str, dict[str, Any]]

BODY_ERRORS = (413, 415, 422, 429)

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


def documented_query(schema: type[BaseModel]) -> OpenApi:
    """What a route says about its query."""
    fields = schema.model_json_schema()["properties"]
    return {"parameters": [{"name": name, "in": "query", "schema": field} for name, field in fields.items()]}


def error_responses(*statuses: int) -> Responses:
    return {status: {"model": ErrorResponse} for status in statuses}


def generation_responses(answer: type[BaseModel], chunk: type[BaseModel]) -> Responses:
    """A whole answer, or events where stream is true."""
    return {
        200: {
            "model": answer,
            "content": _events(chunk),
            "description": "The answer, or its chunks with stream: true.",
        },
        **error_responses(400, 404, *BODY_ERRORS, 500, 503),
    }


def openapi_of(app: FastAPI, limits: Limits, *, needs_key: bool) -> Callable[[], OpenApi]:
    """The document, made once."""
    made: list[OpenApi] = []

    def openapi() -> OpenApi:
        if not made:
            made.append(_document(app, limits) | _security(needs_key))
        return made[0]

    return openapi


def _document(app: FastAPI, limits: Limits) -> OpenApi:
    document = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
    _, definitions = models_json_schema([(schema, "validation") for schema in _UNREFERENCED], ref_template=_REF)
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    for name, schema in definitions["$defs"].items():
        schemas.setdefault(name, schema)
    add_bounds(schemas, limits)
    _document_refusals(document)
    return document


def _document_refusals(document: OpenApi) -> None:
    """How a key is sent, and what every path but that of liveness answers without one."""
    document["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    error = {"content": _content("application/json", ErrorResponse)}
    for path, operations in document["paths"].items():
        for operation in operations.values():
            operation["responses"]["403"] = {"description": "Not with this key, or not from this web page", **error}
            if path == LIVENESS:
                operation["security"] = []
            else:
                operation["responses"]["401"] = {"description": "No key, or one that is not known", **error}


def _security(needs_key: bool) -> OpenApi:
    return {"security": [{"key": []}]} if needs_key else {}


def _events(chunk: type[BaseModel]) -> OpenApi:
    """Each event, as OpenAPI describes streams of them."""
    text = {"contentMediaType": "application/json", "contentSchema": {"$ref": _REF.format(model=chunk.__name__)}}
    data = {"type": "string", "anyOf": [text, {"const": "[DONE]"}]}
    return {"text/event-stream": {"schema": {"type": "object", "properties": {"data": data}, "required": ["data"]}}}


def _content(media_type: str, schema: type[BaseModel]) -> OpenApi:
    return {media_type: {"schema": {"$ref": _REF.format(model=schema.__name__)}}}
