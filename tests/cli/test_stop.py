"""How a server ends: itself, and the requests that take too long for it."""

import json
import re
import signal
import sqlite3
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.processes import are_gone, eventually, serving

ENDLESS = {"model": "scripted", "prompt": "hi", "max_tokens": 4000, "ignore_eos": True}
STREAMED = {"stream": True, "stream_options": {"include_usage": True}}
CHAT = {"model": "scripted", "messages": [{"role": "user", "content": "hi"}]}
FOX = "The quick brown fox jumps over the lazy dog."
SLOW = ("--scripted-delay", "0.05")
READY = "Ctrl-C stops the server"


@contextmanager
def open_stream(client: httpx.Client) -> Iterator[Iterator[str]]:
    """The lines of an endless completion, of which the first one has come."""
    with client.stream("POST", "/v1/completions", json={**ENDLESS, **STREAMED}) as response:
        lines = response.iter_lines()
        assert next(lines).startswith("data: ")
        yield lines


def events_of(lines: Sequence[str]) -> list[Any]:
    """The events of a stream that must end well."""
    *events, done = [line.removeprefix("data: ") for line in lines if line]
    assert done == "[DONE]"
    return [json.loads(event) for event in events]


def num_running(client: httpx.Client) -> float:
    return gauge(client, "octavo_requests_running")


def num_waiting(client: httpx.Client) -> float:
    return gauge(client, "octavo_requests_waiting")


def gauge(client: httpx.Client, name: str) -> float:
    page = client.get("/metrics").text
    return float(re.findall(rf"^{name}{{.*}} (.*)$", page, re.MULTILINE)[0])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_an_idle_server_and_its_engine(tmp_path: Path, number: signal.Signals) -> None:
    with serving(folder=tmp_path) as server:
        children = server.wait_for(READY).children()
        server.send(number)

        assert server.wait() == 0
        assert children
        assert are_gone(children)
        assert "Traceback" not in server.log


def test_a_signal_while_the_model_loads_ends_the_server_and_its_engine(tmp_path: Path) -> None:
    with serving("--scripted-load-delay", "600", folder=tmp_path) as server:
        children = server.wait_for("Loading scripted").children()
        server.send(signal.SIGTERM)

        assert server.wait() == 0
        assert are_gone(children)


def test_a_running_request_ends_whole_after_the_signal_while_new_ones_are_refused(tmp_path: Path) -> None:
    with serving(*SLOW, folder=tmp_path) as server, server.wait_for(READY).client() as client:
        body = {**ENDLESS, **STREAMED, "max_tokens": 100}
        with client.stream("POST", "/v1/completions", json=body) as response:
            lines = response.iter_lines()
            next(lines)
            server.send(signal.SIGTERM)
            with server.client() as other:
                while other.get("/ready").status_code == 200:
                    pass
                assert other.get("/health").status_code == 200
                refused = other.post("/v1/completions", json=body)
            rest = list(lines)

        assert refused.status_code == 503
        assert refused.headers["retry-after"]
        assert "data: [DONE]" in rest
        assert server.wait() == 0


def test_what_still_runs_when_the_drain_timeout_is_over_ends_as_cancelled(tmp_path: Path) -> None:
    arguments = (*SLOW, "--slots", "3", "--drain-timeout", "1")
    with (
        serving(*arguments, folder=tmp_path) as server,
        server.wait_for(READY).client() as client,
        ThreadPoolExecutor() as threads,
    ):
        children = server.children()
        with open_stream(client) as first, open_stream(client) as second:
            whole = threads.submit(client.post, "/v1/completions", json=ENDLESS)
            eventually(lambda: num_running(client) == 3)
            waiting = threads.submit(client.post, "/v1/chat/completions", json=CHAT)
            eventually(lambda: num_waiting(client) == 1)
            server.send(signal.SIGTERM)
            ends = [list(first), list(second)]
            answers = [whole.result(), waiting.result()]

        assert server.wait() == 0
        assert are_gone(children)
        for lines in ends:
            *_, last, usage = events_of(lines)
            assert last["choices"][0]["finish_reason"] == "cancelled"
            assert usage["usage"]["completion_tokens"] > 0
        for answer in answers:
            assert answer.status_code == 200
            assert answer.json()["choices"][0]["finish_reason"] == "cancelled"
        text = answers[0].json()["choices"][0]["text"]
        assert text
        assert (FOX * 100).startswith(text)
        assert answers[1].json()["choices"][0]["message"]["content"] == ""
        assert "Traceback" not in server.log


