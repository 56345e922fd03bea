"""The bounds of connections on a whole server: many clients that mean harm, and one that does not."""

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import psutil
import pytest

from support.processes import SECONDS, Server, eventually, serving

from .raw import read_all, statuses

ENDLESS = {"model": "scripted", "prompt": "hi", "max_tokens": 4000, "ignore_eos": True, "stream": True}
HEALTHY = {"model": "scripted", "prompt": "hi", "max_tokens": 4}


def post_to(*headers: bytes) -> bytes:
    lines = [b"POST /v1/completions HTTP/1.1", b"host: localhost", b"content-type: application/json", *headers]
    return b"\r\n".join([*lines, b"", b""])


def connect(server: Server, *, receive_buffer: int | None = None) -> socket.socket:
    place = urlsplit(server.url)
    sock = socket.socket()
    if receive_buffer is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    sock.settimeout(SECONDS)
    sock.connect((place.hostname, place.port))
    return sock


def request(body: object) -> bytes:
    data = json.dumps(body).encode()
    return post_to(b"content-length: %d" % len(data)) + data


def is_healthy(client: httpx.Client) -> bool:
    return client.post("/v1/completions", json=HEALTHY).status_code == 200


def num_running(client: httpx.Client) -> float:
    lines = client.get("/metrics").text.splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith("octavo_requests_running{"))


def memory(server: Server) -> int:
    return int(psutil.Process(server.pid).memory_info().rss)


@contextmanager
def opened(server: Server, number: int, *, receive_buffer: int | None = None) -> Iterator[list[socket.socket]]:
    with ExitStack() as stack:
        yield [stack.enter_context(connect(server, receive_buffer=receive_buffer)) for _ in range(number)]


def is_closed(connection: socket.socket) -> bool:
    """Whether the server has ended it, whatever it has said before."""
    connection.setblocking(False)
    try:
        while connection.recv(65536):
            pass
    except BlockingIOError:
        return False
    except ConnectionError:
        return True
    return True


def drip(connections: list[socket.socket]) -> None:
    for connection in connections:
        try:
            connection.send(b"a")
        except (BlockingIOError, ConnectionError):
            continue


@pytest.mark.slow
def test_200_slow_connections_are_closed_and_hinder_nobody(tmp_path: Path) -> None:
    with (
        serving("--max-receive-time", "2", folder=tmp_path) as server,
        server.wait_ready().client() as client,
        opened(server, 50) as in_head,
        opened(server, 50) as in_body,
        opened(server, 50) as silent,
        opened(server, 50) as in_chunks,
    ):
        for connection in in_head:
            connection.sendall(b"GET /v1/models HTTP/1.1\r\nx: ")
        for connection in in_body:
            connection.sendall(post_to(b"content-length: 100000"))
        for connection in in_chunks:
            connection.sendall(post_to(b"transfer-encoding: chunked") + b"ffff\r\n")
        everyone = [*in_head, *in_body, *silent, *in_chunks]

        def are_all_closed() -> bool:
            drip([*in_head, *in_body, *in_chunks])
            assert is_healthy(client)
            return sum(is_closed(connection) for connection in everyone) == len(everyone)

        eventually(are_all_closed)
        eventually(lambda: psutil.Process(server.pid).num_fds() < 60)


