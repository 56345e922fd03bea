"""What a connection may take of the server, and for how long: real sockets on a real server."""

import json
import socket
import time
from contextlib import ExitStack

import pytest

from octavo.server.http_server import KEEP_ALIVE
from octavo.server.protocol import BoundedProtocol
from octavo.server.request_head import MAX_LINE
from support.processes import SECONDS, eventually

from .raw import GET, HEALTH, post, post_head, read_all, read_answer, served, status, statuses

SOON = 0.3
"""Seconds that a test waits for a bound; nothing is measured with it."""
ENDLESS = b"GET /endless HTTP/1.1\r\nhost: x\r\n\r\n"
LARGE = b"GET /large HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
ROOM = 256 * 2**10
"""What the kernels of both sides may hold of an answer beside what is bounded here."""


def head_of(size: int) -> bytes:
    frame = b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx: %s\r\n\r\n"
    return frame % (b"a" * (size - len(frame) + 2))


def code_of(answer: bytes) -> str:
    assert b"connection: close" in answer.partition(b"\r\n\r\n")[0]
    return str(json.loads(answer.partition(b"\r\n\r\n")[2])["code"])


def test_headers_up_to_their_bound_are_read_and_not_a_byte_more() -> None:
    with served(max_headers=4096) as server:
        assert status(server.exchange(head_of(4096))) == 200
        answer = server.exchange(head_of(4097))
        assert status(answer) == 431
        assert code_of(answer) == "headers_too_large"


@pytest.mark.parametrize(
    ("message", "number"),
    [
        (head_of(2**20), 431),
        (b"GET / HTTP/1.1\r\nhost: x\r\n" + b"x: y\r\n" * 50_000 + b"\r\n", 431),
        (b"GET / HTTP/1.1\r\nhost: x\r\n" + b"x: y\r\n" * 1001 + b"\r\n", 431),
        (b"GET / HTTP/1.1\r\nhost: x\r\nx: " + b"y" * 2**20, 431),
        (b"GET /%s HTTP/1.1\r\nhost: x\r\n\r\n" % (b"a" * MAX_LINE), 414),
        (b"GET /%s HTTP/1.1\r\nhost: x\r\n\r\n" % (b"a" * 2**16), 414),
        (b"GET /" + b"a" * 2**20, 414),
        (post_head(b"transfer-encoding: chunked") + b"0\r\n" + b"x: y\r\n" * 50_000 + b"\r\n", 431),
    ],
)
def test_more_than_a_head_may_have_is_refused(message: bytes, number: int) -> None:
    with served() as server:
        assert status(server.exchange(message)) == number
        assert status(server.exchange(head_of(1000))) == 200


def test_a_connection_that_never_sends_a_byte_is_closed() -> None:
    with served(max_receive_time=SOON) as server:
        assert server.exchange() == b""
        assert server.exchange(b"\r\n\r\n") == b""


@pytest.mark.parametrize("start", [b"G", GET[:-2], post_head(b"content-length: 10") + b"12345"])
def test_a_request_that_does_not_come_whole_in_time_is_told_so(start: bytes) -> None:
    with served(max_receive_time=SOON) as server:
        answer = server.exchange(start)

    assert status(answer) == 408
    assert code_of(answer) == "request_too_slow"


@pytest.mark.parametrize("start", [b"GET / HTTP/1.1\r\nx: ", post_head(b"content-length: 100000")])
def test_bytes_that_drip_gain_no_time(start: bytes) -> None:
    with served(max_receive_time=SOON) as server, server.connect() as connection:
        connection.sendall(start)
        connection.settimeout(0.02)
        received = b""
        for _ in range(500):
            connection.sendall(b"a")
            try:
                received += connection.recv(65536)
            except TimeoutError:
                continue
            break

        assert status(received) == 408


def test_the_application_is_told_that_the_rest_of_a_body_does_not_come() -> None:
    with served(max_receive_time=SOON) as server:
        server.exchange(post_head(b"content-length: 10") + b"12345")

        assert server.app.began.is_set()
        assert server.app.left.wait(SECONDS)


def test_a_body_that_never_comes_after_its_answer_ends_the_connection_without_another_one() -> None:
    with served(max_receive_time=SOON) as server:
        answer = server.exchange(post_head(b"content-length: 10", path=b"/unread"))

        assert statuses(answer) == [200]


def test_time_to_receive_is_counted_for_each_request_and_not_while_it_is_answered() -> None:
    with served(max_receive_time=SOON) as server, server.connect() as connection:
        for _ in range(3):
            connection.sendall(b"GET /waits HTTP/1.1\r\nhost: x\r\n\r\n")
            time.sleep(2 * SOON)
            server.app.released.set()
            assert status(read_answer(connection)) == 200
            server.app.released.clear()
            time.sleep(2 * SOON)  # an idle connection has KEEP_ALIVE seconds
        assert KEEP_ALIVE > 6 * SOON


