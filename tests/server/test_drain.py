"""Which requests a server that ends waits for, and what it tells the others."""

import asyncio
import json

from support.processes import SECONDS, eventually

from .raw import GET, HEALTH, Served, post_head, read_all, read_answer, served, status, statuses

WAITS = b"GET /waits HTTP/1.1\r\nhost: x\r\n\r\n"


def start_drain(server: Served) -> "asyncio.Task[None]":
    async def start() -> "asyncio.Task[None]":
        task = asyncio.create_task(server.drain.drained())
        await asyncio.sleep(0)
        return task

    return asyncio.run_coroutine_threadsafe(start(), server.loop).result(SECONDS)


def test_new_requests_are_refused_on_open_and_on_new_connections_and_liveness_answers() -> None:
    with served() as server, server.connect() as kept, server.connect() as kept_alive, server.connect() as running:
        kept.sendall(GET)
        assert status(read_answer(kept)) == 200
        running.sendall(WAITS)
        assert server.app.began.wait(SECONDS)
        start_drain(server)

        kept.sendall(GET)
        refused = [read_all(kept), server.exchange(GET), server.exchange(post_head(b"content-length: 5"), b"12345")]
        kept_alive.sendall(HEALTH)
        alive = read_answer(kept_alive)
        server.app.released.set()

        for answer in refused:
            head, _, body = answer.partition(b"\r\n\r\n")
            assert status(answer) == 503
            assert b"connection: close" in head
            assert b"retry-after: 1" in head
            assert json.loads(body)["code"] == "engine_unavailable"
        assert status(alive) == 200
        assert read_answer(running).endswith(b"released")


def test_a_whole_answer_counts_as_running_until_it_is_read() -> None:
    with served(max_unread=64 * 2**20) as server, server.connect(receive_buffer=65536) as connection:
        connection.sendall(b"GET /large HTTP/1.1\r\nhost: x\r\n\r\n")
        assert server.app.began.wait(SECONDS)
        start_drain(server)

        async def read() -> None:
            await server.drain.drained()
            await server.http.answers_read()

        answers_read = asyncio.run_coroutine_threadsafe(read(), server.loop)
        assert status(connection.recv(10000)) == 200
        assert not answers_read.done()
        assert len(read_all(connection)) > 31 * 2**20
        answers_read.result(SECONDS)


def test_metrics_are_told_to_the_last() -> None:
    with served() as server, server.connect() as running:
        running.sendall(WAITS)
        assert server.app.began.wait(SECONDS)
        start_drain(server)

        assert (
            status(server.exchange(GET.replace(b"/ ", b"/metrics ").replace(b"x\r", b"x\r\nconnection: close\r")))
            == 200
        )
        assert server.exchange(GET)
        assert server.app.refused == [503]
        server.app.released.set()
        read_answer(running)


def test_connections_without_a_request_are_not_waited_for() -> None:
    with served() as server, server.connect() as silent, server.connect() as half, server.connect() as idle:
        half.sendall(GET[:-2])
        idle.sendall(GET)
        read_answer(idle)

        task = start_drain(server)

        eventually(task.done)
        assert silent.fileno() > 0


def test_what_has_no_answer_when_the_time_is_over_is_told_so() -> None:
    with served() as server, server.connect() as sending, server.connect() as endless, server.connect() as waiting:
        sending.sendall(post_head(b"content-length: 10") + b"12345")
        endless.sendall(b"GET /endless HTTP/1.1\r\nhost: x\r\n\r\n")
        assert endless.recv(10)
        waiting.sendall(WAITS)
        eventually(lambda: len(server.app.scopes) == 3 and len(server.app.bodies) == 2)
        task = start_drain(server)
        server.loop.call_soon_threadsafe(server.drain.refuse_unanswered)

        assert statuses(read_all(sending)) == statuses(read_all(waiting)) == [503]
        assert not task.done()
        endless.close()
        eventually(task.done)


def test_a_fault_outside_of_the_application_has_the_one_shape() -> None:
    with served() as server:
        server.app.scopes = None  # type: ignore[assignment]  # so that it fails before anything else
        answer = server.exchange(GET.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n"))

    head, _, body = answer.partition(b"\r\n\r\n")
    assert status(head) == 500
    assert json.loads(body)["error"]["code"] == "internal_error"
