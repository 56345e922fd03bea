"""What the files that operators start from say about the server is true of it."""

import configparser
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from octavo.config import Settings, load_settings, options

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
UID = 10001
PRE_STOP = 5
"""Seconds that Kubernetes waits before it sends SIGTERM."""

VARIABLES = {f"OCTAVO_{option.name.upper()}" for option in options()}


def documents(path: str) -> list[Any]:
    return list(yaml.safe_load_all((DEPLOY / path).read_text()))


def unit() -> configparser.SectionProxy:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[assignment, method-assign]  # systemd's names have capitals
    parser.read(DEPLOY / "systemd/octavo.service")
    return parser["Service"]


def kubernetes(kind: str) -> Any:
    [found] = [document for document in documents("kubernetes/octavo.yaml") if document["kind"] == kind]
    return found


def container() -> Any:
    [only] = kubernetes("Deployment")["spec"]["template"]["spec"]["containers"]
    return only


def mounted_files() -> Iterator[str]:
    """Host paths of a compose file's volumes that are files of ours."""
    for service in documents("compose.yaml")[0]["services"].values():
        yield from (volume.split(":")[0] for volume in service.get("volumes", ()) if volume.startswith("./"))


@pytest.fixture(autouse=True)
def clean_surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)


def test_every_variable_of_ours_is_an_option() -> None:
    texts = [path.read_text() for path in (*DEPLOY.rglob("*.yaml"), *DEPLOY.rglob("*.service"), ROOT / "Dockerfile")]
    named = {name for text in texts for name in re.findall(r"OCTAVO_[A-Z_]+\b", text)}
    assert named
    assert named <= VARIABLES


def test_the_settings_of_the_service_can_be_loaded() -> None:
    settings = load_settings({"config": str(DEPLOY / "systemd/octavo.toml")})
    assert settings.keys_file == Path("/var/lib/octavo/keys.json")
    assert settings.host == "127.0.0.1"


def test_no_service_is_killed_while_it_drains() -> None:
    drain = Settings().drain_timeout
    pod = kubernetes("Deployment")["spec"]["template"]["spec"]
    compose = documents("compose.yaml")[0]["services"]["octavo"]
    assert int(unit()["TimeoutStopSec"]) > drain
    assert int(compose["stop_grace_period"].removesuffix("s")) > drain
    assert container()["lifecycle"]["preStop"]["exec"]["command"] == ["sleep", str(PRE_STOP)]
    assert pod["terminationGracePeriodSeconds"] > drain + PRE_STOP


def test_nobody_runs_it_as_root() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text()
    security = kubernetes("Deployment")["spec"]["template"]["spec"]["securityContext"]
    assert f"useradd --uid {UID} " in dockerfile
    assert f"\nUSER {UID}\n" in dockerfile
    assert security["runAsNonRoot"] is True
    assert security["runAsUser"] == UID
    assert unit()["User"] == "octavo"


def test_the_state_is_kept_in_one_folder_everywhere() -> None:
    mounts = {mount["mountPath"] for mount in container()["volumeMounts"]}
    compose = documents("compose.yaml")[0]["services"]["octavo"]
    assert "XDG_STATE_HOME=/var/lib/octavo" in (ROOT / "Dockerfile").read_text()
    assert "/var/lib/octavo" in mounts
    assert compose["volumes"] == ["octavo:/var/lib/octavo"]
    assert "XDG_STATE_HOME=/var/lib" in unit()["Environment"].split()
    assert unit()["StateDirectory"] == "octavo"


def test_the_probes_ask_what_answers_without_a_key() -> None:
    assert container()["livenessProbe"]["httpGet"]["path"] == "/health"
    assert container()["readinessProbe"]["exec"]["command"] == ["octavo", "ready"]


def test_compose_mounts_only_files_that_exist() -> None:
    files = list(mounted_files())
    assert files
    assert [name for name in files if not (DEPLOY / name).exists()] == []


def test_prometheus_scrapes_the_service_of_compose() -> None:
    [scrape] = documents("prometheus/prometheus.yml")[0]["scrape_configs"]
    [target] = [each for config in scrape["static_configs"] for each in config["targets"]]
    services = documents("compose.yaml")[0]["services"]
    assert target == "octavo:8080"
    assert "octavo" in services
    assert scrape["authorization"]["credentials_file"] == "/run/secrets/octavo_key"
    assert services["prometheus"]["secrets"] == ["octavo_key"]
