"""Fetching images, from servers that do all they can to be trouble."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from ipaddress import ip_address
from itertools import count

import httpcore
import pytest

from octavo.errors import ImageRefused, ImageUrlRefused, Overloaded
from octavo.service.image_fetcher import MAX_REDIRECTS, ImageFetcher
from octavo.service.image_hosts import ImageHosts
from octavo.service.name_lookup import Resolve
from octavo.service.public_address import Address
from support.canary import CERTIFICATE, Canary, canary, own_certificate

DATA = b"the bytes of a picture"


@pytest.fixture
async def bird() -> AsyncIterator[Canary]:
    async with canary() as bird:
        yield bird


def fetcher(*hosts: str, max_size: int = 1000, max_time: float = 20.0, resolve: Resolve | None = None) -> ImageFetcher:
    return ImageFetcher(ImageHosts(hosts), max_size=max_size, max_time=max_time, resolve=resolve)


class Names:
    """A name server that answers differently each time, the last answer again and again."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self._answers = [tuple(map(ip_address, answer)) for answer in answers]
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[Address]:
        self.asked.append(host)
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


async def test_an_allowed_file_is_fetched_with_nothing_that_tells_of_the_client(bird: Canary) -> None:
    url = bird.serve("/a/b?c=d", DATA)
    assert await fetcher(bird.place).fetch(url + "#part") == DATA
    lines = bird.heads[0].lower().split("\r\n")
    assert lines[0] == "get /a/b?c=d http/1.1"
    assert {line.partition(":")[0] for line in lines[1:] if line} == {"host", "accept", "accept-encoding", "user-agent"}
    assert f"host: {bird.place}" in lines
    assert "accept-encoding: identity" in lines


async def test_an_empty_list_allows_nothing(bird: Canary) -> None:
    url = bird.serve("/", DATA)
    with pytest.raises(ImageUrlRefused, match=bird.place) as refused:
        await fetcher().fetch(url)
    assert (refused.value.code, refused.value.param) == ("image_url_refused", "messages")
    assert bird.num_hits == 0


HERE = (
    *("http://127.0.0.1:{}", "http://localhost:{}", "http://LOCALHOST:{}", "http://localhost.:{}", "http://[::1]:{}"),
    *("http://0.0.0.0:{}", "http://[::]:{}", "http://0:{}", "http://127.1:{}", "http://127.0.1:{}"),
    *("http://2130706433:{}", "http://0x7f000001:{}", "http://0x7F.0.0.1:{}", "http://0177.0.0.1:{}"),
    *("http://017700000001:{}", "http://127.000.000.001:{}", "http://127.0.0.1.:{}", "http://127.255.255.254:{}"),
    *(
        "http://[::ffff:127.0.0.1]:{}",
        "http://[::ffff:7f00:1]:{}",
        "http://[::127.0.0.1]:{}",
        "http://[0:0:0:0:0:0:0:1]:{}",
    ),
    *("http://[64:ff9b::127.0.0.1]:{}", "http://[2002:7f00:1::]:{}", "http://[::1%25lo]:{}", "http://[::1%lo]:{}"),
    *("http://①②⑦.⓪.⓪.①:{}", "http://ⓛocalhost:{}", "http://127。0。0。1:{}", "http://%31%32%37.0.0.1:{}"),
    *("http://user@127.0.0.1:{}", "http://user:word@127.0.0.1:{}", "http://example.com@127.0.0.1:{}"),
    *("http://127.0.0.1:{}\\@example.com", "http://example.com\\@127.0.0.1:{}", "http://127.0.0.1:{}#@example.com"),
    *("http://127.0.0.1:{}?@example.com", "http:\\\\127.0.0.1:{}", "http:/127.0.0.1:{}", "http:127.0.0.1:{}"),
    *("\nhttp://127.0.0.1:{}", "http://127.0.0.1\t:{}", "http://127.0.0.1:{}\x00", "https://127.0.0.1:{}"),
    *("ftp://127.0.0.1:{}", "gopher://127.0.0.1:{}/_GET", "dict://127.0.0.1:{}", "file://127.0.0.1:{}/etc/passwd"),
    *(
        "//127.0.0.1:{}",
        "ws://127.0.0.1:{}",
        "ldap://127.0.0.1:{}",
        "jar:http://127.0.0.1:{}!/",
        "url:http://127.0.0.1:{}",
    ),
)


