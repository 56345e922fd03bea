"""Clients that go away in the middle of their answer."""

import json
import socket
import struct
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx
import pytest

from support.processes import SECONDS, Server, eventually

from .wire import completion, num_running, num_waiting

NUM_BATCHES = 10
WITHIN_SECONDS = 10
"""After which a slot that is not free counts as lost. The worst wait is reported: under a second on a free machine."""
RESET_ON_CLOSE = struct.pack("ii", 1, 0)


@dataclass(frozen=True, slots=True)
class Visit:
    """How a client leaves. is_hurried: at once, before any answer. num_events: of its stream that it waits for.
    is_rude: with a reset in place of a proper end."""

    is_streamed: bool
    is_hurried: bool = False
    num_events: int = 0
    is_rude: bool = False


VISITS = (
    *[Visit(is_streamed=False, is_hurried=True)] * 2,
    *[Visit(is_streamed=True, is_hurried=True)] * 2,
    *[Visit(is_streamed=False)] * 4,
    *[Visit(is_streamed=False, is_rude=True)] * 4,
    *[Visit(is_streamed=True, num_events=1)] * 3,
    *[Visit(is_streamed=True, num_events=1, is_rude=True)],
    *[Visit(is_streamed=True, num_events=4)] * 2,
    *[Visit(is_streamed=True, num_events=4, is_rude=True)] * 2,
)
"""20 clients, half of them streamed."""


def send(url: str, visit: Visit) -> socket.socket:
    """A connection on which an endless completion has been asked for."""
    place = urlsplit(url)
    assert place.hostname
    assert place.port
    connection = socket.create_connection((place.hostname, place.port), SECONDS)
    if visit.is_rude:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
    body = json.dumps(completion("The fox", max_tokens=1000, ignore_eos=True, stream=visit.is_streamed)).encode()
    head = f"POST /v1/completions HTTP/1.1\r\nhost: {place.netloc}\r\ncontent-type: application/json\r\n"
    connection.sendall(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
    return connection


def wait_for_events(connection: socket.socket, number: int) -> None:
    received = b""
    while received.count(b"data: {") < number:
        data = connection.recv(4096)
        assert data
        received += data


def leave_all(server: Server, client: httpx.Client) -> None:
    """All 20 ask; those in a hurry go, the others wait until all of them are computed, and go."""
    with ExitStack() as open_connections:
        staying: list[tuple[Visit, socket.socket]] = []
        for visit in VISITS:
            connection = send(server.url, visit)
            if visit.is_hurried:
                connection.close()
            else:
                staying.append((visit, open_connections.enter_context(connection)))
        eventually(lambda: num_running(client.get("/metrics").text) == len(staying))
        for visit, connection in staying:
            wait_for_events(connection, visit.num_events)


def is_idle(client: httpx.Client) -> bool:
    metrics = client.get("/metrics").text
    return num_running(metrics) == num_waiting(metrics) == 0


@pytest.mark.slow
def test_200_of_200_clients_that_close_their_connection_free_their_slot(
    server: Server, client: httpx.Client, record_property: Callable[[str, object], None]
) -> None:
    waits = []
    for _ in range(NUM_BATCHES):
        leave_all(server, client)
        waits.append(eventually(lambda: is_idle(client), WITHIN_SECONDS))

    report = f"{len(VISITS) * len(waits)} closed connections, all slots free after at most {max(waits):.2f} s"
    record_property("closed_connections", report)
    print(f"\n{report}")
    answer = client.post("/v1/completions", json=completion("The fox", max_tokens=4))
    assert answer.status_code == 200
