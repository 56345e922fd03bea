"""What the kernel is asked for of TCP connections."""

import asyncio
import socket
import struct

from probes.answer import Place

RESET_ON_CLOSE = struct.pack("ii", 1, 0)
ESTABLISHED, CLOSED, CLOSE_WAIT = 1, 7, 8
"""TCP's states: neither side has said that it ends; both have, or one has reset it; the other side has."""


async def small_socket(place: Place, num_bytes: int) -> socket.socket:
    """A connection of whose answers the kernel takes few bytes while they are not read, so many or twice as many."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, num_bytes)
    client.setblocking(False)
    await asyncio.get_running_loop().sock_connect(client, (place.host, place.port))
    return client


def reset_on_close(writer: asyncio.StreamWriter) -> None:
    """In place of the usual end. Raises OSError where it is closed already."""
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)


def is_in_state(connection: socket.socket, *states: int) -> bool:
    """Whether a connection that is open here is in one of these."""
    return connection.fileno() >= 0 and connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] in states
