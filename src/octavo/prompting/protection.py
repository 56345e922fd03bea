"""A client's strings, marked so that nothing in them becomes a control token."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from octavo.core.messages import Message, Role
from octavo.core.tools import Tool, ToolCall
from octavo.errors import InvalidRequest
from octavo.prompting.arguments import object_of
from octavo.prompting.marked_text import MarkedJson, MarkedText
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
        self._seen: dict[str, str] = {}  # tools say the same words again and again

    def messages(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        return tuple(map(self._message, messages))

    def variables(self, variables: Mapping[str, object]) -> dict[str, object]:
        """The values marked at any depth, keys too. The names of the variables are kept: no template can show them."""
        return {name: self._value(value) for name, value in variables.items()}

    def tools(self, tools: Sequence[Tool]) -> tuple[Tool, ...]:
        """The definitions marked like variables' values."""
        return tuple(Tool(self._marked(tool.name), self._mapping(tool.definition)) for tool in tools)

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
            reasoning=None if message.reasoning is None else self._text(message.reasoning),
            tool_calls=tuple(map(self._call, message.tool_calls)),
        )

    def _call(self, call: ToolCall) -> ToolCall:
        arguments = MarkedJson.saying(
            self._value(object_of(call.arguments)), call.arguments, self._text(call.arguments)
        )
        return ToolCall(self._marked(call.id), self._marked(call.name), arguments)

    def _answer(self, text: str) -> str:
        parts = self._open.split(text)  # every second one is an open text
        return "".join(part if index % 2 else self._text(part) for index, part in enumerate(parts))

    def _optional(self, text: str | None) -> str | None:
        return None if text is None else self._marked(text)

    def _marked(self, text: str) -> str:
        return MarkedText.of(text, self._text(text))

    def _text(self, text: str) -> str:
        if text not in self._seen:
            self._seen[text] = self._markers.protect(text, self._sentinel)
        return self._seen[text]

    def _value(self, value: object) -> object:
        match value:
            case str():
                return self._marked(value)
            case Mapping():
                return self._mapping(value)
            case list() | tuple():
                return [self._value(item) for item in value]
        return value

    def _mapping(self, value: Mapping[str, object]) -> dict[str, object]:
        return {self._marked(key): self._value(item) for key, item in value.items()}


def choose_sentinel(messages: Sequence[Message], variables: Mapping[str, object], tools: Sequence[Tool] = ()) -> str:
    """A sentinel that no string of the client holds, nor its escape. Raises InvalidRequest where all are taken."""
    # An escape in the arguments of a call, which are JSON, may have capitals.
    lowered = [text.lower() for text in client_texts(messages, variables, tools)]
    for sentinel in SENTINELS:
        if not any(sentinel in text or _escaped(sentinel) in text for text in lowered):
            return sentinel
    raise InvalidRequest(
        f"The messages hold all {len(SENTINELS)} noncharacters U+FDD0 to U+FDEF; at least one must be left out.",
        param="messages",
    )


def client_texts(
    messages: Sequence[Message], variables: Mapping[str, object], tools: Sequence[Tool] = ()
) -> Iterator[str]:
    """All strings of the client that a template may show."""
    yield from _texts_of(messages)
    yield from _texts_in(variables)
    yield from _texts_in([tool.definition for tool in tools])


def _texts_of(messages: Iterable[Message]) -> Iterator[str]:
    for message in messages:
        fields = (message.content, message.name, message.tool_call_id, message.reasoning)
        yield from (text for text in fields if text is not None)
        for call in message.tool_calls:
            yield from (call.id, call.name, call.arguments)


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
