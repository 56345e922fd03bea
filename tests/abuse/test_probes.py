"""The probes themselves, and each quick group in small. What they count is asserted, and no time."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from probes.answer import Answer
from probes.counts import Counts
from probes.measure import Ratio, percentile, slope, welch_t
from probes.rig import breaches_of
from probes.verdict import fault_of

ROOT = Path(__file__).parents[2]
SECONDS = 280
FIELDS = {"message": "no", "type": "invalid_request_error", "param": None, "code": "x"}
BODY = {"error": FIELDS, "object": "error", **FIELDS, "request_id": "r"}
HEADERS = {"content-type": "application/json", "x-request-id": "r"}


def answer(status: int = 400, headers: dict[str, str] = HEADERS, **changes: Any) -> Answer:
    return Answer(status, headers, json.dumps(BODY | changes).encode())


def test_an_error_of_the_one_shape_is_right() -> None:
    assert fault_of(answer()) == ""


@pytest.mark.parametrize(
    "wrong",
    [
        answer(extra=1),
        answer(message="other"),
        answer(request_id="other"),
        answer(status=422),
        answer(headers={"content-type": "text/plain", "x-request-id": "r"}),
        answer(headers={"content-type": "application/json"}),
        Answer(400, HEADERS, b"<html>"),
        Answer(400, HEADERS, b"[]"),
        Answer(400, HEADERS, b"\xff"),
        Answer(0),
    ],
)
def test_any_other_is_not(wrong: Answer) -> None:
    assert fault_of(wrong)


@pytest.mark.parametrize("text", ["Traceback (most", "at 0x7f001122", "in /home/someone/x", "a-secret-key"])
def test_what_nobody_may_know_is_found_unless_the_client_sent_it(text: str) -> None:
    told = dict.fromkeys(("message",), text)
    leaking = answer(error=FIELDS | told, **told)
    assert fault_of(leaking, secrets=("a-secret-key",))


def test_counts_break_a_line_where_anything_is_wrong() -> None:
    counts = Counts()
    assert breaches_of(counts) == ["nothing was sent"]
    counts.judge("good", answer(), (400,))
    assert breaches_of(counts) == []
    counts.judge("bad", answer(500), (400,))
    assert breaches_of(counts) == ["1 not as specified", "1 unplanned 5xx"]
    counts.judge("misshapen", answer(extra=1), (400,))
    assert breaches_of(counts)[-1] == "1 without the shape of an error"
    assert [finding.partition(":")[0] for finding in counts.findings] == ["bad", "misshapen"]


def test_a_ratio_tells_nothing_where_the_control_varies() -> None:
    assert Ratio.of([3.0, 4.0], [2.0, 2.0]) == Ratio(1.75, 2.0, True)
    assert not Ratio.of([3.0, 4.0], [1.0, 2.0]).is_resolvable
    assert not Ratio.of([3.0], [2.0]).is_resolvable
    assert str(Ratio.of([3.0], [2.0])) == "not resolvable"


def test_figures_are_those_of_the_textbooks() -> None:
    assert percentile([5, 1, 4, 2, 3], 50) == 3
    assert percentile(range(1, 101), 99) == 99
    assert percentile([], 99) == 0
    assert slope([1, 3, 5, 7]) == 2
    assert welch_t([1, 2, 3], [1, 2, 3]) == 0
    assert welch_t([2, 3, 4, 5], [1, 2, 3, 4]) == pytest.approx(1.0954, abs=1e-4)


def run(*arguments: str, folder: Path) -> tuple[int, list[dict[str, Any]]]:
    """The exit status, and what came of each probe."""
    file = folder / "probes.json"
    command = (sys.executable, "-m", "probes", *arguments, "--repeats", "0", "--json", str(file))
    done = subprocess.run(command, cwd=ROOT, timeout=SECONDS, check=False)
    return done.returncode, json.loads(file.read_text())["probes"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("group", "probes", "arguments"),
    [
        ("input", ("sizes", "generated bodies"), ("--examples", "100")),
        ("grammar", ("conversations", "unique schemas"), ("--scale", "0.1")),
        ("connections", ("smuggling", "large heads"), ("--scale", "0.1")),
        ("network", ("bad networks", "HTTP fuzz"), ("--scale", "0.1")),
        ("access", ("headers", "web pages", "revocation", "documents"), ("--scale", "0.1")),
        ("overload", ("samples",), ("--scale", "0.1")),
        ("legit", ("headers and uploads",), ()),
        ("faults", ("drain", "endings"), ("--scale", "0.05")),
        ("logging", ("kills, SQLite",), ("--scale", "0.01")),
    ],
)
def test_a_group_in_small_finds_nothing(
    group: str, probes: tuple[str, ...], arguments: tuple[str, ...], tmp_path: Path
) -> None:
    chosen = [part for probe in probes for part in ("--probe", probe)]
    _, results = run(group, *chosen, *arguments, folder=tmp_path)
    assert {result["probe"] for result in results} == set(probes)
    for result in results:
        counts = result["counts"]
        assert counts["num_sent"] > 0, result["breaches"]
        assert counts["findings"] == []
        assert counts["num_right"] == counts["num_sent"]
        assert counts["num_unplanned"] == counts["num_misshapen"] == counts["num_exits"] == 0
