"""docs/metrics.md is about what a server's /metrics has, all of it and nothing else."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from octavo.telemetry.aliases import ALIASES
from support.metrics_text import Family, families_of
from support.processes import serving

DOCUMENT = (Path(__file__).parents[2] / "docs/metrics.md").read_text()
OWN, OTHER = DOCUMENT.split("## Other names")
ALIAS_PREFIXES = ("vllm:", "llamacpp:")


def rows(text: str) -> Iterator[list[str]]:
    for line in text.splitlines():
        if line.startswith("| `"):
            yield [cell.strip() for cell in line.strip("|").split("|")]


def names(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


@pytest.fixture(scope="module")
def families(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Family]:
    with serving("--alias", "demo", folder=tmp_path_factory.mktemp("metrics")) as server:
        server.wait_ready()
        with server.client() as client:
            client.post("/v1/completions", json={"model": "demo", "prompt": "x", "user": "ann"})
            return families_of(client.get("/metrics").text)


@pytest.mark.skipif(not Path("/proc/stat").exists(), reason="this system tells nothing of processes")
@pytest.mark.slow
def test_every_metric_is_there_with_its_kind_and_its_labels(families: dict[str, Family]) -> None:
    shown = {name: family for name, family in families.items() if not name.startswith(ALIAS_PREFIXES)}
    told = {name: (kind, set(names(labels))) for cell, kind, labels, _ in rows(OWN) for name in names(cell)}
    assert told.keys() == shown.keys()
    for name, family in shown.items():
        kind, labels = told[name]
        assert kind == family.kind, name
        assert not family.labels or family.labels == labels, name  # one without samples does not show its labels


@pytest.mark.slow
def test_every_other_name_is_there_with_what_it_is_the_same_as(families: dict[str, Family]) -> None:
    shown = {name for name in families if name.startswith(ALIAS_PREFIXES)}
    told = {name: names(source)[0] for cell, source, _ in rows(OTHER) for name in names(cell)}
    assert told.keys() == shown
    sources = {alias.name: alias.source for alias in ALIASES}
    assert {name.removesuffix("_total"): source.removesuffix("_total") for name, source in told.items()} == sources
