"""schemathesis on the server's own document: what it allows, what it forbids, and what comes back."""

import base64
import json
import re
import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from probes.answer import Answer
from probes.counts import Counts
from probes.target import Target

PHASES = "examples,coverage,fuzzing"
CONFIG = """\
[checks]
positive_data_acceptance.expected-statuses = ["2xx", "400", "401", "403", "404", "429"]
"""
"""400: well-formed, but this model or this server cannot do it, which no document can tell."""
BETWEEN_FIELDS = re.compile(
    "|".join(
        (
            "should be given only (with|in)",
            "should not be given (beside|with)",
            "should (be at least|equal) n,",
            "should (be at most|equal) max_tokens",
            "should equal reasoning_content",
            "should not set ",
            "should be token ids from 0 to",
            "functions of different names",
            "should name functions of tools",
            "should be all strings, all token ids",  # and as for 1.0 below
            r"a valid integer \(given -?[0-9.]+",  # 1.0, which is a whole number to JSON Schema
            r'"message":"(response_format|tools|functions): ',  # what is in a schema or a grammar
        )
    )
)
"""Rules that JSON Schema has no word for, or that depend on the model: a body may be as documented and break one."""
SECONDS = 1800
PROGRAM = str(Path(sysconfig.get_path("scripts"), "schemathesis"))


def fuzz_document(target: Target) -> Counts:
    """As many examples for each operation as the target says, the same for the same seed."""
    with TemporaryDirectory(prefix="octavo-probe-") as folder:
        report, config = Path(folder, "events.ndjson"), Path(folder, "schemathesis.toml")
        config.write_text(CONFIG)
        done = subprocess.run(
            (PROGRAM, "--config-file", str(config), "run", f"{target.url}/openapi.json", *arguments(target, report)),
            cwd=folder,
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
        if not report.exists():
            raise RuntimeError(done.stdout.decode()[-2000:])
        return judged(report.read_text().splitlines(), target.keys)


def arguments(target: Target, report: Path) -> tuple[str, ...]:
    headers = [part for name, value in target.headers.items() for part in ("--header", f"{name}: {value}")]
    return (
        *("--seed", str(target.seed), "--max-examples", str(target.examples), "--mode", "all", "--phases", PHASES),
        *("--generation-allow-x00", "true", "--generation-database", "none", "--suppress-health-check", "all"),
        *("--continue-on-failure", "--no-color", "--no-shrink", "--warnings", "off", "--output-sanitize", "false"),
        *("--report", "ndjson", "--report-ndjson-path", str(report), *headers),
    )


def judged(lines: list[str], keys: tuple[str, ...] = ()) -> Counts:
    """The counts of a run, by its events."""
    counts = Counts()
    counts.figures["refused by rules between fields"] = 0
    for recorder in recorders(lines):
        for case, interaction in recorder.get("interactions", {}).items():
            answer, sent = _answer(interaction), _sent(interaction)
            name = f"{recorder['label']} {sent[:300]!r}"
            wrong = [check for check in recorder.get("checks", {}).get(case, ()) if check["status"] != "success"]
            unexplained = [check for check in wrong if not _is_explained(check, answer)]
            counts.figures["refused by rules between fields"] += len(wrong) - len(unexplained)
            planned = (answer.status,) if answer.status < 500 else ()
            if interaction["request"]["method"] == "HEAD":
                counts.count(name, not unexplained)
                continue
            counts.judge(name, answer, planned, sent=sent, secrets=keys)
            if unexplained:
                counts.num_right -= bool(planned)
                counts.find(f"{name}: {_why(unexplained[0])}: {answer.status} {answer.body[:300]!r}")
    return counts


def recorders(lines: list[str]) -> Iterator[dict[str, Any]]:
    for line in lines:
        event = json.loads(line)
        if "ScenarioFinished" in event:
            yield event["ScenarioFinished"]["recorder"]


def _answer(interaction: dict[str, Any]) -> Answer:
    response = interaction["response"] or {"status_code": 0, "headers": {}, "content": None}
    headers = {name.lower(): values[0] for name, values in response["headers"].items()}
    return Answer(response["status_code"], headers, _bytes(response.get("content")))


def _sent(interaction: dict[str, Any]) -> bytes:
    return str(interaction["request"]["uri"]).encode() + b" " + _bytes(interaction["request"].get("body"))


def _bytes(content: dict[str, str] | None) -> bytes:
    return base64.b64decode(content["$base64"]) if content else b""


def _is_explained(check: dict[str, Any], answer: Answer) -> bool:
    is_refusal = check["name"] == "positive_data_acceptance" and answer.status == 422
    return is_refusal and BETWEEN_FIELDS.search(answer.body.decode()) is not None


def _why(check: dict[str, Any]) -> str:
    failure = check["failure_info"]["failure"]
    return f"{failure['title']} ({failure['message'][:300]})"
