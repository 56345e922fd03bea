"""The dashboard and the alerts name only what a server's /metrics has."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.metrics_text import Family, families_of, labels_of, metrics_of
from support.processes import serving

DEPLOY = Path(__file__).parents[2] / "deploy"
DASHBOARD = DEPLOY / "grafana/octavo.json"
OF_PROMETHEUS = {"instance", "job", "le"}

if not Path("/proc/stat").exists():
    pytest.skip("this system tells nothing of processes", allow_module_level=True)


@pytest.fixture(scope="module")
def families(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Family]:
    """Of a server that was asked by a user, and that has refused something."""
    with serving("--alias", "demo", folder=tmp_path_factory.mktemp("dashboard"), OCTAVO_API_KEY="k" * 40) as server:
        server.wait_for("Ctrl-C")
        with server.client() as client:
            client.headers["authorization"] = f"Bearer {'k' * 40}"
            body = {"model": "demo", "prompt": "x", "max_tokens": 5, "user": "ann"}
            assert client.post("/v1/completions", json=body).status_code == 200
            assert client.post("/v1/completions", json={}).status_code == 422
            return families_of(client.get("/metrics").text)


def dashboard() -> Any:
    return json.loads(DASHBOARD.read_text())


def panels() -> list[Any]:
    return [panel for panel in dashboard()["panels"] if panel["type"] != "row"]


def dashboard_queries() -> list[str]:
    return [target["expr"] for panel in panels() for target in panel["targets"]]


def alerts() -> list[Any]:
    document = yaml.safe_load((DEPLOY / "prometheus/alerts.yml").read_text())
    return [rule for group in document["groups"] for rule in group["rules"]]


def check(query: str, families: dict[str, Family]) -> None:
    by_sample = {sample: family for family in families.values() for sample in family.samples}
    names = metrics_of(query) - {"up"}
    assert names <= by_sample.keys(), query
    used = [by_sample[name] for name in names]
    known = {label for family in used for label in family.labels}
    if all(family.labels for family in used):  # one without samples does not show its labels
        assert labels_of(query) - OF_PROMETHEUS <= known, query


@pytest.mark.slow
@pytest.mark.parametrize("query", dashboard_queries())
def test_what_a_panel_asks_for_is_there(query: str, families: dict[str, Family]) -> None:
    assert metrics_of(query)
    check(query, families)


@pytest.mark.slow
@pytest.mark.parametrize("alert", alerts(), ids=lambda alert: str(alert["alert"]))
def test_what_an_alert_asks_for_is_there(alert: Any, families: dict[str, Family]) -> None:
    assert metrics_of(alert["expr"])
    check(alert["expr"], families)
    assert alert["labels"]["severity"] in ("page", "ticket")
    assert alert["annotations"]["summary"]


def test_alerts_have_names_of_their_own() -> None:
    names = [alert["alert"] for alert in alerts()]
    assert len(names) == len(set(names))


def test_the_dashboard_is_what_its_maker_makes() -> None:
    made = subprocess.run(
        [sys.executable, DEPLOY / "grafana/make_dashboard.py"], capture_output=True, text=True, check=True
    )
    assert made.stdout == DASHBOARD.read_text(), "python deploy/grafana/make_dashboard.py > deploy/grafana/octavo.json"


def test_every_panel_asks_the_data_source_that_is_chosen() -> None:
    [chosen] = [variable for variable in dashboard()["templating"]["list"] if variable["type"] == "datasource"]
    assert chosen["query"] == "prometheus"
    targets = [target for panel in panels() for target in panel["targets"]]
    assert {each["datasource"]["uid"] for each in (*panels(), *targets)} == {"${datasource}"}


def test_panels_have_numbers_and_places_of_their_own() -> None:
    every = dashboard()["panels"]
    assert len({panel["id"] for panel in every}) == len(every)
    places = list(_covered(every))
    assert len(places) == len(set(places))
    assert max(x for x, _ in places) < 24


def _covered(every: list[Any]) -> Iterator[tuple[int, int]]:
    for panel in every:
        place = panel["gridPos"]
        for x in range(place["x"], place["x"] + place["w"]):
            yield from ((x, y) for y in range(place["y"], place["y"] + place["h"]))


@pytest.mark.parametrize(
    ("query", "names", "labels"),
    [
        (
            'sum by (le) (rate(octavo_a_bucket{model=~"$model",x!="by (y)"}[5m]))',
            {"octavo_a_bucket"},
            {"le", "model", "x"},
        ),
        ("process_a / on(job) octavo_b > 0.5", {"process_a", "octavo_b"}, {"job"}),
        ('up{job="octavo"} == 0', {"up"}, {"job"}),
    ],
)
def test_names_are_found_in_queries(query: str, names: set[str], labels: set[str]) -> None:
    assert (metrics_of(query), labels_of(query)) == (names, labels)
