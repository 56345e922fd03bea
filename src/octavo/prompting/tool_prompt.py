"""Tools, calls and results as texts, for models whose chat templates have no place for them. See docs/tools.md."""

import json
from collections.abc import Sequence

from octavo.core.tools import Tool, ToolCall
from octavo.prompting.arguments import object_of

_BEFORE_TOOLS = """\
You can call functions. Each line between the tags describes one of them, its parameters by a JSON schema:
<tools>
"""
_BEHIND_TOOLS = """
</tools>
To call a function, write its name and its arguments in this form:
<tool_call>
{"name": "<the function's name>", "arguments": {"<a parameter's name>": <its value>}}
</tool_call>
Write one such block for each call and nothing after the last one. What the functions return comes in the next message,
between <tool_response> and </tool_response>. Where no function helps, answer without a call."""


def tool_prompt(tools: Sequence[Tool]) -> str:
    """What a model has to know to call the tools."""
    lines = [_json({"type": "function", "function": dict(tool.definition)}) for tool in tools]
    return _BEFORE_TOOLS + "\n".join(lines) + _BEHIND_TOOLS


def written_call(call: ToolCall) -> str:
    arguments = object_of(call.arguments)
    text = arguments if isinstance(arguments, str) else _json(arguments)
    return f'<tool_call>\n{{"name": {_json(call.name)}, "arguments": {text}}}\n</tool_call>'


def told_result(content: str) -> str:
    return f"<tool_response>\n{content}\n</tool_response>"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
