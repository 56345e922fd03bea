"""The schema under which answers are asked for."""

from __future__ import annotations

from typing import Any

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 30},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
        "email": {"type": "string", "pattern": "^[a-z.]{1,20}@[a-z]{1,12}\\.(com|org)$"},
        "roles": {"type": "array", "items": {"enum": ["admin", "author", "guest"]}, "minItems": 1, "maxItems": 3},
    },
    "required": ["name", "age", "email", "roles"],
    "additionalProperties": False,
}
PEOPLE = {"type": "array", "items": PERSON, "minItems": 30, "maxItems": 40}
"""Nothing shorter than the tokens that are asked for is valid, so both sides generate as many."""


def response_format(schema: dict[str, Any]) -> dict[str, object]:
    return {"response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}}
