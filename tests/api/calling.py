"""Tools, and answers that call them."""

import json
from typing import Any

from octavo.core.tools import Tool

PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
WEATHER = {"name": "get_weather", "description": "Tells the weather.", "parameters": PARAMETERS}
CLOCK = {"name": "get_time"}
TOOLS = [{"type": "function", "function": function} for function in (WEATHER, CLOCK)]
CORE_TOOLS = (Tool("get_weather", WEATHER), Tool("get_time", CLOCK))
PARIS, NOON = '{"city": "Paris"}', '{"city": "Nō-on \\"x\\""}'


def written(name: str, arguments: str) -> str:
    """A call as a model of Hermes' family writes it."""
    return f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'


ONE_CALL = written("get_weather", PARIS)
TWO_CALLS = f"{ONE_CALL}\n{written('get_weather', NOON)}"


def named(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name}}


def allowed(mode: str, *names: str) -> dict[str, Any]:
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": [named(name) for name in names]}}


def told_calls(calls: list[list[str]]) -> list[tuple[str, Any]]:
    """Name and arguments of each."""
    return [(name, json.loads(arguments)) for _, name, arguments in calls]