def test_a_client_that_reads_nothing_stops_its_answer_and_is_then_left() -> None:
    with served(max_unread_time=SOON) as server, server.connect(receive_buffer=4096) as connection:
        connection.sendall(ENDLESS)

        assert server.app.left.wait(SECONDS)
        assert server.app.num_sent < 64 * 2**10 + ROOM
        with pytest.raises(ConnectionResetError):
            read_all(connection)


def test_a_client_that_reads_again_gets_all_of_its_answer() -> None:
    with served() as server, server.connect(receive_buffer=65536) as connection:
        connection.sendall(LARGE)
        eventually(lambda: server.is_held_up)

        assert len(read_all(connection).partition(b"\r\n\r\n")[2]) == 32 * 2**20


def test_a_client_that_reads_steadily_may_take_longer_than_one_that_does_not() -> None:
    with served(max_unread_time=SOON) as server, server.connect(receive_buffer=65536) as connection:
        connection.sendall(LARGE)
        received, deadline = 0, time.monotonic() + 4 * SOON
        while data := connection.recv(2**18):
            received += len(data)
            if time.monotonic() < deadline:
                time.sleep(SOON / 50)

        assert received > 32 * 2**20


def test_a_closed_connection_whose_client_does_not_read_is_not_kept() -> None:
    with (
        served(max_unread_time=SOON, max_unread=64 * 2**20) as server,
        server.connect(receive_buffer=4096) as connection,
    ):
        connection.sendall(LARGE)

        eventually(lambda: bool(server.app.bodies) and server.num_connections == 0)


def test_more_connections_than_there_may_be_are_told_so_and_liveness_is_not_among_them() -> None:
    with served(max_connections=3) as server, ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(server.connect())
        eventually(lambda: server.num_connections == 3)

        refused = server.exchange(post(b"x" * 2**20))
        assert status(refused) == 503
        assert b"retry-after: 1\r\n" in refused
        assert code_of(refused) == "overloaded"
        alive = server.exchange(HEALTH)
        assert status(alive) == 200
        assert b"connection: close" in alive

        stack.close()
        eventually(lambda: server.num_connections == 0)
        assert status(server.exchange(head_of(1000))) == 200


def test_a_flood_of_connections_takes_no_more_than_a_few_beyond_the_bound() -> None:
    with served(max_connections=3) as server, ExitStack() as stack:
        connections = [stack.enter_context(server.connect()) for _ in range(300)]
        answers = [read_all(connection) for connection in connections[150:]]

        assert {statuses(answer)[0] for answer in answers if answer} == {503}
        assert sum(bool(answer) for answer in answers) >= 140
        assert server.num_connections <= 103


def test_requests_that_come_together_are_answered_in_order() -> None:
    last = post(b"ccc", b"connection: close")
    with served() as server:
        answer = server.exchange(post(b"a") + GET + post(b"bb"), last)

    assert statuses(answer) == [200] * 4
    assert [answer.find(text) for text in (b"1 bytes", b"0 bytes", b"2 bytes", b"3 bytes")] == sorted(
        answer.find(text) for text in (b"1 bytes", b"0 bytes", b"2 bytes", b"3 bytes")
    )


def test_a_flood_of_requests_ends_its_connection_after_the_first_answer() -> None:
    with served(max_headers=4096) as server, server.connect() as connection:
        connection.sendall(b"GET /waits HTTP/1.1\r\nhost: x\r\n\r\n" + GET * 4000)
        assert server.app.began.wait(SECONDS)
        [protocol] = server.http.server_state.connections
        assert isinstance(protocol, BoundedProtocol)
        eventually(lambda: not protocol.cycle.keep_alive)
        assert protocol.transport.is_receiving  # so that a reset does not take the answer
        server.app.released.set()

        assert statuses(read_all(connection)) == [200]
        assert len(server.app.scopes) == 1


def test_a_client_that_goes_away_is_noticed_though_its_next_request_has_come() -> None:
    with served() as server:
        with server.connect() as connection:
            connection.sendall(ENDLESS + GET)
            assert connection.recv(1000)

        assert server.app.left.wait(SECONDS)


def test_the_answer_reaches_a_client_that_is_still_sending() -> None:
    with served() as server:
        answer = server.exchange(post(bytes(20 * 2**20), b"connection: close", path=b"/unread"))

    assert status(answer) == 200
    assert answer.endswith(b"unread")


def test_a_million_chunks_of_a_byte_are_one_body_in_few_pieces() -> None:
    with served() as server:
        flood = b"1\r\nx\r\n" * 10**6
        answer = server.exchange(post_head(b"transfer-encoding: chunked", b"connection: close"), flood, b"0\r\n\r\n")

        assert status(answer) == 200
        assert answer.endswith(b"1000000 bytes")
        assert server.app.num_pieces < 10_000


