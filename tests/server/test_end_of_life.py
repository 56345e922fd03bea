"""The end of a whole server under load."""

import json
import signal
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.processes import are_gone, eventually, serving

from .raw import read_all, statuses
from .test_process_bounds import ENDLESS, connect, num_running, post_to, request

SHORT = {**ENDLESS, "max_tokens": 60}
SLOW = ("--scripted-delay", "0.02", "--slots", "10")


def stream(client: httpx.Client, body: dict[str, Any]) -> list[str]:
    with client.stream("POST", "/v1/completions", json=body) as response:
        assert response.status_code == 200, response.read()
        return [line.removeprefix("data: ") for line in response.iter_lines() if line]


@pytest.mark.slow
def test_ten_streams_of_mixed_length_end_whole_or_cancelled_and_the_unread_one_holds_up_nobody(tmp_path: Path) -> None:
    text = ("--scripted-text", "x" * 100_000, "--scripted-piece-bytes", "4000")
    arguments = (*SLOW, *text, "--drain-timeout", "2")
    with (
        serving(*arguments, folder=tmp_path) as server,
        server.wait_ready().client() as client,
        ThreadPoolExecutor(10) as threads,
        connect(server, receive_buffer=4096) as unread,
        connect(server) as silent,
        connect(server) as sending,
        ExitStack() as idle_connections,
    ):
        children, port = server.children(), int(server.url.rpartition(":")[2])
        idle = idle_connections.enter_context(server.client())
        assert idle.get("/v1/models").status_code == 200
        unread.sendall(request(ENDLESS))
        sending.sendall(post_to(b"content-length: 1000") + b"{")
        long = [threads.submit(stream, client, ENDLESS) for _ in range(5)]
        short = [threads.submit(stream, client, SHORT) for _ in range(4)]
        eventually(lambda: num_running(client) == 10 or any(each.done() for each in short))
        server.send(signal.SIGTERM)
        eventually(lambda: client.get("/ready").status_code == 503)
        refused = idle.post("/v1/completions", json=SHORT)

        assert client.get("/health").status_code == 200
        assert refused.status_code == 503
        assert refused.headers["connection"] == "close"
        assert statuses(read_all(sending)) == [503]
        for whole in short:
            *_, last, done = whole.result()
            assert done == "[DONE]"
            assert json.loads(last)["choices"][0]["finish_reason"] == "length"
        for cut in long:
            *_, last, done = cut.result()
            assert done == "[DONE]"
            assert json.loads(last)["choices"][0]["finish_reason"] == "cancelled"
        assert server.wait() == 0
        assert are_gone(children)
        assert silent.recv(1) == b""
        assert "Traceback" not in server.log
        with socket.create_server(("127.0.0.1", port)):
            pass


def test_a_request_in_the_queue_and_one_that_is_being_sent_are_answered_when_the_server_is_told_to_stop(
    tmp_path: Path,
) -> None:
    arguments = ("--scripted-hang-at", "2", "--slots", "1", "--drain-timeout", "0.5")
    with serving(*arguments, folder=tmp_path) as server, server.wait_ready().client() as client:
        children = server.children()
        with ThreadPoolExecutor(10) as threads, connect(server) as sending:
            sending.sendall(post_to(b"transfer-encoding: chunked") + b"5\r\n")
            waiting = [threads.submit(stream, client, ENDLESS) for _ in range(3)]
            eventually(lambda: num_running(client) == 1)
            server.send(signal.SIGTERM)

            assert [json.loads(each.result()[-2])["choices"][0]["finish_reason"] for each in waiting] == [
                "cancelled"
            ] * 3
            assert statuses(read_all(sending)) == [503]
        assert server.wait() == 0
        assert are_gone(children)
        assert "Traceback" not in server.log
        assert "status=503" in server.log
        assert "status=499" not in server.log


def test_a_second_signal_ends_a_server_whose_clients_do_not_read_without_a_word_of_python(tmp_path: Path) -> None:
    text = ("--scripted-text", "x" * 100_000, "--scripted-piece-bytes", "4000")
    with (
        serving(*SLOW, *text, "--drain-timeout", "3600", folder=tmp_path) as server,
        server.wait_ready().client() as client,
    ):
        children = server.children()
        with connect(server, receive_buffer=4096) as unread:
            unread.sendall(request(ENDLESS))
            eventually(lambda: num_running(client) == 1)
            server.send(signal.SIGTERM)
            eventually(lambda: client.get("/ready").status_code == 503)
            server.send(signal.SIGINT)

            assert server.wait() == 128 + signal.SIGINT
        assert are_gone(children)
        assert "Traceback" not in server.log
        assert "ERROR" not in server.log
