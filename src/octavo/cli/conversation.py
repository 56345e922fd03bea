"""What a person and a model have said to each other, as messages of a request."""

from collections.abc import Sequence
from typing import Any

Message = dict[str, Any]
ImagePart = dict[str, Any]
"""An `image_url` part of a message's content."""


def question(text: str, images: Sequence[ImagePart] = ()) -> Message:
    """A message of the user. images: come before the text."""
    return {"role": "user", "content": [*images, {"type": "text", "text": text}] if images else text}


class Conversation:
    """A turn, a question and its answer, becomes a part of it as a whole."""

    def __init__(self, system: str | None) -> None:
        self._system: list[Message] = [] if system is None else [{"role": "system", "content": system}]
        self._turns: list[Message] = []

    def followed_by(self, asked: Message) -> list[Message]:
        """The messages of a request for the answer to `asked`."""
        return [*self._system, *self._turns, asked]

    def add(self, asked: Message, answer: str) -> None:
        self._turns += [asked, {"role": "assistant", "content": answer}]

    def clear(self) -> None:
        """Forget all but what the system message says."""
        self._turns.clear()
