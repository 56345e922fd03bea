"""Log lines, for people and for machines."""

import json
import logging
from collections.abc import Iterator

import pytest

from octavo.telemetry import Phases, RequestReport, configure_logging, log_request


@pytest.fixture(autouse=True)
def _restored_root() -> Iterator[None]:
    root, ours = logging.getLogger(), logging.getLogger("octavo")
    handlers, level, our_level = root.handlers[:], root.level, ours.level
    root.handlers[:] = []  # so that nobody else's handler is closed
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    ours.setLevel(our_level)


def log_one(model: str = "smol", ignored_fields: tuple[str, ...] = ("colour",)) -> None:
    report = RequestReport(
        id="cmpl-1",
        method="POST",
        endpoint="/v1/completions",
        status=200,
        started=1e9,
        seconds=0.12345,
        key_id="key-1",
        user="8d0f",
        model=model,
        prompt_tokens=5,
        generated_tokens=16,
        cached_tokens=4,
        phases=Phases(admitted=0.01, computed=0.03, first_token=0.05, ended=0.12),
        finish_reasons=("stop", "length"),
        ignored_fields=ignored_fields,
        error_code="engine_died",
    )
    log_request(report, trace_id="4bf9")


def test_a_request_leaves_one_json_line_with_all_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("info", as_json=True)
    log_one()
    output = capsys.readouterr()
    assert output.out == ""
    line = json.loads(output.err)
    assert output.err.count("\n") == 1
    assert line.pop("time").endswith("+00:00")
    assert line == {
        "level": "info",
        "logger": "octavo.request",
        "message": "request",
        "id": "cmpl-1",
        "key": "key-1",
        "user": "8d0f",
        "endpoint": "/v1/completions",
        "model": "smol",
        "status": 200,
        "prompt_tokens": 5,
        "generated_tokens": 16,
        "cached_tokens": 4,
        "seconds": 0.123,
        "seconds_to_first_token": 0.05,
        "queue_seconds": 0.02,
        "finish_reasons": ["stop", "length"],
        "ignored_fields": ["colour"],
        "error": "engine_died",
        "trace_id": "4bf9",
    }


def test_a_request_leaves_one_line_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("INFO", as_json=False)
    log_one(ignored_fields=())
    _, line = capsys.readouterr().err.rstrip("\n").split(" ", 1)
    assert line == (
        "INFO    request id=cmpl-1 key=key-1 user=8d0f endpoint=/v1/completions model=smol status=200 prompt_tokens=5"
        " generated_tokens=16 cached_tokens=4 seconds=0.123 seconds_to_first_token=0.05 queue_seconds=0.02"
        " finish_reasons=stop,length error=engine_died trace_id=4bf9"
    )


@pytest.mark.parametrize("name", ["a\nforged line", "\x1b[2J", "a status=500", "\u2028", "\ud800"])
def test_a_client_cannot_forge_a_line_a_field_or_a_terminal_sequence(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    configure_logging("info", as_json=False)
    log_one(model=name)
    line = capsys.readouterr().err
    assert f"model={json.dumps(name)} status=200" in line
    assert line.rstrip("\n").isprintable()


@pytest.mark.parametrize("as_json", [True, False])
def test_what_a_client_sent_is_cut_to_a_bounded_length(as_json: bool, capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("info", as_json)
    log_one(model="m" * 10**6, ignored_fields=tuple(str(i) * 1000 for i in range(1000)))
    line = capsys.readouterr().err
    assert len(line) < 10_000
    assert "and 980 more" in line


def test_records_below_the_level_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("warning", as_json=True)
    log_one()
    logging.getLogger("octavo").warning("loading %s", "slow")
    assert [json.loads(line)["message"] for line in capsys.readouterr().err.splitlines()] == ["loading slow"]


def test_libraries_only_warn_whatever_the_level(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("debug", as_json=True)
    for name in ("octavo.store", "aiosqlite"):
        logging.getLogger(name).debug("of %s", name)
        logging.getLogger(name).warning("from %s", name)
    messages = [json.loads(line)["message"] for line in capsys.readouterr().err.splitlines()]
    assert messages == ["of octavo.store", "from octavo.store", "from aiosqlite"]


@pytest.mark.parametrize("as_json", [True, False])
def test_an_exception_comes_with_its_traceback(as_json: bool, capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("info", as_json)
    try:
        raise RuntimeError("lost")
    except RuntimeError:
        logging.getLogger("octavo").exception("failed")
    assert "RuntimeError: lost" in capsys.readouterr().err


def test_configuring_again_replaces_the_earlier_form(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("info", as_json=False)
    configure_logging("info", as_json=True)
    log_one()
    assert json.loads(capsys.readouterr().err)["id"] == "cmpl-1"


def test_an_unknown_level_is_refused() -> None:
    with pytest.raises(ValueError, match="LOUD"):
        configure_logging("loud", as_json=False)
