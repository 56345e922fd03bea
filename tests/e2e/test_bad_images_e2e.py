"""Broken, huge and foreign files instead of pictures, beside a text that must not notice."""

import asyncio
import random
import signal
import zlib
from base64 import b64encode
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from pathlib import Path
from struct import pack

import httpx
import psutil
import pytest
from PIL import Image as Pillow

from support.checks import check_error, check_error_body
from support.pictures import data_url, image_part, plain, saved, text_part
from support.processes import POLL_INTERVAL, Server, are_gone, serving

from .tiny_vlm import (
    CHAT,
    COLOUR,
    FORMATS,
    MODEL,
    MODEL_FILE,
    NO_IMAGE,
    answer_to,
    asking,
    connected,
    draw_clearly,
    repeating,
    said,
    said_in,
    seeing,
)
from .wire import Wire, each_event, num_running, until

LONG = asking(text_part("Tell me a story."), max_tokens=100, ignore_eos=True)
NUM_CUTS = 40
NUM_MUTATIONS = 60
MEGABYTE = 2**20
MAX_GROWTH = 128 * MEGABYTE
"""Of a process that has refused what it should refuse: nothing of a bomb is decoded."""
MAX_PEAK_GROWTH = 16 * 50_000_000 + MAX_GROWTH
"""Of a process that decodes the largest picture: 16 bytes a pixel for a while."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with seeing("--deterministic", folder=tmp_path_factory.mktemp("seeing")) as server:
        yield server


@pytest.fixture
async def client(server: Server) -> AsyncIterator[httpx.AsyncClient]:
    async with connected(server) as client:
        yield client


@pytest.fixture
async def undisturbed(server: Server, client: httpx.AsyncClient) -> AsyncIterator[list[psutil.Process]]:
    """The server and its worker, which must be the same afterwards; all texts beside must be whole and equal."""
    expected = await said(client, LONG)
    processes = [psutil.Process(server.pid), *server.children()]
    async with repeating(client, LONG) as texts:
        yield processes
    assert set(texts) == {expected}
    assert [psutil.Process(server.pid), *server.children()] == processes
    assert await said(client, asking(draw_clearly(1).part(), COLOUR)) == draw_clearly(1).colour


def memory(process: psutil.Process) -> int:
    """Bytes that a process has now."""
    return int(process.memory_info().rss)


def differences(after: Iterable[int], before: Iterable[int]) -> list[int]:
    return [now - then for now, then in zip(after, before, strict=True)]


def peak_memory(process: psutil.Process) -> int:
    """Bytes that a process had at most so far."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    [peak] = [line.split()[1] for line in lines if line.startswith("VmHWM:")]
    return 1024 * int(peak)


def showing(data: bytes, type: str = "image/png") -> Wire:
    return asking(image_part(data_url(data, type)), COLOUR)


async def statuses_of(client: httpx.AsyncClient, files: Sequence[bytes]) -> list[int]:
    """What requests that show them are answered, four at a time; errors must be well-formed ones of the client."""
    turns = asyncio.Semaphore(4)

    async def status_of(data: bytes) -> int:
        async with turns:
            response = await client.post(CHAT, json=showing(data))
        if response.status_code != 200:
            assert check_error(response, 400, "messages")["code"] == "invalid_image"
        return response.status_code

    return await asyncio.gather(*map(status_of, files))


def png(width: int, height: int, scanlines: bytes = b"") -> bytes:
    """With one bit a pixel and a header of this size, whatever the rows are."""
    header = pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(scanlines, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        pack(">I", len(data)) + name + data + pack(">I", zlib.crc32(name + data)) for name, data in chunks
    )


