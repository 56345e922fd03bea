"""What is told of answers that their clients did not read before the server broke them off."""

import re
import signal
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.processes import Server, eventually, serving

from .raw import read_all, statuses
from .test_process_bounds import ENDLESS, connect, request

TEXT = ("--scripted-text", "x" * 100_000, "--scripted-piece-bytes", "4000")
STREAMED = {**ENDLESS, "max_tokens": 100}
PLAIN = {**ENDLESS, "stream": False, "prompt": ["hi"] * 60, "max_tokens": 25}
"""Megabytes, which the kernel does not take."""
BODIES = pytest.mark.parametrize("body", [STREAMED, {**STREAMED, "n": 3}, PLAIN], ids=["streamed", "choices", "plain"])


@contextmanager
def not_reading(server: Server, body: dict[str, Any]) -> Iterator[None]:
    """A client whose answer has begun."""
    with connect(server, receive_buffer=4096) as unread:
        unread.sendall(request(body))
        assert unread.recv(12) == b"HTTP/1.1 200"
        yield


def told(server: Server) -> list[str]:
    """The statuses of the requests for completions that the log has."""
    lines = (line for line in server.log.splitlines() if "endpoint=/v1/completions" in line)
    return [found[1] for line in lines if (found := re.search(r" status=(\d+)", line))]


@pytest.mark.slow
@BODIES
def test_an_answer_that_is_not_read_in_time_is_told_as_one_that_its_client_left(
    tmp_path: Path, body: dict[str, Any]
) -> None:
    with serving(*TEXT, "--max-unread-time", "1", folder=tmp_path) as server, server.wait_ready().client() as client:
        with not_reading(server, body):
            server.wait_for("does not read")
            counted = 'octavo_requests_total{endpoint="/v1/completions",status="499"} 1.0'
            eventually(lambda: counted in client.get("/metrics").text)
        server.send(signal.SIGTERM)
        assert server.wait() == 0
    assert told(server) == ["499"]


@pytest.mark.slow
@BODIES
@pytest.mark.parametrize("signals", [[signal.SIGTERM], [signal.SIGTERM, signal.SIGINT]], ids=["drained", "at once"])
def test_so_is_one_that_the_end_of_the_server_breaks_off(
    tmp_path: Path, body: dict[str, Any], signals: list[signal.Signals]
) -> None:
    seconds = "0.5" if len(signals) == 1 else "3600"
    with (
        serving(*TEXT, "--drain-timeout", seconds, folder=tmp_path) as server,
        server.wait_ready().client() as client,
        not_reading(server, body),
    ):
        server.send(signals[0])
        for number in signals[1:]:
            eventually(lambda: client.get("/ready").status_code == 503)
            server.send(number)
        server.wait()
    assert told(server) == ["499"]
    assert "Traceback" not in server.log


@pytest.mark.slow
@BODIES
def test_one_that_is_read_is_told_as_whole(tmp_path: Path, body: dict[str, Any]) -> None:
    with serving(*TEXT, folder=tmp_path) as server:
        server.wait_ready()
        for _ in range(5):
            with connect(server) as connection:
                connection.sendall(request(body).replace(b"host:", b"connection: close\r\nhost:", 1))
                assert statuses(read_all(connection)) == [200]
        server.send(signal.SIGTERM)
        assert server.wait() == 0
    assert told(server) == ["200"] * 5


@pytest.mark.slow
@pytest.mark.parametrize("behind", [b"", request(STREAMED)], ids=["alone", "with a request behind it"])
def test_so_is_one_whose_client_goes_with_a_reset_as_soon_as_it_has_read_the_last_event(
    tmp_path: Path, behind: bytes
) -> None:
    with serving(*TEXT, folder=tmp_path) as server:
        server.wait_ready()
        for _ in range(20):
            with connect(server) as connection, connection.makefile("rb") as lines:
                connection.sendall(request({**STREAMED, "max_tokens": 2}) + behind)
                assert b"data: [DONE]\n" in iter(lines.readline, b"")
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        server.send(signal.SIGTERM)
        assert server.wait() == 0
    assert told(server).count("200") == 20
    assert behind or len(told(server)) == 20
