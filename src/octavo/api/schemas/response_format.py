"""What an answer is allowed to be."""

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, PlainValidator, Tag, WithJsonSchema
from pydantic_core import PydanticCustomError

from octavo.api.schemas.common import WireRequest


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


def _type_of(value: Any) -> str | None:
    type = value.get("type") if isinstance(value, dict) else None
    return type if isinstance(type, str) else None


ResponseFormat = Annotated[
    Annotated[TextFormat, Tag("text")]
    | Annotated[JsonObjectFormat, Tag("json_object")]
    | Annotated[JsonSchemaFormat, Tag("json_schema")]
    | Annotated[RegexFormat, Tag("regex")]
    | Annotated[GrammarFormat, Tag("grammar")],
    Discriminator(
        _type_of,
        custom_error_type="response_format_type",
        custom_error_message="Input should be an object of type text, json_object, json_schema, regex or grammar",
    ),
]
