"""Calls of the Berkeley Function-Calling Leaderboard's functions: with `auto`, in how many cases a server recognises a
call in what the model writes; with `required`, in how many the calls are valid under their functions' schemas.

python -m benchmarks.tool_calls --model MODEL.gguf [--peer]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import jsonschema

from benchmarks.compare import demo_model
from benchmarks.contenders import Room, octavo
from benchmarks.http_client import Server, fetch_json
from benchmarks.peers import PEERS, build_llama_server, llama_server
from benchmarks.processes import ServerCommand, run_until_stopped, running

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from support.bfcl import BfclCase, bfcl_cases

CATEGORIES = {"simple_python": 100, "multiple": 50, "parallel": 50}
NUM_STREAMS = 4
CONTEXT = 4096
MAX_TOKENS = 600


def chosen_cases() -> list[BfclCase]:
    """The first ones of each category."""
    return [
        case
        for category, number in CATEGORIES.items()
        for case in islice((case for case in bfcl_cases() if case.category == category), number)
    ]


async def ask(server: Server, model: str, case: BfclCase, tool_choice: str) -> dict[str, Any]:
    """The choice that a server answers a case with; where it refuses, the status as its finish reason."""
    body = {
        "model": model,
        "messages": list(case.messages),
        "tools": list(case.tools),
        "tool_choice": tool_choice,
        "parallel_tool_calls": case.category == "parallel",
        "temperature": 0,
        "max_tokens": MAX_TOKENS,
    }
    status, answer = await fetch_json(server, "POST", "/v1/chat/completions", body)
    if status != 200 or answer is None:
        return {"message": {"content": json.dumps(answer)}, "finish_reason": f"status {status}"}
    choice: dict[str, Any] = answer["choices"][0]
    return choice


def kind_of(case: BfclCase, choice: dict[str, Any]) -> str:
    """What became of a case."""
    calls = choice["message"].get("tool_calls") or []
    if not calls:
        return f"no call, {choice['finish_reason']}"
    if choice["finish_reason"] != "tool_calls":
        return f"calls, {choice['finish_reason']}"
    parameters = {tool["function"]["name"]: tool["function"]["parameters"] for tool in case.tools}
    for call in calls:
        name, arguments = call["function"]["name"], call["function"]["arguments"]
        if name not in parameters:
            return "unknown function"
        try:
            jsonschema.validate(json.loads(arguments), parameters[name])
        except ValueError:
            return "arguments are no JSON"
        except jsonschema.ValidationError:
            return "arguments are not valid"
    return "valid calls"


async def measure(command: ServerCommand, model: str, tool_choices: Sequence[str], answers: Path) -> None:
    """Print the kinds and their numbers; what was answered goes to a file, a JSON object a line."""
    kinds: dict[str, Counter[str]] = {choice: Counter() for choice in tool_choices}
    cases = iter(chosen_cases())
    with answers.open("w") as file:
        async with running(command, answers.with_suffix(".log")) as url:
            server = Server.from_url(url, None)

            async def work(cases: Iterator[BfclCase]) -> None:
                for case in cases:
                    for tool_choice in tool_choices:
                        choice = await ask(server, model, case, tool_choice)
                        kind = kind_of(case, choice)
                        kinds[tool_choice][f"{case.category}: {kind}"] += 1
                        kinds[tool_choice][kind] += 1
                        file.write(json.dumps({"id": case.id, "asked": tool_choice, "kind": kind, **choice}) + "\n")
                        file.flush()

            await asyncio.gather(*(work(cases) for _ in range(NUM_STREAMS)))
    for tool_choice, counts in kinds.items():
        print(f"{command.name}, tool_choice {tool_choice}, {sum(CATEGORIES.values())} cases:")
        for kind, number in sorted(counts.items()):
            print(f"  {number:4} {kind}")
        sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tool_calls", description=__doc__)
    parser.add_argument("--model", type=Path, help="a .gguf file (default: the model of the demo extra)")
    parser.add_argument("--threads", default="2", help="of the server's engine")
    parser.add_argument("--peer", action="store_true", help="measure llama-server, which knows auto only as we do")
    options = parser.parse_args()
    model: Path = options.model or demo_model()
    name = model.name.removesuffix(".gguf")
    if options.peer:
        flags = ("--jinja", "-t", options.threads)
        command = llama_server(build_llama_server(), model, "defaults", NUM_STREAMS, CONTEXT, flags)
        choices = ["auto"]
    else:
        command = octavo(
            model, ("--ctx", str(CONTEXT), "--slots", str(NUM_STREAMS), "--threads", options.threads)
        ).command(Room(NUM_STREAMS, CONTEXT))
        choices = ["auto", "required"]
    folder = PEERS / "logs"
    folder.mkdir(parents=True, exist_ok=True)
    answers = folder / f"tool_calls-{'llama-server' if options.peer else 'octavo'}-{name}.jsonl"
    run_until_stopped(measure(command, name, choices, answers))
    print(f"answers: {answers.name}")


if __name__ == "__main__":
    main()