def test_an_answer_to_head_has_no_body() -> None:
    with served() as server:
        answer = server.exchange(b"HEAD / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")

    assert status(answer) == 200
    assert answer.endswith(b"\r\n\r\n")


@pytest.mark.parametrize(
    ("rest", "number"),
    [
        (b"/%s HTTP/1.1\r\nhost: x\r\n\r\n" % (b"a" * MAX_LINE), 414),
        (b"/ HTTP/1.1\r\nhost: x\r\nx: " + b"y" * 2**20, 431),
        (b"/ HTTP/1.1\r\n\r\n", 400),
        (b"/ HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n", 400),
        (b"/ HTTP/1.1\r\nhost: x\r\n", 408),
    ],
)
def test_nor_has_one_that_refuses_it(rest: bytes, number: int) -> None:
    with served(max_receive_time=SOON) as server:
        answer = server.exchange(b"HEAD " + rest)
        others = server.exchange(b"GET " + rest)

    assert (status(answer), status(others)) == (number, number)
    assert answer.endswith(b"\r\n\r\n")
    assert others.startswith(answer)
    assert len(others) > len(answer)


def test_the_kernel_keeps_little_for_a_client_and_asks_for_those_that_vanish() -> None:
    with served() as server, server.connect():
        eventually(lambda: server.num_connections == 1)
        [protocol] = server.http.server_state.connections
        assert isinstance(protocol, BoundedProtocol)
        sock = protocol.transport.get_extra_info("socket")

        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        if hasattr(socket, "TCP_NOTSENT_LOWAT"):
            assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT) <= 64 * 2**10


@pytest.mark.parametrize("at_once", [False, True])
def test_connections_that_ask_nothing_or_read_nothing_do_not_hold_up_the_end(at_once: bool) -> None:
    with served() as server, ExitStack() as stack:
        silent, half, idle, unread = (stack.enter_context(server.connect(receive_buffer=4096)) for _ in range(4))
        half.sendall(GET[:-2])
        idle.sendall(GET)
        read_answer(idle)
        unread.sendall(LARGE)
        eventually(lambda: server.is_held_up)
        server.stop(at_once=at_once)

        eventually(lambda: server.num_connections == 0)
        assert silent.recv(1) == b"" or at_once


def test_spare_connections_make_room_for_a_probe_and_are_told_why() -> None:
    with served(max_connections=3) as server, ExitStack() as stack:
        held = [stack.enter_context(server.connect()) for _ in range(3)]
        eventually(lambda: server.num_connections == len(held))
        flood = [stack.enter_context(server.connect()) for _ in range(150)]
        assert status(server.exchange(HEALTH)) == 200
        answers = [read_all(connection) for connection in flood]
        assert {code_of(answer) for answer in answers} == {"overloaded"}


def test_an_answer_before_the_end_of_the_body_ends_the_connection() -> None:
    with served() as server:
        with server.connect() as connection:
            connection.sendall(post_head(b"content-length: 10", b"expect: 100-continue", path=b"/unread"))
            answer = read_answer(connection)
            connection.sendall(GET)
            assert read_all(connection) == b""

        assert status(answer) == 200
        assert b"connection: close" in answer
        assert [scope["path"] for scope in server.app.scopes] == ["/unread"]


def test_http_1_0_has_no_chunks_and_no_100_continue() -> None:
    old = b"GET /%s HTTP/1.0\r\nexpect: 100-continue\r\ncontent-length: 0\r\n\r\n"
    with served() as server:
        assert server.exchange(old % b"").endswith(b"\r\n\r\n0 bytes")
        with server.connect() as connection:
            connection.sendall(old % b"endless")
            received = b""
            while len(received) < 10_000:
                received += connection.recv(65536)

    head, _, body = received.partition(b"\r\n\r\n")
    assert status(head) == 200
    assert b"transfer-encoding" not in head
    assert set(body) == {0}


@pytest.mark.parametrize("header", [b"content-length: 4 \t", b"content-length: \t 4"])
def test_space_around_a_value_is_nothing(header: bytes) -> None:
    with served() as server:
        assert server.exchange(post_head(header, b"connection: close") + b"body").endswith(b"4 bytes")


@pytest.mark.parametrize("header", [b"transfer-encoding: chunked \t", b"transfer-encoding:\tchunked"])
def test_space_around_a_coding_is_nothing(header: bytes) -> None:
    with served() as server:
        message = post_head(header, b"connection: close") + b"4\r\nbody\r\n0\r\n\r\n"
        assert server.exchange(message).endswith(b"4 bytes")


def test_what_the_server_refuses_itself_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    with served() as server:
        server.exchange(b"GET / HTTP/1.2\r\nhost: x\r\n\r\n")
        server.exchange(b"GET /" + b"a" * 2**20)

    assert server.app.refused == [400, 414]
    assert "a request from 127.0.0.1 is refused with 400" in caplog.text