def white_png(width: int, height: int) -> bytes:
    row = b"\0" + b"\xff" * (-(-width // 8))
    return png(width, height, row * height)


BOMBS = {
    "16000 x 16000, all there": lambda: white_png(16000, 16000),
    "50 megapixels and some": lambda: white_png(7072, 7072),
    "the largest header": lambda: png(2**31 - 1, 2**31 - 1),
    "one row": lambda: png(2**31 - 1, 1),
    "no width": lambda: png(0, 5),
    "bitmap": lambda: b"BM" + pack("<IIIIiiHHIIiiII", 70, 0, 54, 40, 60_000, 60_000, 1, 24, 0, 0, 0, 0, 0, 0),
    "gif": lambda: b"GIF89a" + pack("<HHBBB", 65535, 65535, 0, 0, 0) + b";",
}
FOREIGN = {
    "nothing": b"",
    "three zeros": bytes(3),
    "text": b"What colour?",
    "html": b"<html><img src='http://127.0.0.1/'></html>",
    "svg": b"<svg xmlns='http://www.w3.org/2000/svg'><image href='file:///etc/passwd'/></svg>",
    "tiff": saved(Pillow.new("RGB", (8, 8), "red"), "TIFF"),
    "ico": saved(Pillow.new("RGB", (16, 16), "red"), "ICO"),
    "ppm": saved(Pillow.new("RGB", (8, 8), "red"), "PPM"),
    "postscript": saved(Pillow.new("RGB", (8, 8), "red"), "EPS"),
    "pdf": saved(Pillow.new("RGB", (8, 8), "red"), "PDF"),
    "wave": b"RIFF\x24\0\0\0WAVEfmt " + bytes(24),
    "mp4": b"\0\0\0\x18ftypmp42" + bytes(100),
    "noise": random.Random(1).randbytes(10_000),
    "noise like a PNG": b"\x89PNG\r\n\x1a\n" + random.Random(2).randbytes(10_000),
    "noise like a JPEG": b"\xff\xd8\xff" + random.Random(3).randbytes(10_000),
    "noise like a WebP": b"RIFF\x10\x27\0\0WEBPVP8 " + random.Random(4).randbytes(10_000),
    "noise like a GIF": b"GIF89a" + random.Random(5).randbytes(10_000),
    "noise like a bitmap": b"BM" + random.Random(6).randbytes(10_000),
}


@pytest.mark.parametrize("name", BOMBS)
async def test_a_bomb_is_refused_before_it_is_decoded(
    client: httpx.AsyncClient, undisturbed: list[psutil.Process], name: str
) -> None:
    before = list(map(peak_memory, undisturbed))
    assert set(await statuses_of(client, [BOMBS[name]()] * 4)) == {400}
    growth = differences(map(peak_memory, undisturbed), before)
    assert max(growth) < MAX_GROWTH, growth


@pytest.mark.slow
@pytest.mark.parametrize("format", FORMATS)
async def test_the_largest_picture_is_seen_in_bounded_memory(
    client: httpx.AsyncClient,
    undisturbed: list[psutil.Process],
    format: str,
) -> None:
    mode = "1" if format in ("PNG", "BMP") else "L" if format == "GIF" else "RGB"
    data = saved(Pillow.new(mode, (7071, 7071), "white"), format)
    before = list(map(memory, undisturbed))
    answer = await answer_to(client, showing(data))
    growth = differences(map(peak_memory, undisturbed), before)
    assert said_in(answer) == "white"
    assert max(growth) < MAX_PEAK_GROWTH, growth


@pytest.mark.slow
async def test_the_largest_pictures_are_decoded_one_at_a_time(
    client: httpx.AsyncClient, undisturbed: list[psutil.Process]
) -> None:
    pictures = [white_png(7071 - number, 7071) for number in range(6)]
    before = list(map(memory, undisturbed))
    assert set(await statuses_of(client, pictures)) == {200}
    growth = differences(map(peak_memory, undisturbed), before)
    assert max(growth) < MAX_PEAK_GROWTH, growth


@pytest.mark.parametrize("format", FORMATS)
async def test_a_truncated_file_is_refused_or_seen_whole(
    client: httpx.AsyncClient, undisturbed: list[psutil.Process], format: str
) -> None:
    data = saved(draw_clearly(2).picture, format)
    cuts = [data[: len(data) * i // NUM_CUTS] for i in range(NUM_CUTS)]
    statuses = await statuses_of(client, cuts)
    assert statuses.count(400) > NUM_CUTS // 2
    for cut, status in zip(cuts, statuses, strict=True):
        if status == 200:
            assert await said(client, showing(cut)) == draw_clearly(2).colour, f"{len(cut)} of {len(data)} bytes"


@pytest.mark.parametrize("format", FORMATS)
async def test_a_file_with_wrong_bytes_is_refused_or_seen(
    client: httpx.AsyncClient, undisturbed: list[psutil.Process], format: str
) -> None:
    data, source = saved(draw_clearly(3).picture, format), random.Random(4)

    def mutated() -> bytes:
        changed = bytearray(data)
        for _ in range(source.randint(1, 8)):
            changed[source.randrange(len(data))] = source.randrange(256)
        return bytes(changed)

    assert set(await statuses_of(client, [mutated() for _ in range(NUM_MUTATIONS)])) <= {200, 400}


async def test_what_is_no_picture_is_refused(client: httpx.AsyncClient, undisturbed: list[psutil.Process]) -> None:
    statuses = await statuses_of(client, list(FOREIGN.values()))
    assert [name for name, status in zip(FOREIGN, statuses, strict=True) if status != 400] == []


@pytest.mark.parametrize(
    "url",
    [
        *("data:image/png;base64,AAAA", "data:image/png;base64,", "data:image/png;base64,%%%", "data:,x", "data:"),
        *("data:text/html;base64,PGh0bWw+", "data:image/png,AAAA", "data:image/png;base64;AAAA", "data:image/png;x,A"),
        f"data:application/octet-stream;base64,{b64encode(plain('red')).decode()}",
    ],
    ids=lambda url: url[:40],
)
async def test_a_bad_data_url_is_refused(client: httpx.AsyncClient, url: str) -> None:
    response = await client.post(CHAT, json=asking(image_part(url), COLOUR))
    assert check_error(response, 400, "messages")["code"] == "invalid_image"


async def test_a_file_beyond_the_limit_is_refused(client: httpx.AsyncClient, undisturbed: list[psutil.Process]) -> None:
    data = saved(draw_clearly(4).picture, "PNG")
    most, limit = data.ljust(10 * MEGABYTE, b"\0"), 10 * MEGABYTE
    assert await said(client, showing(most)) == draw_clearly(4).colour
    for size in (limit + 1, 11 * MEGABYTE):
        response = await client.post(CHAT, json=showing(data.ljust(size, b"\0")))
        assert str(limit) in check_error(response, 400, "messages")["message"]


async def test_a_body_beyond_the_limit_is_refused(client: httpx.AsyncClient, undisturbed: list[psutil.Process]) -> None:
    body = b'{"messages": "' + b"A" * (33 * MEGABYTE)
    response = await client.post(CHAT, content=body, headers={"content-type": "application/json"})
    check_error(response, 413, None)


async def test_one_bad_picture_of_several_is_enough_to_refuse(client: httpx.AsyncClient) -> None:
    good, broken = draw_clearly(5).part(), image_part(data_url(saved(draw_clearly(5).picture, "PNG")[:-40]))
    for parts in ([good, broken], [broken, good], [broken] * 8):
        check_error(await client.post(CHAT, json=asking(*parts, COLOUR)), 400, "messages")


async def test_a_broken_picture_ends_a_stream_before_it_begins(client: httpx.AsyncClient) -> None:
    body = showing(saved(draw_clearly(6).picture, "JPEG")[:-40]) | {"stream": True}
    check_error(await client.post(CHAT, json=body), 400, "messages")


async def test_memory_stays_bounded(client: httpx.AsyncClient, undisturbed: list[psutil.Process]) -> None:
    """While ever new pictures come."""
    pictures = [saved(Pillow.new("RGB", (1000, 1000), (number, 0, 0)), "PNG") for number in range(100)]
    assert set(await statuses_of(client, pictures[:20])) == {200}
    before = list(map(memory, undisturbed))
    assert set(await statuses_of(client, pictures[20:])) == {200}
    growth = differences(map(memory, undisturbed), before)
    assert max(growth) < MAX_GROWTH, growth


@pytest.mark.slow
async def test_a_killed_worker_ends_the_requests_with_pictures_and_the_next_one_sees(
    server: Server, client: httpx.AsyncClient
) -> None:
    drawing = draw_clearly(8)
    endless = asking(drawing.part(), COLOUR, max_tokens=1900, ignore_eos=True, n=4)
    [worker] = server.children()
    whole = asyncio.create_task(client.post(CHAT, json=endless))
    async with client.stream("POST", CHAT, json=endless | {"stream": True}) as streamed:
        events = each_event(streamed)
        await anext(events)  # before that a fault is an answer of its own, and no event
        await until(client, "/metrics", lambda page: num_running(page.text) == 8)
        worker.send_signal(signal.SIGKILL)
        assert check_error(await whole, 503, None)["code"] == "engine_died"
        last = [event async for event in events][-1]
    assert check_error_body(last, 503)["code"] == "engine_died"
    await until(client, "/ready", lambda page: page.status_code == 200)
    assert are_gone([worker])
    assert await said(client, asking(drawing.part(), COLOUR)) == drawing.colour


@pytest.mark.slow
async def test_a_worker_that_is_killed_while_it_decodes_a_picture_takes_nothing_with_it(
    server: Server, client: httpx.AsyncClient
) -> None:
    [worker] = server.children()
    before = memory(worker)
    large = asyncio.create_task(client.post(CHAT, json=showing(white_png(7071, 7071))))
    while memory(worker) < before + 50 * MEGABYTE:
        assert not large.done()
        await asyncio.sleep(POLL_INTERVAL)
    worker.send_signal(signal.SIGKILL)
    check_error(await large, 503, None)
    await until(client, "/ready", lambda page: page.status_code == 200)
    assert await said(client, asking(draw_clearly(9).part(), COLOUR)) == draw_clearly(9).colour


async def test_a_model_that_sees_nothing_says_so_of_good_and_bad_pictures(tmp_path: Path) -> None:
    with serving(str(MODEL_FILE), "--threads", "1", engine="llama", folder=tmp_path) as blind:
        blind.wait_ready()
        async with connected(blind) as client:
            for part in (draw_clearly(10).part(), image_part("data:image/png;base64,AAAA"), image_part("http://x/")):
                error = check_error(await client.post(CHAT, json=asking(part, COLOUR)), 400, "messages")
                assert error["code"] == "vision_unsupported"
                assert MODEL in error["message"]
            assert await said(client, asking(text_part("<image>"), COLOUR)) != ""
            assert await said(client, asking(COLOUR)) == NO_IMAGE