@pytest.mark.parametrize("spelling", HERE)
async def test_no_spelling_of_this_machine_is_reached_though_all_hosts_are_allowed(spelling: str, bird: Canary) -> None:
    bird.serve("/", DATA)
    with pytest.raises(ImageUrlRefused):
        await fetcher("*", f"*:{bird.port}").fetch(spelling.format(bird.port))
    assert bird.num_hits == 0


@pytest.mark.parametrize("target", HERE)
async def test_no_redirect_leads_to_this_machine(target: str, bird: Canary) -> None:
    async with canary() as front:
        url = front.redirect("/", target.format(bird.port).replace("\n", "").replace("\x00", ""))
        bird.serve("/", DATA)
        with pytest.raises(ImageRefused):
            await fetcher("*", f"*:{bird.port}", front.place).fetch(url)
    assert front.num_hits >= 1
    assert bird.num_hits == 0


async def test_a_redirect_to_a_place_on_the_list_is_followed(bird: Canary) -> None:
    async with canary() as front:
        bird.serve("/picture", DATA)
        url = front.redirect("/", bird.url("/picture"))
        assert await fetcher(front.place, bird.place).fetch(url) == DATA
    assert (front.num_hits, bird.num_hits) == (1, 1)


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"])
@pytest.mark.parametrize("to", ["/b", "b", "//{place}/b", "http://{place}/b", "?/../b", ""])
async def test_redirects_may_be_relative(status: str, to: str, bird: Canary) -> None:
    url = bird.redirect("/a", to.format(place=bird.place), status)
    bird.serve("/b", DATA)
    bird.serve("/a?/../b", DATA)
    if to:
        assert await fetcher(bird.place).fetch(url) == DATA
    else:
        with pytest.raises(ImageUrlRefused, match="redirects"):
            await fetcher(bird.place).fetch(url)


@pytest.mark.parametrize("number", [MAX_REDIRECTS, MAX_REDIRECTS + 1])
async def test_a_thousand_redirects_are_not_followed(number: int, bird: Canary) -> None:
    for step in range(1000):
        bird.redirect(f"/{step}", f"/{step + 1}")
    bird.serve(f"/{number}", DATA)
    if number == MAX_REDIRECTS:
        assert await fetcher(bird.place).fetch(bird.url("/0")) == DATA
    else:
        with pytest.raises(ImageUrlRefused, match="more than 3 redirects"):
            await fetcher(bird.place).fetch(bird.url("/0"))
    assert bird.num_hits == MAX_REDIRECTS + 1


async def test_the_address_that_was_checked_is_the_one_that_is_reached(bird: Canary) -> None:
    """A name that is public when asked first and this machine when asked again is asked but once."""
    names = Names(["203.0.113.1", "192.0.2.1"], ["127.0.0.1"])
    with pytest.raises(ImageUrlRefused, match="not a public one"):
        await fetcher(f"*:{bird.port}", resolve=names).fetch(f"http://rebinding.example:{bird.port}/")
    names = Names(["8.8.8.8"], ["127.0.0.1"])
    with pytest.raises(ImageUrlRefused, match=r"connection failed|not there within"):
        await fetcher(f"*:{bird.port}", max_time=0.3, resolve=names).fetch(f"http://rebinding.example:{bird.port}/")
    assert names.asked == ["rebinding.example"]
    assert bird.num_hits == 0


