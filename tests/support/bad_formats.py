"""Values of response_format that must be refused, as raw JSON."""

import json


def deep_schema(num_levels: int) -> str:
    return '{"items": ' * (num_levels - 1) + "{}" + "}" * (num_levels - 1)


BAD_FORMATS = (
    "1",
    "true",
    '"text"',
    '"json_object"',
    "[]",
    "{}",
    '{"schema": {}}',
    '{"type": null}',
    '{"type": 1}',
    '{"type": []}',
    '{"type": {}}',
    '{"type": "xml"}',
    '{"type": "Text"}',
    '{"type": "json_object", "schema": []}',
    '{"type": "json_object", "schema": "{}"}',
    '{"type": "json_object", "schema": 1}',
    '{"type": "json_object", "schema": {"const": NaN}}',
    '{"type": "json_object", "schema": {"const": "\\ud800"}}',
    '{"type": "json_object", "schema": false}',
    '{"type": "json_schema"}',
    '{"type": "json_schema", "schema": {}}',
    '{"type": "json_schema", "json_schema": null}',
    '{"type": "json_schema", "json_schema": true}',
    '{"type": "json_schema", "json_schema": {}}',
    '{"type": "json_schema", "json_schema": {"name": "x"}}',
    '{"type": "json_schema", "json_schema": {"name": "x", "schema": null}}',
    '{"type": "json_schema", "json_schema": {"name": "x", "schema": 1}}',
    '{"type": "json_schema", "json_schema": {"name": "x", "schema": "{}"}}',
    '{"type": "json_schema", "json_schema": {"name": 1, "schema": {}}}',
    '{"type": "json_schema", "json_schema": {"name": "x", "schema": {}, "strict": 1}}',
    '{"type": "json_schema", "json_schema": {"name": "x", "schema": {}, "description": []}}',
    '{"type": "json_schema", "json_schema": {"name": "x", "schema": false}}',
    '{"type": "regex"}',
    '{"type": "regex", "pattern": null}',
    '{"type": "regex", "pattern": 1}',
    '{"type": "regex", "pattern": ["a"]}',
    '{"type": "regex", "pattern": "("}',
    '{"type": "grammar"}',
    '{"type": "grammar", "grammar": null}',
    '{"type": "grammar", "grammar": {}}',
    '{"type": "grammar", "grammar": "start: nothing"}',
    json.dumps({"type": "json_object", "schema": {"const": "x" * 2**16}}),
    json.dumps({"type": "json_object", "schema": {"const": "é" * 2**15}}, ensure_ascii=False),
    json.dumps({"type": "regex", "pattern": "x" * 2**16}),
    json.dumps({"type": "grammar", "grammar": "x" * 2**16}),
    f'{{"type": "json_object", "schema": {deep_schema(33)}}}',
    f'{{"type": "json_schema", "json_schema": {{"schema": {deep_schema(33)}}}}}',
)