def test_an_engine_that_hangs_does_not_keep_a_request_beyond_the_drain_timeout(tmp_path: Path) -> None:
    arguments = ("--scripted-hang-at", "3", "--drain-timeout", "0")
    with serving(*arguments, folder=tmp_path) as server, server.wait_for(READY).client() as client:
        children = server.children()
        with open_stream(client) as lines:
            server.send(signal.SIGTERM)
            *_, last, _ = events_of(list(lines))

        assert last["choices"][0]["finish_reason"] == "cancelled"
        assert server.wait() == 0
        assert are_gone(children)


@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_request_that_takes_too_long_ends_as_cancelled_and_the_next_one_is_served(
    tmp_path: Path, is_streamed: bool
) -> None:
    hangs = {**ENDLESS, "prompt": '@script {"hang_at": 2}', **(STREAMED if is_streamed else {})}
    arguments = ("--request-timeout", "1", "--slots", "1")
    with serving(*arguments, folder=tmp_path) as server, server.wait_for(READY).client() as client:
        cancelled = client.post("/v1/completions", json=hangs)
        served = client.post("/v1/completions", json={"model": "scripted", "prompt": "hi"})

    assert cancelled.status_code == 200
    events = events_of(cancelled.text.splitlines()) if is_streamed else [cancelled.json()]
    choices = [choice for event in events for choice in event["choices"]]
    assert "".join(choice["text"] for choice in choices) == "The quic"
    assert choices[-1]["finish_reason"] == "cancelled"
    assert events[-1]["usage"]["completion_tokens"] == 2
    assert served.json()["choices"][0]["finish_reason"] == "stop"


def test_a_client_that_does_not_read_cannot_keep_the_server_alive(tmp_path: Path) -> None:
    text = "x" * 100_000
    arguments = ("--scripted-text", text, "--scripted-piece-bytes", "50000", "--drain-timeout", "0.2")
    with (
        serving(*arguments, folder=tmp_path) as server,
        server.wait_for(READY).client() as client,
        open_stream(client),
    ):
        server.send(signal.SIGTERM)

        assert server.wait() == 0


def test_a_second_signal_ends_the_server_without_waiting_for_its_streams(tmp_path: Path) -> None:
    arguments = (*SLOW, "--drain-timeout", "3600")
    with serving(*arguments, folder=tmp_path) as server, server.wait_for(READY).client() as client:
        children = server.children()
        with open_stream(client):
            server.send(signal.SIGTERM)
            with server.client() as other:
                while other.get("/ready").status_code == 200:
                    pass
            server.send(signal.SIGTERM)

            assert server.wait() == 128 + signal.SIGTERM
        assert are_gone(children)


def test_a_second_signal_ends_a_server_whose_prompt_log_cannot_be_moved_and_loses_no_row(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'log.db'}"
    body = {"model": "scripted", "prompt": "hi", "log_prompt": True}
    with serving("--log-db", url, folder=tmp_path) as server, server.wait_for(READY).client() as client:
        first = client.post("/v1/completions", json=body).json()["id"]
        eventually(lambda: len(client.get("/v1/logs").json()["data"]) == 1)
        with closing(sqlite3.connect(tmp_path / "log.db", isolation_level=None)) as database:
            database.execute("BEGIN EXCLUSIVE")  # the server waits for it
            second = client.post("/v1/completions", json=body).json()["id"]
            server.send(signal.SIGTERM)
            server.send(signal.SIGINT)
            assert server.wait() in {128 + signal.SIGTERM, 128 + signal.SIGINT}
        assert "Traceback" not in server.log
    with serving("--log-db", url, folder=tmp_path) as server, server.wait_for(READY).client() as client:
        eventually(lambda: len(client.get("/v1/logs").json()["data"]) == 2)
        assert [row["id"] for row in client.get("/v1/logs").json()["data"]] == [second, first]


def test_the_engine_does_not_outlive_a_server_that_is_killed(tmp_path: Path) -> None:
    with serving(folder=tmp_path) as server:
        children = server.wait_for(READY).children()
        server.kill()
        server.wait()

        assert are_gone(children)