@pytest.mark.parametrize("addresses", [["127.0.0.1"], ["8.8.8.8", "127.0.0.1"], ["::ffff:127.0.0.1"], ["fe80::1%lo"]])
async def test_a_listed_name_with_any_private_address_is_refused(addresses: list[str], bird: Canary) -> None:
    bird.serve("/", DATA)
    for host in ("internal.example", "*.example", "*"):
        with pytest.raises(ImageUrlRefused, match="not a public one"):
            await fetcher(f"{host}:{bird.port}", resolve=Names(addresses)).fetch(
                f"http://internal.example:{bird.port}/"
            )
    assert bird.num_hits == 0


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
async def test_a_place_that_the_operator_names_is_reached(host: str, bird: Canary) -> None:
    bird.serve("/", DATA)
    assert await fetcher(f"{host}:{bird.port}").fetch(f"http://{host}:{bird.port}/") == DATA


async def test_the_next_address_is_tried_where_one_does_not_answer(bird: Canary) -> None:
    bird.serve("/", DATA)
    names = Names(["255.255.255.255", "127.0.0.1"])  # nobody can be connected with the first
    assert await fetcher(f"localhost:{bird.port}", resolve=names).fetch(f"http://localhost:{bird.port}/") == DATA
    with pytest.raises(ImageUrlRefused, match="connection failed"):
        await fetcher("localhost:1", resolve=Names(["255.255.255.255"])).fetch("http://localhost:1/")


async def test_a_name_that_nobody_knows_is_told_so(bird: Canary) -> None:
    async def fail(host: str, port: int) -> Sequence[Address]:
        raise OSError("[Errno -2] Name or service not known")

    with pytest.raises(ImageUrlRefused) as refused:
        await fetcher("*", resolve=fail).fetch("https://nobody.example/")
    assert refused.value.message == "The image cannot be fetched from nobody.example: the connection failed."


@pytest.mark.parametrize(
    "status", ["204 No Content", "206 Partial Content", "304 Not Modified", "404 Not Found", "500 X"]
)
async def test_a_status_that_is_no_success_is_named_and_the_body_is_not(status: str, bird: Canary) -> None:
    with pytest.raises(ImageUrlRefused, match=status[:3]) as refused:
        await fetcher(bird.place).fetch(bird.serve("/", b"secret" * (status[0] in "45"), status=status))
    assert "secret" not in refused.value.message


@pytest.mark.parametrize("encoding", ["gzip", "br", "deflate", "zstd", "identity, gzip"])
async def test_a_compressed_answer_is_refused(encoding: str, bird: Canary) -> None:
    with pytest.raises(ImageUrlRefused, match="compressed"):
        await fetcher(bird.place).fetch(bird.serve("/", DATA, content_encoding=encoding))


async def test_the_largest_file_is_fetched_and_a_larger_one_is_not(bird: Canary) -> None:
    assert await fetcher(bird.place, max_size=len(DATA)).fetch(bird.serve("/", DATA)) == DATA
    with pytest.raises(ImageRefused, match="too large"):
        await fetcher(bird.place, max_size=len(DATA) - 1).fetch(bird.serve("/", DATA))


async def test_a_length_of_ten_gigabytes_is_believed_before_a_byte_is_read(bird: Canary) -> None:
    with pytest.raises(ImageRefused, match="too large"):
        await fetcher(bird.place).fetch(bird.serve("/", DATA, length=10**10))


async def test_a_body_shorter_than_its_length_is_refused(bird: Canary) -> None:
    with pytest.raises(ImageUrlRefused, match="connection failed"):
        await fetcher(bird.place).fetch(bird.serve("/", DATA, length=len(DATA) + 1))


async def test_a_body_longer_than_its_length_ends_there(bird: Canary) -> None:
    assert await fetcher(bird.place).fetch(bird.serve("/", DATA, length=7)) == DATA[:7]


