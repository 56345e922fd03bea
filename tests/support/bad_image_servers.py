"""Servers that do not want to give a picture."""

import asyncio
from itertools import count

from support.canary import Canary

PNG_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: image/png\r\n"


def make_trouble(front: Canary) -> None:
    """One path of it for each kind of them."""

    async def trickle(writer: asyncio.StreamWriter) -> None:
        await front.send(writer, PNG_HEAD + b"content-length: 1000\r\n\r\n")
        for _ in range(1000):
            await front.send(writer, b"x")
            await asyncio.sleep(0.05)

    async def endless(writer: asyncio.StreamWriter) -> None:
        await front.send(writer, PNG_HEAD + b"\r\n")
        for _ in count():
            await front.send(writer, bytes(2**16))

    async def silent(writer: asyncio.StreamWriter) -> None:
        for _ in count():
            await front.send(writer, b"")
            await asyncio.sleep(0.05)

    front.answers |= {"/trickle": trickle, "/endless": endless, "/silent": silent}
    front.serve("/huge", bytes(100), length=10 * 10**9)
    front.serve("/short", bytes(100), length=1000)
    front.redirect("/redirects", "/redirects/0")
    for number in range(1000):
        front.redirect(f"/redirects/{number}", f"/redirects/{number + 1}")
