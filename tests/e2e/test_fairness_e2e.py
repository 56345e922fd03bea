"""Keys and users who ask for much, and those beside them, at real servers."""

import asyncio
import json
import socket
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from support.processes import SECONDS, Server, eventually, serving

from .wire import MODEL, num_running, num_waiting, until

COMPLETIONS = "/v1/completions"
READY = "Ctrl-C stops the server"
A, B = ({"authorization": f"Bearer key-of-{name}"} for name in "ab")
NUM_FLOODING, NUM_ASKED = 50, 20
LONG_PROMPT = "Once upon a time there was a fox who knew many things, and this is what he knew. " * 8

Wire = dict[str, Any]


@contextmanager
def scripted_server(folder: Path, *arguments: str, **variables: str) -> Iterator[Server]:
    with serving(*arguments, folder=folder, **variables) as server:
        yield server.wait_for(READY)


@asynccontextmanager
async def connected(server: Server) -> AsyncIterator[httpx.AsyncClient]:
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=server.url, timeout=SECONDS, limits=limits, trust_env=False) as client:
        yield client


def completion(prompt: str = "hi", **fields: Any) -> Wire:
    return {"model": "scripted", "prompt": prompt, "max_tokens": 20, "ignore_eos": True, **fields}


@pytest.mark.slow
async def test_a_key_that_floods_is_held_back_and_another_gets_every_answer(tmp_path: Path) -> None:
    limits = ("--slots", "2", "--max-queue-per-slot", "1", "--key-concurrent", "4", "--scripted-delay", "0.001")
    keys = "key-of-a key-of-b"
    answers: Counter[int] = Counter()
    with scripted_server(tmp_path, *limits, OCTAVO_API_KEY=keys) as server:
        async with connected(server) as client:
            is_over = asyncio.Event()

            async def flood() -> None:
                while not is_over.is_set():
                    response = await client.post(COMPLETIONS, json=completion(), headers=A)
                    answers[response.status_code] += 1
                    assert response.status_code == 200 or int(response.headers["retry-after"]) >= 1

            flooding = [asyncio.create_task(flood()) for _ in range(NUM_FLOODING)]
            asked = [await client.post(COMPLETIONS, json=completion(), headers=B) for _ in range(NUM_ASKED)]
            is_over.set()
            await asyncio.gather(*flooding)
    assert [response.status_code for response in asked] == [200] * NUM_ASKED
    assert answers[429] > NUM_FLOODING
    assert answers.keys() <= {200, 429, 503}


@pytest.mark.slow
async def test_a_user_with_one_request_is_next_where_another_has_forty_waiting(tmp_path: Path) -> None:
    ended: list[str] = []
    with scripted_server(tmp_path, "--slots", "1", "--max-queue-per-slot", "50") as server:
        async with connected(server) as client:

            async def ask(user: str) -> None:
                response = await client.post(COMPLETIONS, json=completion(user=user, max_tokens=500))
                assert response.status_code == 200
                ended.append(user)

            async def until_waiting(number: int) -> None:
                await until(client, "/metrics", lambda page: num_waiting(page.text) == number)

            first = completion('@script {"hang_at": 1}', user="heavy", stream=True)
            async with client.stream("POST", COMPLETIONS, json=first) as streamed:
                assert streamed.status_code == 200
                asking = [asyncio.create_task(ask("heavy")) for _ in range(40)]
                await until_waiting(40)
                asking.append(asyncio.create_task(ask("light")))
                await until_waiting(41)
            await asyncio.gather(*asking)  # the only slot is free now
    assert ended.index("light") <= 1, "an answer may be read before another that was there first"
    assert Counter(ended) == {"heavy": 40, "light": 1}


@pytest.mark.slow
async def test_of_ten_at_once_a_slot_and_a_queue_of_one_serve_exactly_two(tmp_path: Path) -> None:
    statuses: asyncio.Queue[int] = asyncio.Queue()
    has_seen = asyncio.Event()
    with scripted_server(tmp_path, "--slots", "1", "--max-queue-per-slot", "1") as server:
        async with connected(server) as client:

            async def ask() -> None:
                body = completion('@script {"hang_at": 1}', stream=True)
                async with client.stream("POST", COMPLETIONS, json=body) as response:
                    assert response.status_code == 200 or int(response.headers["retry-after"]) >= 1
                    statuses.put_nowait(response.status_code)
                    if response.status_code == 200:
                        await has_seen.wait()

            asking = [asyncio.create_task(ask()) for _ in range(10)]
            before = Counter([await statuses.get() for _ in range(9)])
            has_seen.set()  # the one that runs leaves, and the one that waits gets its slot
            await asyncio.gather(*asking)
            assert before + Counter([statuses.get_nowait()]) == {200: 2, 503: 8}
            assert (await client.post(COMPLETIONS, json=completion())).status_code == 200, "all places came back"


@pytest.mark.slow
def test_an_answer_that_nobody_reads_leaves_its_slot_when_its_time_is_over(tmp_path: Path) -> None:
    arguments = ("--slots", "1", "--max-queue-per-slot", "1", "--request-timeout", "2", "--ctx", "1000000")
    text = ("--scripted-text", "x" * 4096, "--scripted-piece-bytes", "4096", "--scripted-delay", "0.0005")
    with scripted_server(tmp_path, *arguments, *text) as server, server.client() as client:
        address = urlsplit(server.url)
        with socket.socket() as unread:
            unread.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            unread.settimeout(SECONDS)
            unread.connect((address.hostname, address.port))
            body = json.dumps(completion(max_tokens=900_000, stream=True)).encode()
            head = f"POST {COMPLETIONS} HTTP/1.1\r\nHost: {address.netloc}\r\nContent-Type: application/json\r\n"
            unread.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            eventually(lambda: num_running(client.get("/metrics").text) == 1)
            eventually(lambda: num_running(client.get("/metrics").text) == 0)
            answer = client.post(COMPLETIONS, json=completion(max_tokens=2)).json()
            assert answer["choices"][0]["finish_reason"] == "length"
            assert _read_answer(unread).count(b'"finish_reason":"cancelled"') == 1


def _read_answer(unread: socket.socket) -> bytes:
    data = b""
    while not data.endswith(b"0\r\n\r\n"):
        part = unread.recv(2**20)
        assert part, "the answer ends as it should"
        data = data[-4096:] + part
    return data


@pytest.mark.slow
def test_a_key_finds_its_own_prompt_computed_and_no_other_keys(tmp_path: Path) -> None:
    keys = "key-of-a key-of-b"
    with serving("--ctx", "512", "--slots", "2", engine="llama", folder=tmp_path, OCTAVO_API_KEY=keys) as server:
        server.wait_for(READY)
        with server.client() as client:

            def num_cached(key: dict[str, str], **fields: Any) -> int:
                body = {"model": MODEL, "prompt": LONG_PROMPT, "max_tokens": 1, **fields}
                usage = client.post(COMPLETIONS, json=body, headers=key).json()["usage"]
                return int(usage["prompt_tokens_details"]["cached_tokens"])

            assert num_cached(A) == 0
            assert num_cached(B) == 0
            assert num_cached(A, user="somebody") > 100
            assert num_cached(B) > 100
