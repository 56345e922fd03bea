"""Looking up names, with a resolver that the test holds up."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from ipaddress import ip_address
from typing import Any

import pytest

from octavo.errors import Overloaded
from octavo.service.name_lookup import MAX_LOOKUPS, NameLookup


@pytest.fixture
def may_answer(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    event = threading.Event()

    def getaddrinfo(*_: Any, **__: Any) -> list[Any]:
        event.wait()
        raise socket.gaierror("Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    yield event
    event.set()


async def test_the_addresses_of_a_host_are_each_told_once() -> None:
    assert ip_address("127.0.0.1") in await NameLookup()("localhost", 80)
    assert await NameLookup()("127.0.0.1", 80) == (ip_address("127.0.0.1"),)


async def test_a_host_without_addresses_is_an_error(may_answer: threading.Event) -> None:
    may_answer.set()
    with pytest.raises(OSError, match="not known"):
        await NameLookup()("nobody.example", 80)


async def test_lookups_that_are_given_up_count_until_they_have_ended(may_answer: threading.Event) -> None:
    lookup = NameLookup()
    for _ in range(MAX_LOOKUPS):
        with suppress(TimeoutError):
            async with asyncio.timeout(0):
                await lookup("slow.example", 80)
    with pytest.raises(Overloaded):
        await lookup("slow.example", 80)
    may_answer.set()
    await asyncio.gather(*lookup._lookups, return_exceptions=True)
    with pytest.raises(OSError, match="not known"):
        await lookup("slow.example", 80)
