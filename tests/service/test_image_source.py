"""Images of a request: those in it, those elsewhere, and what is told of them."""

import asyncio
from base64 import b64encode, urlsafe_b64encode
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from octavo.core.images import Image
from octavo.core.limits import Limits
from octavo.errors import ImageRefused
from octavo.service import ImageHosts, ImageLink, ImageSource
from octavo.service.data_url import data_of
from octavo.telemetry.metrics import Metrics
from support.canary import Canary, canary
from support.pictures import data_url, plain

RED, BLUE = plain("red"), plain("blue", "JPEG")


@pytest.fixture
async def bird() -> AsyncIterator[Canary]:
    async with canary() as bird:
        yield bird


class Source:
    """An image source, and the metrics that it tells."""

    def __init__(self, *hosts: str, limits: Limits | None = None) -> None:
        self._registry = CollectorRegistry()
        self.source = ImageSource(limits or Limits(), Metrics(self._registry), ImageHosts(hosts))

    async def images(self, *links: ImageLink) -> dict[ImageLink, Image]:
        return dict(await self.source.images(links, model="demo"))

    def count(self, source: str, result: str) -> float | None:
        labels = {"model": "demo", "source": source, "result": result}
        return self._registry.get_sample_value("octavo_images_total", labels)

    @property
    def num_fetches(self) -> float | None:
        return self._registry.get_sample_value("octavo_image_fetch_seconds_count")


async def test_images_come_from_requests_and_from_elsewhere(bird: Canary) -> None:
    links = [ImageLink(data_url(RED)), ImageLink(bird.serve("/blue", BLUE)), ImageLink(data_url(RED), is_coarse=True)]
    source = Source(bird.place)
    assert await source.images(*links) == {
        links[0]: Image.of(RED),
        links[1]: Image.of(BLUE),
        links[2]: Image.of(RED, is_coarse=True),
    }
    assert (source.count("data", "ok"), source.count("http", "ok"), source.num_fetches) == (2, 1, 1)


async def test_the_same_link_is_fetched_once(bird: Canary) -> None:
    link = ImageLink(bird.serve("/", RED))
    assert await Source(bird.place).images(link, link, ImageLink(link.url)) == {link: Image.of(RED)}
    assert bird.num_hits == 1


async def test_images_are_fetched_at_the_same_time(bird: Canary) -> None:
    are_both_here = asyncio.Barrier(2)
    for path in ("/a", "/b"):
        bird.serve(path, RED)
        answer = bird.answers[path]

        async def wait(writer: asyncio.StreamWriter, answer=answer) -> None:  # type: ignore[no-untyped-def]
            await are_both_here.wait()
            await answer(writer)

        bird.answers[path] = wait
    assert len(await Source(bird.place).images(ImageLink(bird.url("/a")), ImageLink(bird.url("/b")))) == 2


async def test_one_refused_image_refuses_all_and_waits_for_none(bird: Canary) -> None:
    async def never(writer: asyncio.StreamWriter) -> None:
        await writer.wait_closed()

    bird.answers["/"] = never
    source = Source(bird.place)
    with pytest.raises(ImageRefused, match="format") as refused:
        await source.images(ImageLink(bird.url("/")), ImageLink(data_url(b"no picture")))
    assert refused.value.code == "invalid_image"
    assert source.count("data", "refused") == 1


async def test_a_fetched_file_is_checked_like_any_other(bird: Canary) -> None:
    source = Source(bird.place)
    with pytest.raises(ImageRefused, match="format"):
        await source.images(ImageLink(bird.serve("/", b"<html>", content_type="image/png")))
    assert (source.count("http", "refused"), source.num_fetches) == (1, 1)


async def test_what_is_refused_before_it_is_fetched_counts_too() -> None:
    source = Source()
    with pytest.raises(ImageRefused):
        await source.images(ImageLink("https://example.com/x.png"))
    assert source.count("http", "refused") == 1


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (Limits(max_image_size=len(RED) - 1), f"at most {len(RED) - 1} bytes"),
        (Limits(max_image_pixels=63), "8 x 8 pixels; at most 63"),
    ],
)
async def test_the_limits_are_the_server_s(limits: Limits, message: str, bird: Canary) -> None:
    for url in (data_url(RED), bird.serve("/", RED)):
        with pytest.raises(ImageRefused, match=message):
            await Source(bird.place, limits=limits).images(ImageLink(url))
    await Source(bird.place, limits=Limits(max_image_size=len(RED), max_image_pixels=64)).images(ImageLink(url))


@given(st.binary(max_size=200))
def test_the_data_of_a_url_are_those_that_were_put_in(data: bytes) -> None:
    text = b64encode(data).decode()
    broken = "\r\n".join(text[start : start + 7] for start in range(0, len(text), 7))
    for written in (text, text.rstrip("="), broken):
        assert data_of(f"data:image/png;base64,{written}", max_size=200) == data


@pytest.mark.parametrize(
    "head", ["data:image/png;base64,", "DATA:Image/PNG;BASE64,", "data:image/svg+xml;charset=utf-8;base64,"]
)
def test_the_head_of_a_data_url_may_be_written_in_several_ways(head: str) -> None:
    assert data_of(head + "QUJD", max_size=10) == b"ABC"


@pytest.mark.parametrize(
    "url",
    [
        *("data:", "data:,", "data:image/png", "data:image/png,QUJD", "data:;base64,QUJD", "data:base64,QUJD"),
        *("data:text/plain;base64,QUJD", "data:text/html;base64,QUJD", "data:application/pdf;base64,QUJD"),
        *("data:image/png;base64;base64,QUJD", "data:image/png;base64 ,QUJD", "data: image/png;base64,QUJD"),
        *(
            "data:image/;base64,QUJD",
            "data:image/png;x;base64,QUJD",
            "data:image/png;base64",
            "data://image/png;base64,",
        ),
        *("data:image/" + "a" * 300 + ";base64,QUJD", "data:image/png\x00;base64,QUJD"),
    ],
)
def test_what_is_no_data_url_of_an_image_is_refused(url: str) -> None:
    with pytest.raises(ImageRefused, match="must begin with data:image/TYPE;base64") as refused:
        data_of(url, max_size=1000)
    assert (refused.value.code, refused.value.param) == ("invalid_image", "messages")


@pytest.mark.parametrize(
    "text",
    [
        "%%%",
        "A",
        "AAAAA",
        "QUJ%44",
        "QUJ-",
        "QU==JD",
        "é",
        "QUJD,QUJD",
        "=QUJD",
        urlsafe_b64encode(b"\xff\xff\xff").decode(),
    ],
)
def test_what_is_no_base64_is_refused(text: str) -> None:
    with pytest.raises(ImageRefused, match="not base64"):
        data_of(f"data:image/png;base64,{text}", max_size=1000)


def test_a_data_url_is_measured_before_it_is_decoded() -> None:
    assert data_of("data:image/png;base64," + b64encode(bytes(100)).decode(), max_size=100) == bytes(100)
    with pytest.raises(ImageRefused, match="at most 100 bytes"):
        data_of("data:image/png;base64," + "%" * 140, max_size=100)


@pytest.mark.parametrize("filling", [" ", "\n", "A", "é"])
def test_a_text_much_longer_than_the_limit_s_is_refused_whatever_it_is(filling: str) -> None:
    with pytest.raises(ImageRefused, match="at most 100 bytes"):
        data_of("data:image/png;base64,QUJD" + filling * 1000, max_size=100)
    assert data_of("data:image/png;base64,QUJD" + " \t\r\n\f\v" * 20, max_size=100) == b"ABC"
