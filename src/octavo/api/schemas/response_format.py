"""What an answer is allowed to be."""

from typing import Annotated, Any, Literal

from pydantic import Field, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from octavo.api.schemas.common import WireRequest
from octavo.api.schemas.unions import member, told_by, type_of


def _parse_schema(value: Any) -> dict[str, Any] | bool:
    if not isinstance(value, dict | bool):
        raise PydanticCustomError("schema_type", "Input should be an object, true or false")
    return value


JsonSchema = Annotated[
    dict[str, Any] | bool,
    PlainValidator(_parse_schema),
    WithJsonSchema({"anyOf": [{"type": "object"}, {"type": "boolean"}]}),
]
"""true allows any JSON, false none."""


class TextFormat(WireRequest):
    type: Literal["text"]


class JsonObjectFormat(WireRequest):
    type: Literal["json_object"]
    schema_: JsonSchema | None = Field(None, alias="schema", description="Default: any object.")


class SchemaDefinition(WireRequest):
    """name, description, strict: for the client's own use, since every schema is kept to the letter."""

    name: str | None = None
    description: str | None = None
    schema_: JsonSchema = Field(alias="schema")
    strict: bool | None = None


class JsonSchemaFormat(WireRequest):
    type: Literal["json_schema"]
    json_schema: SchemaDefinition


class RegexFormat(WireRequest):
    type: Literal["regex"]
    pattern: str = Field(description="What the answer matches as a whole, in the notation of Rust's regex.")


class GrammarFormat(WireRequest):
    type: Literal["grammar"]
    grammar: str = Field(description="In Lark's notation or in GBNF.")


ResponseFormat = Annotated[
    Annotated[TextFormat, member("text")]
    | Annotated[JsonObjectFormat, member("json_object")]
    | Annotated[JsonSchemaFormat, member("json_schema")]
    | Annotated[RegexFormat, member("regex")]
    | Annotated[GrammarFormat, member("grammar")],
    told_by(
        type_of,
        error_type="response_format_type",
        message="Input should be an object of type text, json_object, json_schema, regex or grammar",
    ),
]
