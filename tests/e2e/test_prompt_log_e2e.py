"""The prompt log of real servers: what is acknowledged is there, however they end."""

import asyncio
import json
import random
import signal
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from support.postgres import running_cluster
from support.processes import SECONDS, Server, eventually, run_octavo, serving

LOGS = "/v1/logs"
READY = "Ctrl-C stops the server"
NUM_KILLS = 4
NUM_CLIENTS = 4
COME = "The quick brown fox "
"""Five tokens."""

Wire = dict[str, Any]


@contextmanager
def logging_server(folder: Path, *arguments: str, url: str = "") -> Iterator[Server]:
    with serving("--log-db", url or sqlite(folder), *arguments, folder=folder) as server:
        yield server.wait_for(READY)


def sqlite(folder: Path) -> str:
    return f"sqlite:///{folder / 'log.db'}"


def completion(prompt: str = "hi", **fields: Any) -> Wire:
    return {"model": "scripted", "prompt": prompt, "max_tokens": 1000, "log_prompt": True, **fields}


def exported(folder: Path, url: str = "") -> list[Any]:
    """All rows, oldest first, as they are when no server runs."""
    done = run_octavo("logs", "export", "--log-db", url or sqlite(folder), folder=folder)
    assert (done.returncode, done.stderr) == (0, b"")
    return [json.loads(line) for line in done.stdout.splitlines()]


@dataclass(frozen=True, slots=True)
class Stream:
    """What a client saw of a streamed completion. id: empty where nothing came."""

    id: str
    text: str
    finish_reason: str | None
    is_done: bool

    @classmethod
    def read(cls, response: httpx.Response) -> "Stream":
        events = [line.removeprefix("data: ") for line in response.iter_lines() if line]
        is_done = events[-1:] == ["[DONE]"]
        chunks = [json.loads(event) for event in (events[:-1] if is_done else events)]
        choices = [choice for chunk in chunks for choice in chunk.get("choices", ())]
        reason = next((choice["finish_reason"] for choice in reversed(choices)), None)
        return cls(chunks[0]["id"], "".join(choice["text"] for choice in choices), reason, is_done)


def script(prompt: str, **switches: Any) -> str:
    """A prompt that tells the scripted engine how to answer it."""
    return f"{prompt}\n@script {json.dumps(switches)}\n"


@pytest.mark.slow
def test_what_clients_got_is_in_the_log_while_the_server_runs_and_after(tmp_path: Path) -> None:
    with logging_server(tmp_path) as server, server.client() as client:
        whole = client.post("/v1/completions", json=completion(user="ann")).json()
        with client.stream("POST", "/v1/completions", json=completion(stream=True)) as response:
            stream = Stream.read(response)
        assert client.post("/v1/completions", json=completion(log_prompt=False)).status_code == 200
        rows = client.get(LOGS).json()["data"]
        assert [row["id"] for row in rows] == [stream.id, whole["id"]]
        assert rows[1]["answer"] == whole
        assert rows[0]["answer"]["choices"][0]["text"] == stream.text
        assert client.get(f"{LOGS}/{whole['id']}").json() == rows[1]
        server.send(signal.SIGTERM)
        assert server.wait() == 0
    assert exported(tmp_path) == rows[::-1]
    assert "hi" not in server.log.replace("this", "")


@pytest.mark.slow
def test_a_client_that_leaves_has_a_row_with_what_had_come(tmp_path: Path) -> None:
    with logging_server(tmp_path, "--scripted-hang-at", "5") as server, server.client() as client:
        with client.stream("POST", "/v1/completions", json=completion(stream=True, n=2)) as response:
            events = (line.removeprefix("data: ") for line in response.iter_lines() if line)
            text = ""
            while len(text) < 2 * len(COME):
                text += json.loads(next(events))["choices"][0]["text"]
        eventually(lambda: len(client.get(LOGS).json()["data"]) == 1)
        [row] = client.get(LOGS).json()["data"]
    assert (row["status"], row["finish_reasons"]) == (499, [])
    assert [choice["text"] for choice in row["answer"]["choices"]] == [COME] * 2


