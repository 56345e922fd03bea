"""Whether an answer has left the process, which only the server that writes it can tell."""

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

_SCOPE_KEY = "octavo.delivery"

Delivery = Callable[[], Awaitable[bool]]
"""Waits until all of an answer is sent, but for what a client may leave unread; false where its connection broke."""


def set_delivery(scope: MutableMapping[str, Any], delivery: Delivery) -> None:
    """scope: the request's, as ASGI has it."""
    scope[_SCOPE_KEY] = delivery


async def is_delivered(scope: Mapping[str, Any]) -> bool:
    """Of an answer that was given to the server whole. True where the server tells nothing."""
    delivery: Delivery | None = scope.get(_SCOPE_KEY)
    return delivery is None or await delivery()