@pytest.mark.slow
def test_100_clients_that_do_not_read_are_left_and_hinder_nobody(tmp_path: Path) -> None:
    text = ("--scripted-text", "x" * 100_000, "--scripted-piece-bytes", "400", "--scripted-delay", "0.02")
    arguments = (*text, "--slots", "101", "--max-unread-time", "2")
    with serving(*arguments, folder=tmp_path) as server, server.wait_ready().client() as client:
        assert is_healthy(client)
        before = most = memory(server)
        with opened(server, 100, receive_buffer=4096) as connections:
            for connection in connections:
                connection.sendall(request(ENDLESS))
            eventually(lambda: num_running(client) == 100)
            while num_running(client):
                assert is_healthy(client)
                most = max(most, memory(server))
            assert is_healthy(client)
            assert all(is_closed(connection) for connection in connections)

    print(f"\n100 unread streams took {(most - before) / 2**20:.1f} MiB")
    assert most - before < 32 * 2**20


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flood", "number", "allowed"),
    [
        (
            [post_to(b"transfer-encoding: chunked"), b"1\r\nx\r\n" * 10**6 + b"0\r\n\r\n"],
            422,
            1,
        ),
        ([b"GET / HTTP/1.1\r\nhost: localhost\r\nx: " + b"a" * 2**20], 431, 4),
        ([b"GET / HTTP/1.1\r\nhost: localhost\r\n" + b"x: y\r\n" * 50_000], 431, 4),
        ([b"GET /" + b"a" * 2**20], 414, 4),
    ],
    ids=["chunks of a byte", "a header of a megabyte", "50,000 headers", "a path of a megabyte"],
)
def test_floods_leave_no_memory_behind(tmp_path: Path, flood: list[bytes], number: int, allowed: int) -> None:
    def send(server: Server) -> None:
        with connect(server) as connection:
            for piece in flood:
                connection.sendall(piece)
            if number == 422:
                connection.sendall(b"GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
            assert statuses(read_all(connection))[0] == number

    with serving(folder=tmp_path) as server:
        server.wait_ready()
        for _ in range(2):
            send(server)  # what is allocated once stays
        before = memory(server)
        for _ in range(3):
            send(server)
        grown = memory(server) - before

    print(f"\n3 floods left {grown / 2**20:.2f} MiB")
    assert grown < allowed * 2**20


def test_more_connections_than_the_server_takes_are_told_so(tmp_path: Path) -> None:
    with serving("--max-connections", "5", folder=tmp_path) as server:
        server.wait_ready()
        with opened(server, 5), server.client() as client:
            refused = client.post("/v1/completions", json=HEALTHY)
            assert refused.status_code == 503
            assert refused.headers["retry-after"] == "1"
            assert refused.json()["error"]["type"] == "overloaded_error"
            assert client.get("/health").status_code == 200
        with server.client() as client:
            eventually(lambda: is_healthy(client))


def test_paths_and_methods_that_are_not_served_are_refused_in_the_one_shape(tmp_path: Path) -> None:
    lines = {
        b"HEAD /health": 200,
        b"OPTIONS /v1/completions": 405,
        b"OPTIONS /nothing": 404,
        b"PURGE /health": 405,
        b"GET //v1/..%2f": 404,
        b"GET /v1/../health": 404,
        b"GET /V1/models": 404,
        b"GET /health/": 404,
        b"GET /%00%ff": 404,
    }
    with serving(folder=tmp_path) as server:
        server.wait_for("listens on")
        for line, number in lines.items():
            with connect(server) as connection:
                connection.sendall(line + b" HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
                answer = read_all(connection)
            body = answer.partition(b"\r\n\r\n")[2]
            assert statuses(answer) == [number], line
            if line.startswith(b"HEAD"):
                assert body == b""
            else:
                assert json.loads(body)["object"] == "error"


CLIENT = """
import socket, sys, time
host, port, request = sys.argv[1], int(sys.argv[2]), sys.stdin.buffer.read()
connections = [socket.create_connection((host, port)) for _ in range(16)]
for connection in connections:
    connection.sendall(request)
for connection in connections:
    assert connection.recv(10)
print("all", flush=True)
time.sleep(600)
"""


def test_a_client_process_that_is_killed_frees_all_it_asked_for(tmp_path: Path) -> None:
    arguments = ("--slots", "16", "--scripted-delay", "0.05")
    with serving(*arguments, folder=tmp_path) as server, server.wait_ready().client() as client:
        place = urlsplit(server.url)
        command = [sys.executable, "-c", CLIENT, str(place.hostname), str(place.port)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(request(ENDLESS))
            process.stdin.close()
            assert process.stdout.readline() == b"all\n"
            eventually(lambda: num_running(client) == 16)
            process.send_signal(signal.SIGKILL)

            eventually(lambda: num_running(client) == 0)


@pytest.mark.parametrize("leave", [lambda c: c.shutdown(socket.SHUT_WR), lambda c: c.close()], ids=["half", "whole"])
def test_a_connection_that_is_closed_by_half_is_closed(tmp_path: Path, leave: Callable[[socket.socket], None]) -> None:
    with (
        serving("--scripted-hang-at", "2", folder=tmp_path) as server,
        server.wait_ready().client() as client,
        connect(server) as connection,
    ):
        connection.sendall(request({**ENDLESS, "stream": False}))
        eventually(lambda: num_running(client) == 1)
        leave(connection)

        eventually(lambda: num_running(client) == 0)
