"""Python literals, as the JSON values that they stand for."""

import json
import re
from typing import Any

from octavo.streaming.tool_formats.reader import NotACall

_TOKEN = re.compile(
    r"""
    " [^"\\]*+ (?: \\. [^"\\]*+ )*+ "
    | ' [^'\\]*+ (?: \\. [^'\\]*+ )*+ '
    | [\w.]++
    | [()]
    | , (?= \s*+ [)\]}] )  # a last comma
    """,
    re.VERBOSE | re.DOTALL,
)
_JSON = {"True": "true", "False": "false", "None": "null", "(": "[", ")": "]", ",": ""}
_ESCAPE = re.compile(r"""\\x(?=[0-9a-fA-F]{2})|\\U00[01][0-9a-fA-F]{5}|\\[bfnrtu"'\\]|[\\"]""")
_JSON_ESCAPES = {r"\x": r"\u00", r"\'": "'", '"': r"\"", "\\": r"\\"}
"""A backslash that escapes nothing is one."""


def value_of(text: str) -> Any:
    """The value of a literal, in which strings may run over lines, and the words of JSON stand for its values.

    Raises NotACall where it is none that JSON has.
    """
    try:
        return json.loads(_TOKEN.sub(_as_json, text), strict=False)
    except ValueError as error:
        raise NotACall from error


def _as_json(match: re.Match[str]) -> str:
    token = match[0]
    if token[0] in "\"'":
        return f'"{_ESCAPE.sub(_json_escape, token[1:-1])}"'
    return _JSON.get(token, token)


def _json_escape(match: re.Match[str]) -> str:
    escape = match[0]
    return chr(int(escape[2:], 16)) if escape.startswith(r"\U") else _JSON_ESCAPES.get(escape, escape)
