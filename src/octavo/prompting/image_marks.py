"""Images among a conversation's texts, while a template joins these."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from octavo.core.images import Image
from octavo.core.messages import Message
from octavo.errors import InvalidRequest, TemplateError

_MARKS = tuple(map(chr, range(0xE000, 0xF900)))
"""Characters for private use: no template treats them as anything."""
_ESCAPE = re.compile(r"\\u(e[0-9a-f]{3}|f[0-8][0-9a-f]{2})")
"""Of one of them, as repr and JSON write it."""


class ImageMarks:
    """Each image of a conversation is one character of its message's text, which is in no other text.

    So nothing that a client writes can be an image, and each image is known wherever the template shows it: some
    templates change the order of messages.
    """

    def __init__(self, messages: Sequence[Message], texts: Iterable[str]) -> None:
        """texts: all that a mark must not be in. Raises InvalidRequest where too few characters are left."""
        images = [placed.image for message in messages for placed in message.images]
        self._images = dict(zip(_unused(texts) if images else (), images, strict=False))
        if len(self._images) < len(images):
            raise InvalidRequest(
                "The messages hold so many private-use characters that none is left to stand for an image.",
                param="messages",
            )

    def messages(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Those that the marks were made for, with the marks in their contents in place of images."""
        marks = iter(self._images)
        return tuple(_with_marks(message, marks) for message in messages)

    def unescaped(self, prompt: str) -> str:
        """A prompt in which marks are themselves again: repr and JSON write them as escapes."""
        for mark in self._images:
            prompt = prompt.replace(_escaped(mark), mark)
        return prompt

    def split(self, prompt: str) -> list[str | Image]:
        """The texts and images of a prompt, in order. Raises TemplateError where an image is not there just once."""
        parts = re.split(f"([{''.join(self._images)}])", prompt) if self._images else [prompt]
        marks = parts[1::2]
        if sorted(marks) != sorted(self._images):
            message = "the model's chat template does not show every image of the messages once"
            raise TemplateError(message, param="messages")
        return [self._images.get(part, part) for part in parts if part]


def _unused(texts: Iterable[str]) -> Iterator[str]:
    joined = "\n".join(texts).lower()  # an escape may have capitals
    used = set(joined) | {chr(int(digits, 16)) for digits in _ESCAPE.findall(joined)}
    return (mark for mark in _MARKS if mark not in used)


def _escaped(mark: str) -> str:
    return f"\\u{ord(mark):04x}"


def _with_marks(message: Message, marks: Iterator[str]) -> Message:
    if not message.images:
        return message
    places = [0, *(placed.place for placed in message.images), len(message.content)]
    texts = [message.content[start:end] for start, end in pairwise(places)]
    shown = texts[0] + "".join(next(marks) + text for text in texts[1:])
    return replace(message, content=shown, images=())