@pytest.mark.parametrize("head", [b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"])
async def test_a_body_without_end_is_read_up_to_the_limit(head: bytes, bird: Canary) -> None:
    max_size = 10**6
    part = b"x" * 4096 if b"chunked" not in head else b"1000\r\n" + b"x" * 4096 + b"\r\n"

    async def endless(writer: asyncio.StreamWriter) -> None:
        await bird.send(writer, head)
        for _ in count():
            await bird.send(writer, part)

    bird.answers["/"] = endless
    with pytest.raises(ImageRefused, match="too large"):
        await fetcher(bird.place, max_size=max_size).fetch(bird.url())
    assert bird.num_sent < 20 * max_size  # what the kernel's buffers hold is sent too


@pytest.mark.parametrize("start", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\n"])
async def test_a_server_that_trickles_is_left_at_the_deadline(start: bytes, bird: Canary) -> None:
    is_left = asyncio.Event()

    async def trickle(writer: asyncio.StreamWriter) -> None:
        try:
            await bird.send(writer, start)
            for _ in count():
                await bird.send(writer, b"x" if start.endswith(b"\n\r\n") else b"a: b\r\n" if start else b"")
                await asyncio.sleep(0.01)
        except ConnectionError:
            is_left.set()

    bird.answers["/"] = trickle
    with pytest.raises(ImageUrlRefused, match=r"within 0\.2 seconds"):
        await fetcher(bird.place, max_time=0.2).fetch(bird.url())
    if start:
        await is_left.wait()


async def test_the_deadline_is_for_all_redirects_together(bird: Canary) -> None:
    async def slow(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.15)
        await bird.send(writer, b"HTTP/1.1 302 Found\r\nlocation: /\r\ncontent-length: 0\r\n\r\n")

    bird.answers["/"] = slow
    with pytest.raises(ImageUrlRefused, match=r"within 0\.3 seconds"):
        await fetcher(bird.place, max_time=0.3).fetch(bird.url())


@pytest.mark.parametrize(
    "answer",
    [
        *(b"", b"\r\n\r\n", b"hello", b"HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n"),
        *(b"HTTP/1.1 200 OK\r\ncontent-length: -5\r\n\r\n", b"\x16\x03\x01\0\0", b"HTTP/1.1 200 OK\r\n" + b"a" * 10**6),
        *(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nabcdef", b"SSH-2.0-OpenSSH_9.6\r\n"),
        b"HTTP/1.1 302 Found\r\nlocation: \xff\xfe\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 302 Found\r\nlocation: http://[::1\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 302 Found\r\ncontent-length: 0\r\n\r\n",
    ],
)
async def test_what_is_no_answer_is_refused(answer: bytes, bird: Canary) -> None:
    async def say(writer: asyncio.StreamWriter) -> None:
        await bird.send(writer, answer)

    bird.answers["/"] = say
    with pytest.raises(ImageRefused) as refused:
        await fetcher(bird.place).fetch(bird.url())
    assert "Traceback" not in refused.value.message


async def test_a_server_for_whose_certificate_nobody_vouches_is_refused() -> None:
    async with canary(own_certificate()) as bird:
        bird.serve("/", DATA)
        with pytest.raises(ImageUrlRefused, match="connection failed"):
            await fetcher(bird.place).fetch(f"https://{bird.place}/")
    assert bird.heads == []


@pytest.mark.parametrize(("host", "is_its_own"), [("localhost", True), ("127.0.0.2", False)])
async def test_a_certificate_must_be_for_the_host_that_the_url_names(host: str, is_its_own: bool) -> None:
    async with canary(own_certificate()) as bird:
        bird.serve("/", DATA)
        source = fetcher(f"{host}:{bird.port}")
        (await source._trust()).load_verify_locations(CERTIFICATE)
        fetch = source.fetch(f"https://{host}:{bird.port}/")
        if is_its_own:
            assert await fetch == DATA
        else:
            with pytest.raises(ImageUrlRefused, match="connection failed"):
                await fetch


async def test_proxies_of_the_environment_are_not_asked(bird: Canary, monkeypatch: pytest.MonkeyPatch) -> None:
    async with canary() as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://{proxy.place}")
        assert await fetcher(bird.place).fetch(bird.serve("/", DATA)) == DATA
    assert proxy.num_hits == 0


async def test_a_cookie_is_not_brought_to_the_next_server(bird: Canary) -> None:
    bird.serve("/b", DATA)
    url = bird.serve("/a", b"", status="302 Found", location="/b", set_cookie="session=1")
    assert await fetcher(bird.place).fetch(url) == DATA
    assert "cookie" not in bird.heads[1].lower()


class Waiting:
    """Answers of a server that come once they may."""

    def __init__(self, bird: Canary) -> None:
        self._bird = bird
        self.num_open = 0
        self.may_answer = asyncio.Event()
        self._arrival = asyncio.Event()
        bird.answers["/"] = self._wait

    async def _wait(self, writer: asyncio.StreamWriter) -> None:
        self.num_open += 1
        self._arrival.set()
        await self.may_answer.wait()
        await self._bird.send(writer, b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")

    async def until_open(self, number: int) -> None:
        while self.num_open < number:
            self._arrival.clear()
            await asyncio.wait_for(self._arrival.wait(), 20)
        await asyncio.sleep(0.05)  # for one too many


async def test_only_so_many_files_are_fetched_at_a_time(bird: Canary) -> None:
    answers = Waiting(bird)
    places = [f"127.0.0.{number}:{bird.port}" for number in range(1, 9)]
    source = fetcher(*places)
    fetches = [asyncio.create_task(source.fetch(f"http://{place}/")) for place in places for _ in range(5)]
    await answers.until_open(16)
    assert answers.num_open == 16
    answers.may_answer.set()
    assert await asyncio.gather(*fetches) == [b""] * 40


async def test_a_host_that_never_answers_does_not_hold_up_the_others(bird: Canary) -> None:
    answers = Waiting(bird)
    async with canary() as other:
        source = fetcher(bird.place, f"localhost:{other.port}")
        fetches = [asyncio.create_task(source.fetch(bird.url())) for _ in range(40)]
        await answers.until_open(4)
        assert answers.num_open == 4
        other.serve("/", DATA)
        assert await source.fetch(f"http://localhost:{other.port}/") == DATA
        answers.may_answer.set()
        assert await asyncio.gather(*fetches) == [b""] * 40


async def test_a_turn_that_does_not_come_is_the_server_s_load_and_not_the_image_s_fault(bird: Canary) -> None:
    answers = Waiting(bird)
    source = fetcher(bird.place, max_time=0.3)
    fetches = [asyncio.create_task(source.fetch(bird.url())) for _ in range(4)]
    await answers.until_open(4)
    turns = source._turns
    async with AsyncExitStack() as taken:  # by fetches that just came
        for fetch in fetches:
            with pytest.raises(ImageUrlRefused, match=r"within 0\.3 seconds"):
                await fetch
        for _ in range(4):
            await taken.enter_async_context(turns.turn("127.0.0.1"))
        with pytest.raises(Overloaded, match="try again later"):
            await source.fetch(bird.url())
    answers.may_answer.set()
    assert await source.fetch(bird.url()) == b""


async def test_waiting_for_a_turn_takes_no_time_from_the_fetch(bird: Canary) -> None:
    async def slow(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.6)
        await bird.send(writer, b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")

    bird.answers["/"] = slow
    source = fetcher(bird.place, max_time=1.0)
    assert await asyncio.gather(*(source.fetch(bird.url()) for _ in range(8))) == [b""] * 8


@pytest.mark.parametrize("error", [httpcore.ConnectTimeout, httpcore.ReadTimeout, httpcore.WriteTimeout])
async def test_every_time_out_is_told_as_one(error: type[Exception], bird: Canary) -> None:
    async def fail(host: str, port: int) -> Sequence[Address]:
        raise error

    with pytest.raises(ImageUrlRefused, match="within 20 seconds"):
        await fetcher(bird.place, resolve=fail).fetch(bird.url())