def silent(server: Server, body: Wire) -> socket.socket:
    """A connection on which a stream comes that nobody reads."""
    place = urlsplit(server.url)
    assert place.hostname
    assert place.port
    content = json.dumps(body).encode()
    head = f"POST /v1/completions HTTP/1.1\r\nhost: {place.netloc}\r\ncontent-type: application/json\r\n"
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect((place.hostname, place.port))
    connection.sendall(f"{head}content-length: {len(content)}\r\n\r\n".encode() + content)
    return connection


@pytest.mark.slow
def test_of_ten_streams_that_the_end_of_the_server_finds_running_each_has_its_row(tmp_path: Path) -> None:
    """Some end by themselves within the time that they get, some are cancelled, some are not read by their clients."""
    short = [completion(script(f"short {n}", delay=0.02), stream=True) for n in range(4)]
    long = [completion(script(f"long {n}", delay=0.5), stream=True, ignore_eos=True) for n in range(4)]
    endless = {"ignore_eos": True, "max_tokens": 4000, "logprobs": 20, "stream": True}
    unread = [completion(f"unread {n}", **endless) for n in range(2)]
    with (
        logging_server(tmp_path, "--drain-timeout", "2") as server,
        server.client() as client,
        ThreadPoolExecutor(8) as pool,
    ):
        begun = threading.Barrier(9)

        def read(body: Wire) -> Stream:
            with client.stream("POST", "/v1/completions", json=body) as response:
                begun.wait(SECONDS)
                return Stream.read(response)

        streams = [pool.submit(read, body) for body in (*short, *long)]
        connections = [silent(server, body) for body in unread]
        begun.wait(SECONDS)
        for connection in connections:
            assert connection.recv(1)
        server.send(signal.SIGTERM)
        seen = [stream.result(SECONDS) for stream in streams]
        assert server.wait() == 0
        for connection in connections:
            connection.close()
    rows = {row["request"]["prompt"].partition("\n")[0]: row for row in exported(tmp_path)}
    assert len(rows) == 10
    for body, stream in zip((*short, *long), seen, strict=True):
        row = rows[body["prompt"].partition("\n")[0]]
        [choice] = row["answer"]["choices"]
        assert stream.is_done
        assert (row["id"], row["status"]) == (stream.id, 200)
        assert (choice["text"], choice["finish_reason"]) == (stream.text, stream.finish_reason)
    assert {stream.finish_reason for stream in seen[4:]} == {"cancelled"}
    for number in range(2):
        assert rows[f"unread {number}"]["answer"]["choices"][0]["text"].startswith("The quick")


@pytest.mark.slow
def test_what_was_acknowledged_is_there_after_the_server_was_killed(tmp_path: Path) -> None:
    acknowledged: list[str] = []
    chance = random.Random(16)
    for _ in range(NUM_KILLS):
        with logging_server(tmp_path) as server:
            enough = len(acknowledged) + chance.randint(5, 60)
            with ThreadPoolExecutor(NUM_CLIENTS) as pool:
                clients = [pool.submit(ask_until_it_ends, server, acknowledged, n) for n in range(NUM_CLIENTS)]
                eventually(lambda enough=enough: len(acknowledged) >= enough)
                server.kill()
                for each in clients:
                    each.result(SECONDS)
    assert len(set(acknowledged)) == len(acknowledged) >= 5 * NUM_KILLS
    with logging_server(tmp_path) as server, server.client() as client:
        for id in acknowledged:
            row = client.get(f"{LOGS}/{id}").json()
            assert (row["id"], row["answer"]["id"]) == (id, id)
        server.send(signal.SIGTERM)
        assert server.wait() == 0
    rows = [row["id"] for row in exported(tmp_path)]
    assert len(set(rows)) == len(rows)
    assert set(rows) >= set(acknowledged)


