"""The cases of the Berkeley Function-Calling Leaderboard (BFCL v4) that describe their functions, in OpenAI's form."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

from support.packages import PackageFolder

FOLDER = PackageFolder("bfcl-eval", "2026.3.23", path="bfcl_eval/data", suffix=".json", place="bfcl")
PREFIX = "BFCL_v4_"

TYPES = {
    # What JSON Schema does not know: Python's types, and Java's, which the cases about Java use.
    "dict": "object",
    "HashMap": "object",
    "tuple": "array",
    "Array": "array",
    "ArrayList": "array",
    "float": "number",
    "double": "number",
    "long": "integer",
    "Boolean": "boolean",
    "String": "string",
    "char": "string",
}
NO_TYPES = ("any", "")
SUBSCHEMAS = ("items", "additionalProperties")

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class BfclCase:
    """What a model is asked, and the calls that answer it.

    category: "simple_python", "multiple", "parallel", "live_parallel_multiple", "irrelevance", ….
    tools: of a chat request. names: of its functions, the leaderboard's by OpenAI's.
    messages: of the first turn.
    ground_truth: calls in the leaderboard's form, {function: {parameter: [value that will do, …]}}, by its own names;
        empty where no call is right, None where the package does not say.
    """

    id: str
    category: str
    messages: tuple[Json, ...]
    tools: tuple[Json, ...]
    names: Mapping[str, str]
    ground_truth: tuple[Json, ...] | None


@cache
def bfcl_cases() -> tuple[BfclCase, ...]:
    """In the package's order. Raises subprocess.CalledProcessError where they cannot be fetched."""
    folder = FOLDER.fetched()
    return tuple(case for path in sorted(folder.glob(f"{PREFIX}*.json")) for case in _cases(path))


def bfcl_schemas() -> dict[str, Json]:
    """The different parameter schemas of all functions, also of those that belong to no case, by the name of one."""
    documented = (_tool(line) for path in _function_files() for line in _lines(path))
    offered = (tool for case in bfcl_cases() for tool in case.tools)
    functions = [tool["function"] for tool in chain(offered, documented)]
    different = {json.dumps(function["parameters"]): function for function in functions}
    return {f"{function['name']} #{n}": function["parameters"] for n, function in enumerate(different.values())}


def _function_files() -> list[Path]:
    """Of the functions that conversations of several turns are about."""
    return sorted(FOLDER.fetched().glob("multi_turn_func_doc/*.json"))


def _cases(path: Path) -> Iterator[BfclCase]:
    category = path.stem.removeprefix(PREFIX)
    answers = {line["id"]: tuple(line["ground_truth"]) for line in _lines(path.parent / "possible_answer" / path.name)}
    for line in _lines(path):
        if line.get("function"):
            answer = () if category.endswith("irrelevance") else answers.get(line["id"])
            yield _case(line, category, answer)


def _case(line: Json, category: str, answer: tuple[Json, ...] | None) -> BfclCase:
    tools = tuple(map(_tool, line["function"]))
    names = {tool["function"]["name"]: given["name"] for tool, given in zip(tools, line["function"], strict=True)}
    return BfclCase(line["id"], category, tuple(line["question"][0]), tools, names, answer)


def _lines(path: Path) -> Iterator[Json]:
    """Of a file with one object a line; none where there is no file. Some files hold one object and are not cases."""
    if path.is_file():
        text = path.read_text(encoding="utf-8")
        yield from (json.loads(line) for line in text.splitlines() if line.startswith('{"'))


def _tool(function: Json) -> Json:
    name = re.sub(r"[^a-zA-Z0-9_-]", "_", function["name"])[:64]
    description, parameters = function["description"], json_schema(function["parameters"])
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


def json_schema(given: Mapping[str, Any]) -> Json:
    """The same with JSON Schema's types."""
    schema = dict(given)
    if schema.get("type") in NO_TYPES:
        del schema["type"]
    if "type" in schema:
        schema["type"] = TYPES.get(schema["type"], schema["type"])
    if "properties" in schema:
        schema["properties"] = {name: json_schema(each) for name, each in schema["properties"].items()}
    return schema | {key: json_schema(schema[key]) for key in SUBSCHEMAS if isinstance(schema.get(key), Mapping)}
