"""Values of the fields about tools that must be refused, as raw JSON."""

import json
from typing import Any

from support.bad_formats import deep_schema

_BAD_FUNCTIONS = (
    "1",
    "true",
    "{}",
    "[]",
    '{"description": "x"}',
    '{"name": null}',
    '{"name": 1}',
    '{"name": ""}',
    '{"name": "a b"}',
    '{"name": "a.b"}',
    '{"name": "naïve"}',
    '{"name": "f\\n"}',
    json.dumps({"name": "f" * 65}),
    '{"name": "f", "description": 1}',
    '{"name": "f", "description": "\\ud800"}',
    '{"name": "f", "parameters": 1}',
    '{"name": "f", "parameters": true}',
    '{"name": "f", "parameters": []}',
    '{"name": "f", "parameters": "{}"}',
    '{"name": "f", "parameters": {"const": NaN}}',
    '{"name": "f", "strict": "yes"}',
    json.dumps({"name": "f", "parameters": {"const": "x" * 2**16}}),
    f'{{"name": "f", "parameters": {deep_schema(33)}}}',
)
_MANY = [{"name": f"f{index}"} for index in range(129)]
_LARGE = [{"name": f"f{index}", "parameters": {"const": "x" * 60_000}} for index in range(18)]
_TWINS = [{"name": "f"}, {"name": "g"}, {"name": "f"}]


def _tools(*functions: Any) -> str:
    return json.dumps([{"type": "function", "function": function} for function in functions])


BAD_TOOL_FIELDS = {
    "tools": (
        "1",
        "true",
        '"x"',
        "{}",
        "[1]",
        "[null]",
        "[[]]",
        "[{}]",
        '[{"type": "function"}]',
        '[{"type": "function", "function": null}]',
        '[{"function": {"name": "f"}}]',
        '[{"type": "function", "name": "f"}]',
        '[{"type": "custom", "custom": {"name": "f"}}]',
        *(f'[{{"type": "function", "function": {function}}}]' for function in _BAD_FUNCTIONS),
        _tools(*_TWINS),
        _tools(*_MANY),
        _tools(*_LARGE),
    ),
    "tool_choice": (
        "1",
        "true",
        "[]",
        "{}",
        '"any"',
        '"None"',
        '"required"',
        '{"type": null}',
        '{"type": []}',
        '{"type": "custom"}',
        '{"type": "function"}',
        '{"type": "function", "name": "f"}',
        '{"type": "function", "function": {}}',
        '{"type": "function", "function": {"name": 1}}',
        '{"type": "function", "function": {"name": "f"}}',
        '{"type": "allowed_tools"}',
        '{"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": []}}',
    ),
    "parallel_tool_calls": ('"true"', "1", "0", "[]", "{}", "NaN"),
    "functions": (
        "1",
        '"x"',
        "{}",
        "[null]",
        *(f"[{function}]" for function in _BAD_FUNCTIONS),
        json.dumps(_TWINS),
        json.dumps(_MANY),
        json.dumps(_LARGE),
    ),
    "function_call": ("1", "true", "[]", "{}", '"required"', '{"name": null}', '{"name": 1}', '{"name": "f"}'),
}

BAD_CALLING_MESSAGES = (
    '[{"role": "assistant", "content": null, "tool_calls": {}}]',
    '[{"role": "assistant", "content": null, "tool_calls": [1]}]',
    '[{"role": "assistant", "content": null, "tool_calls": [{"id": "a", "type": "function"}]}]',
    '[{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}]',
    '[{"role": "assistant", "tool_calls": [{"id": 1, "function": {"name": "f", "arguments": "{}"}}]}]',
    '[{"role": "assistant", "tool_calls": [{"id": "a", "type": "x", "function": {"name": "f", "arguments": "{}"}}]}]',
    '[{"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": 1, "arguments": "{}"}}]}]',
    '[{"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "f"}}]}]',
    '[{"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": null}}]}]',
    '[{"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": {}}}]}]',
    '[{"role": "user", "content": "x", "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{}"}}]}]',
    '[{"role": "assistant", "content": null, "function_call": "f"}]',
    '[{"role": "assistant", "content": null, "function_call": {"name": "f"}}]',
    '[{"role": "assistant", "content": null, "function_call": {"name": "f", "arguments": {}}}]',
    '[{"role": "user", "content": "x", "function_call": {"name": "f", "arguments": "{}"}}]',
    '[{"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{}"}}],'
    ' "function_call": {"name": "f", "arguments": "{}"}}]',
    '[{"role": "function", "content": "x", "name": 1}]',
    '[{"role": "tool", "content": "x", "tool_call_id": 1}]',
)


def _fields(**fields: Any) -> str:
    return json.dumps(fields)[1:-1]


def _named(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name}}


def _allowed(mode: str, *tools: Any) -> dict[str, Any]:
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": tools}}


_TOOLS = [_named("f")]
_FUNCTIONS = [{"name": "f"}]

BAD_TOGETHER = (
    ("tool_choice", _fields(tools=[], tool_choice="required")),
    ("tool_choice", _fields(tools=None, tool_choice=_named("f"))),
    ("tool_choice", _fields(tools=_TOOLS, tool_choice=_named("F"))),
    ("tool_choice", _fields(tools=_TOOLS, tool_choice=_named(""))),
    ("tool_choice", _fields(tools=_TOOLS, tool_choice=_allowed("none", _named("f")))),
    ("tool_choice", _fields(tools=_TOOLS, tool_choice=_allowed("auto"))),
    ("tool_choice", _fields(tools=_TOOLS, tool_choice=_allowed("auto", "f"))),
    ("tool_choice", _fields(tools=_TOOLS, tool_choice=_allowed("required", _named("f"), _named("g")))),
    ("functions", _fields(tools=_TOOLS, functions=_FUNCTIONS)),
    ("functions", _fields(functions=_FUNCTIONS, tool_choice="auto")),
    ("function_call", _fields(tools=_TOOLS, function_call="auto")),
    ("function_call", _fields(tool_choice="none", function_call="none")),
    ("function_call", _fields(functions=_FUNCTIONS, function_call={"name": "g"})),
    ("function_call", _fields(functions=[], function_call={"name": "f"})),
)
"""The field at fault, and fields that do not go together."""