def ask_until_it_ends(server: Server, acknowledged: list[str], number: int) -> None:
    """Every second client asks for streams. An answer is acknowledged when its last byte has come."""
    with server.client() as client:
        while True:
            try:
                if number % 2:
                    with client.stream("POST", "/v1/completions", json=completion(stream=True)) as response:
                        stream = Stream.read(response)
                    if stream.is_done:
                        acknowledged.append(stream.id)
                else:
                    acknowledged.append(client.post("/v1/completions", json=completion()).json()["id"])
            except (httpx.HTTPError, IndexError):  # it is dead
                return


@pytest.mark.slow
def test_a_database_that_cannot_be_written_delays_no_answer_and_loses_no_row(tmp_path: Path) -> None:
    (tmp_path / "log.db").mkdir()
    with logging_server(tmp_path) as server, server.client() as client:
        ids = [client.post("/v1/completions", json=completion(str(n))).json()["id"] for n in range(5)]
        eventually(lambda: client.get("/ready").json()["status"] == "degraded")
        ready = client.get("/ready")
        assert ready.status_code == 200
        assert ready.json()["prompt_log"]
        assert str(tmp_path) not in ready.text
        assert "octavo_prompt_log_degraded 1.0" in client.get("/metrics").text
        assert client.get(LOGS).status_code == 503
        (tmp_path / "log.db").rmdir()
        eventually(lambda: client.get("/ready").json()["status"] == "ok")
        assert [row["id"] for row in client.get(LOGS).json()["data"]] == ids[::-1]
        server.send(signal.SIGTERM)
        assert server.wait() == 0
    assert [row["id"] for row in exported(tmp_path)] == ids


@pytest.mark.slow
def test_a_full_spool_refuses_only_what_is_to_be_logged(tmp_path: Path) -> None:
    (tmp_path / "log.db").mkdir()
    with logging_server(tmp_path, "--max-log-spool", "20000") as server, server.client() as client:
        answers = [client.post("/v1/completions", json=completion()) for _ in range(40)]
        logged = [answer.json()["id"] for answer in answers if answer.status_code == 200]
        refused = [answer for answer in answers if answer.status_code != 200]
        assert logged
        assert refused
        for answer in refused:
            assert (answer.status_code, answer.json()["code"]) == (503, "prompt_log_unavailable")
            assert int(answer.headers["retry-after"]) >= 1
        assert client.post("/v1/completions", json=completion(log_prompt=False)).status_code == 200
        assert client.get("/ready").status_code == 200
        (tmp_path / "log.db").rmdir()
        eventually(lambda: client.post("/v1/completions", json=completion("late")).status_code == 200)
        server.send(signal.SIGTERM)
        assert server.wait() == 0
    rows = exported(tmp_path)
    assert [row["id"] for row in rows if row["request"]["prompt"] == "hi"] == logged


@pytest.mark.slow
def test_a_postgresql_that_dies_and_comes_back_has_every_row(tmp_path: Path) -> None:
    with running_cluster() as cluster:
        url = cluster.url(asyncio.run(cluster.new_database()))
        with logging_server(tmp_path, url=url) as server, server.client() as client:
            ids = [acknowledged_id(client, "before\0")]
            assert [row["request"]["prompt"] for row in client.get(LOGS).json()["data"]] == ["before\0"]
            cluster.stop()
            ids += [acknowledged_id(client, f"meanwhile {n}") for n in range(5)]
            eventually(lambda: client.get("/ready").json()["status"] == "degraded")
            assert client.get(LOGS).status_code == 503
            cluster.start()
            eventually(lambda: client.get("/ready").json()["status"] == "ok")
            ids.append(acknowledged_id(client, "after"))
            assert [row["id"] for row in client.get(LOGS).json()["data"]] == ids[::-1]
            server.send(signal.SIGTERM)
            assert server.wait() == 0
        assert [row["id"] for row in exported(tmp_path, url)] == ids


def acknowledged_id(client: httpx.Client, prompt: str) -> str:
    with client.stream("POST", "/v1/completions", json=completion(prompt, stream=True)) as response:
        stream = Stream.read(response)
    assert stream.is_done
    return stream.id
