"""Schemas of the kinds that agents send: answers in OpenAI's documented subset, parameters of MCP servers' tools."""

from typing import Any

Json = dict[str, Any]

DRAFT_7 = "http://json-schema.org/draft-07/schema#"
SAFE = 2**53 - 1


def strict(**properties: Any) -> Json:
    """An object as OpenAI's strict mode wants it: all is required, nothing more is allowed."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def parameters(required: tuple[str, ...] = (), /, **properties: Any) -> Json:
    """An object as generators for TypeScript write it."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
        "$schema": DRAFT_7,
    }


STRING = {"type": "string"}
NUMBER = {"type": "number"}
STRINGS = {"type": "array", "items": STRING}

OPENAI: dict[str, Json] = {
    "steps": strict(steps={"type": "array", "items": strict(explanation=STRING, output=STRING)}, final_answer=STRING),
    "event": strict(name=STRING, date=STRING, participants=STRINGS),
    "paper": strict(title=STRING, authors=STRINGS, abstract=STRING, keywords=STRINGS),
    "user interface": strict(
        type={"type": "string", "description": "The kind", "enum": ["div", "button", "header", "field", "form"]},
        label={"type": "string", "description": "Of buttons and fields"},
        children={"type": "array", "description": "Nested ones", "items": {"$ref": "#"}},
        attributes={"type": "array", "items": strict(name=STRING, value=STRING)},
    ),
    "moderation": strict(
        is_violating={"type": "boolean"},
        category={"type": ["string", "null"], "enum": ["violence", "sexual", "self_harm", None]},
        explanation={"type": ["string", "null"]},
    ),
    "weather": strict(
        location={"type": "string", "description": "Where"},
        units={"type": ["string", "null"], "enum": ["celsius", "fahrenheit"], "description": "Of the answer"},
    ),
    "restrictions": strict(
        username={"type": "string", "description": "Of the account", "pattern": "^[a-zA-Z0-9_]+$"},
        handle={"type": "string", "pattern": "^@[a-z]{1,15}$"},
        email={"type": "string", "format": "email"},
        temperature={"type": "number", "minimum": -130, "maximum": 130},
        half={"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 10, "multipleOf": 0.5},
        names={"type": "array", "items": STRING, "minItems": 3, "maxItems": 5},
    ),
    "formats": strict(
        **{
            name: {"type": "string", "format": name}
            for name in ("date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid")
        }
    ),
    "any of": strict(
        item={
            "anyOf": [
                {**strict(name=STRING, age=NUMBER), "description": "A user"},
                {**strict(number=STRING, street=STRING, city=STRING), "description": "An address"},
            ]
        }
    ),
    "definitions": {
        **strict(steps={"type": "array", "items": {"$ref": "#/$defs/step"}}, final_answer=STRING),
        "$defs": {"step": strict(explanation=STRING, output=STRING)},
    },
    "linked list": {
        **strict(linked_list={"$ref": "#/$defs/node"}),
        "$defs": {"node": strict(value=NUMBER, next={"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]})},
    },
    "const": strict(kind={"const": "a"}, other={"type": "string", "const": "b"}, number={"enum": [1, 2.5, None, "x"]}),
}

MCP: dict[str, Json] = {
    "nothing": {},
    "an object": {"type": "object"},
    "no properties": {"type": "object", "properties": {}},
    "no parameters": {**parameters(), "required": []},
    "edit a file": parameters(
        ("path", "edits"),
        path=STRING,
        edits={
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "oldText": {"type": "string", "description": "Text to search for"},
                    "newText": {"type": "string", "description": "Text to replace it with"},
                },
                "required": ["oldText", "newText"],
                "additionalProperties": False,
            },
        },
        dryRun={"type": "boolean", "default": False, "description": "Only show it"},
    ),
    "fetch": {
        "description": "Parameters for fetching a URL.",
        "properties": {
            "url": {"description": "URL to fetch", "format": "uri", "minLength": 1, "title": "Url", "type": "string"},
            "max_length": {
                "default": 5000,
                "exclusiveMaximum": 1000000,
                "exclusiveMinimum": 0,
                "title": "Max Length",
                "type": "integer",
            },
            "raw": {"default": False, "title": "Raw", "type": "boolean"},
        },
        "required": ["url"],
        "title": "Fetch",
        "type": "object",
    },
    "log": {
        "properties": {
            "repo_path": {"title": "Repo Path", "type": "string"},
            "max_count": {"default": 10, "title": "Max Count", "type": "integer"},
            "since": {"anyOf": [STRING, {"type": "null"}], "default": None, "title": "Since"},
            "paths": {"anyOf": [STRINGS, {"type": "null"}], "default": None},
        },
        "required": ["repo_path"],
        "type": "object",
    },
    "issues": parameters(
        ("owner", "repo"),
        owner=STRING,
        repo=STRING,
        state={"type": "string", "enum": ["open", "closed", "all"]},
        labels=STRINGS,
        since={"type": "string", "format": "date-time"},
        page={"type": "number", "minimum": 1},
        per_page={"type": "number", "minimum": 1, "maximum": 100},
    ),
    "thought": parameters(
        ("thought", "nextThoughtNeeded", "thoughtNumber"),
        thought=STRING,
        nextThoughtNeeded={"type": "boolean"},
        thoughtNumber={"type": "integer", "minimum": 1},
        branchId=STRING,
    ),
    "entities": parameters(
        ("entities",),
        entities={"type": "array", "items": {**parameters(("name",), name=STRING, observations=STRINGS)}},
    ),
    "definitions": {
        "$schema": DRAFT_7,
        "definitions": {"filter": parameters(("field",), field=STRING, value={"type": ["string", "number", "null"]})},
        "type": "object",
        "properties": {"filters": {"type": "array", "items": {"$ref": "#/definitions/filter"}, "maxItems": 10}},
    },
    "a reference by path": parameters(
        ("from", "to"),
        **{"from": parameters(("x",), x=NUMBER), "to": {"$ref": "#/properties/from"}},
    ),
    "optional by not": parameters((), value={"anyOf": [{"not": {}}, STRING]}, other={"anyOf": [STRING, {"not": {}}]}),
    "never": parameters((), value=STRING, never={"not": {}}),
    "records": parameters(
        ("env",),
        env={"type": "object", "additionalProperties": STRING},
        headers={"type": "object", "propertyNames": STRING, "additionalProperties": STRING},
        data={"type": "object", "additionalProperties": {}},
        open={"type": "object", "properties": {"id": STRING}, "additionalProperties": True},
        named={"type": "object", "patternProperties": {"^x-": STRING}, "additionalProperties": False},
    ),
    "integers": parameters(
        (),
        safe={"type": "integer", "minimum": -SAFE, "maximum": SAFE},
        positive={"type": "integer", "exclusiveMinimum": 0, "maximum": SAFE},
        count={"type": "integer", "format": "int32"},
        ratio={"type": "number", "format": "double"},
    ),
    "strings": parameters(
        (),
        day={"type": "string", "format": "date", "pattern": r"^\d{4}-\d{2}-\d{2}$"},
        id={
            "type": "string",
            "format": "uuid",
            "pattern": "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$",
        },
        data={"type": "string", "contentEncoding": "base64"},
        name={"type": "string", "minLength": 1, "maxLength": 255},
        password={"type": "string", "format": "password", "minLength": 8},
    ),
    "one of, by a constant": parameters(
        ("action",),
        action={
            "oneOf": [
                parameters(("type", "x"), type={"type": "string", "const": "click"}, x={"type": "integer"}),
                parameters(("type", "text"), type={"type": "string", "const": "write"}, text=STRING),
                parameters(("type",), type={"type": "string", "enum": ["wait", "stop"]}),
            ]
        },
    ),
    "all of a reference": {
        "type": "object",
        "properties": {"color": {"allOf": [{"$ref": "#/definitions/Color"}], "default": "red", "description": "Which"}},
        "definitions": {"Color": {"title": "Color", "enum": ["red", "green"], "type": "string"}},
    },
    "type lists": {
        "type": "object",
        "properties": {"items": {"type": ["null", "array"], "items": {"type": ["integer", "string"]}}},
        "additionalProperties": False,
    },
    "annotations": {
        "$comment": "for people",
        "$id": "https://example.com/tool.json",
        "title": "All",
        "type": "object",
        "properties": {
            "a": {"type": "string", "examples": ["x"], "deprecated": True, "readOnly": True, "nullable": True},
            "b": {"type": "string", "example": "x", "x-order": 1, "enumDescriptions": ["y"], "default": None},
        },
        "required": ["a"],
    },
    "any values": parameters(("value",), value={}, more={"description": "Anything"}, list={"type": "array"}, yes=True),
    "nested": parameters(
        (),
        page=parameters(
            ("children",),
            children={
                "type": "array",
                "items": {
                    "anyOf": [
                        parameters(("paragraph",), paragraph=parameters(("text",), text=STRINGS)),
                        parameters(("heading",), heading=parameters(("level",), level={"enum": [1, 2, 3]})),
                        {"type": "null"},
                    ]
                },
                "minItems": 1,
                "maxItems": 100,
            },
        ),
    ),
}
