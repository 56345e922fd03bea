"""A client's strings, marked so that nothing in them becomes a control token."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Self

from octavo.core.messages import Message, Role
from octavo.errors import InvalidRequest
from octavo.prompting.markers import SENTINELS, Markers, compiled


class Protection:
    """Puts a sentinel wherever a client's string could become part of a marker.

    sentinel: in none of the strings; see choose_sentinel.
    open_texts: markers that an assistant's content may write like a template, which looks for them there.
    """

    def __init__(self, markers: Markers, sentinel: str, open_texts: Collection[str] = ()) -> None:
        self._markers = markers
        self._sentinel = sentinel
        self._open = compiled(open_texts, "({})")

    def messages(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        return tuple(map(self._message, messages))

    def variables(self, variables: Mapping[str, object]) -> dict[str, object]:
        """The values marked at any depth, keys too. The names of the variables are kept: no template can show them."""
        return {name: self._value(value) for name, value in variables.items()}

    def marked(self, rendered: str) -> str:
        """A rendered prompt in which sentinels are themselves again: repr and JSON write them as escapes."""
        return rendered.replace(_escaped(self._sentinel), self._sentinel)

    def _message(self, message: Message) -> Message:
        is_answer = message.role is Role.ASSISTANT
        return replace(
            message,
            content=self._answer(message.content) if is_answer else self._text(message.content),
            name=self._optional(message.name),
            tool_call_id=self._optional(message.tool_call_id),
            reasoning=self._optional(message.reasoning),
        )

    def _answer(self, text: str) -> str:
        parts = self._open.split(text)  # every second one is an open text
        return "".join(part if index % 2 else self._text(part) for index, part in enumerate(parts))

    def _optional(self, text: str | None) -> str | None:
        return None if text is None else self._text(text)

    def _text(self, text: str) -> str:
        return self._markers.protect(text, self._sentinel)

    def _value(self, value: object) -> object:
        match value:
            case str():
                return MarkedText.of(value, self._text(value))
            case dict():
                return {self._value(key): self._value(item) for key, item in value.items()}
            case list() | tuple():
                return [self._value(item) for item in value]
        return value


class MarkedText(str):
    """A text with sentinels in it that equals the text without them, so that templates still find keys and values."""

    __slots__ = ("_plain",)
    _plain: str

    @classmethod
    def of(cls, plain: str, marked: str) -> str:
        return plain if plain == marked else cls(plain, marked)

    def __new__(cls, plain: str, marked: str) -> Self:
        text = super().__new__(cls, marked)
        text._plain = plain
        return text

    def __eq__(self, other: object) -> bool:
        return self._plain == (other._plain if isinstance(other, MarkedText) else other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self._plain)


def choose_sentinel(messages: Sequence[Message], variables: Mapping[str, object]) -> str:
    """A sentinel that no string of the client holds, nor its escape. Raises InvalidRequest where all are taken."""
    texts = [*_texts_of(messages), *_texts_in(variables)]
    for sentinel in SENTINELS:
        if not any(sentinel in text or _escaped(sentinel) in text for text in texts):
            return sentinel
    raise InvalidRequest(
        f"The messages hold all {len(SENTINELS)} noncharacters U+FDD0 to U+FDEF; at least one must be left out.",
        param="messages",
    )


def _texts_of(messages: Iterable[Message]) -> Iterator[str]:
    for message in messages:
        fields = (message.content, message.name, message.tool_call_id, message.reasoning)
        yield from (text for text in fields if text is not None)


def _texts_in(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case Mapping():
            for key, item in value.items():
                yield from _texts_in(key)
                yield from _texts_in(item)
        case list() | tuple():
            for item in value:
                yield from _texts_in(item)


def _escaped(sentinel: str) -> str:
    return f"\\u{ord(sentinel):04x}"
