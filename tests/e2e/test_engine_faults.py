"""What clients see of an engine whose process dies, hangs or cannot start."""

import math
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import httpx
import pytest

from support.checks import check_error, check_error_body
from support.processes import Server, eventually, serving

from .wire import Wire, event_of

DEATHS = (signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT)
NUM_OTHERS = 7
MAX_DEATHS = 2 + math.log2(1 + NUM_OTHERS)
_numbers = count()


@pytest.fixture(scope="module")
def scripted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving("--slots", "1", folder=tmp_path_factory.mktemp("scripted")) as server:
        yield server.wait_ready()


def asking(script: str, **fields: object) -> Wire:
    """Each body is another request, so that no test's requests are taken for another's."""
    return {"model": "scripted", "prompt": f"{next(_numbers)}\n@script {script}", **fields}


def is_ready(client: httpx.Client) -> bool:
    return client.get("/ready").status_code == 200


def is_served(client: httpx.Client) -> bool:
    return client.post("/v1/completions", json=asking("{}")).status_code == 200


def metric(client: httpx.Client, line: str) -> float:
    [value] = [text.rpartition(" ")[2] for text in client.get("/metrics").text.splitlines() if text.startswith(line)]
    return float(value)


def failed(client: httpx.Client, body: Wire, status: int) -> str:
    """The code of the one error with which a request ends, of this status; a stream's is its last event."""
    response = client.post("/v1/completions", json=body)
    if response.status_code != 200:
        return str(check_error(response, status, None)["code"])
    *events, last = [event_of(line) for line in response.text.splitlines() if line]
    assert events
    assert not any("error" in event for event in events)
    return str(check_error_body(last, status)["code"])


def last_status(client: httpx.Client, body: Wire) -> int:
    """For a client that asks again as long as the engine is not there."""
    while (status := client.post("/v1/completions", json=body).status_code) == 503:
        eventually(lambda: is_ready(client))
    return status


@pytest.mark.parametrize("number", DEATHS)
def test_an_idle_engine_that_dies_makes_the_server_not_ready_and_comes_back(
    scripted: Server, number: signal.Signals
) -> None:
    with scripted.client() as client:
        [engine] = scripted.children()
        engine.send_signal(number)
        eventually(lambda: not is_ready(client))
        assert client.get("/health").status_code == 200
        eventually(lambda: is_ready(client))
        assert is_served(client)


@pytest.mark.parametrize("number", DEATHS)
def test_an_engine_that_dies_in_a_stream_ends_it_with_an_error_event(scripted: Server, number: signal.Signals) -> None:
    body = asking('{"hang_at": 3}', stream=True)
    with scripted.client() as client:
        with client.stream("POST", "/v1/completions", json=body) as response:
            lines = (line for line in response.iter_lines() if line)
            next(lines)
            [engine] = scripted.children()
            engine.send_signal(number)
            *_, last = lines
        assert check_error_body(event_of(last), 503)["code"] == "engine_died"
        eventually(lambda: is_ready(client))
        assert is_served(client)


@pytest.mark.slow
def test_a_request_that_ends_the_engine_twice_is_refused_from_then_on(tmp_path: Path) -> None:
    with serving(folder=tmp_path) as server, server.wait_ready().client() as client:
        poison = asking('{"exit_at": 1}')
        for fields in ({}, {"stream": True}):
            assert failed(client, {**poison, **fields}, 503) == "engine_died"
            eventually(lambda: is_ready(client))
        for fields in ({}, {"stream": True}, {"seed": 3, "user": "another"}):
            assert failed(client, {**poison, **fields}, 400) == "request_quarantined"
        assert is_served(client)
        assert metric(client, "octavo_engine_restarts_total{") == 2
        assert metric(client, 'octavo_engine_deaths_total{model="scripted",reason="exit"}') == 2
        assert metric(client, "octavo_requests_quarantined_total{") == 1


@pytest.mark.slow
def test_a_request_that_ends_the_engine_among_others_is_found_and_they_are_answered(tmp_path: Path) -> None:
    poison = asking('{"exit_at": 3, "delay": 0.05}')
    others = [asking('{"delay": 0.02}') for _ in range(NUM_OTHERS)]
    with serving(folder=tmp_path) as server, server.wait_ready().client() as client:
        with ThreadPoolExecutor(1 + NUM_OTHERS) as pool:
            ends = list(pool.map(lambda body: last_status(client, body), [poison, *others]))
        assert ends == [400] + [200] * NUM_OTHERS
        assert metric(client, "octavo_engine_restarts_total{") <= MAX_DEATHS
        assert metric(client, "octavo_requests_quarantined_total{") == 1


@pytest.mark.slow
def test_a_step_that_hangs_is_ended_after_the_step_timeout(tmp_path: Path) -> None:
    with serving("--step-timeout", "1", folder=tmp_path) as server, server.wait_ready().client() as client:
        assert failed(client, asking('{"hang_at": 1}'), 503) == "engine_died"
        eventually(lambda: is_ready(client))
        server.wait_for("a step took longer than 1 s")
        assert is_served(client)


@pytest.mark.slow
def test_an_engine_that_cannot_start_is_tried_again_one_process_at_a_time_and_ready_says_why(tmp_path: Path) -> None:
    with (
        serving("--scripted-exit-at", "-1", folder=tmp_path) as server,
        server.wait_for("listens on").client() as client,
    ):
        eventually(lambda: metric(client, "octavo_engine_restarts_total{") >= 3)
        assert len(server.children()) <= 1
        page = client.get("/ready")
        assert page.status_code == 503
        assert "exit code 70" in page.json()["models"][0]["message"]
        assert client.get("/health").status_code == 200


@pytest.mark.parametrize("position", range(65))
def test_a_fault_at_any_token_is_one_error_and_the_place_is_free(scripted: Server, position: int) -> None:
    fault = f'{{"text": "{"x" * 80}", "piece_bytes": 1, "raise_at": {position}}}'
    with scripted.client() as client:
        for is_streamed in (False, True):
            body = asking(fault, max_tokens=80, stream=is_streamed)
            assert failed(client, body, 500) == "engine_error"
        assert is_served(client)
