"""A conversation with tools as a template of some shape takes it."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from hashlib import blake2b
from itertools import takewhile

from octavo.core.messages import Message, Role
from octavo.core.tools import Tool, ToolCall
from octavo.prompting.marked_text import plain_of
from octavo.prompting.tool_prompt import told_result, tool_prompt, written_call
from octavo.prompting.tool_shape import ToolShape

_SHORT_ID_LENGTH = 9

_Rewriting = Callable[[Iterable[Message]], Iterable[Message]]


def uses_tools(message: Message) -> bool:
    return bool(message.tool_calls) or message.role is Role.TOOL


def shaped(messages: Sequence[Message], tools: Sequence[Tool], shape: ToolShape) -> list[Message]:
    """The conversation in which all that the template has no place for is text, and nothing is left out."""
    shown: Iterable[Message] = linked(messages)
    for rewriting in _rewritings(shape):
        shown = rewriting(shown)
    if tools and not shape.knows_tools:
        return _with_prompt(list(shown), tool_prompt(tools), shape.takes_system)
    return list(shown)


def _rewritings(shape: ToolShape) -> Iterator[_Rewriting]:
    if not shape.knows_calls:
        yield _calls_written
    elif not shape.has_parallel_calls:
        yield _calls_one_at_a_time
    if shape.knows_calls and shape.has_null_contents:
        yield _texts_before_calls
    if not shape.knows_results:
        yield _results_told
    if shape.has_short_ids:
        yield _ids_shortened


def linked(messages: Iterable[Message]) -> Iterator[Message]:
    """Results with the id and the name of their call, where the client left one out. Without an id a result is that of
    the first call that has none yet."""
    names: dict[str, str] = {}
    unanswered = _Unanswered(())
    for message in messages:
        if message.tool_calls:
            unanswered = _Unanswered(message.tool_calls)
            names |= {call.id: call.name for call in message.tool_calls}
        if message.role is Role.TOOL:
            call_id = message.tool_call_id or unanswered.first(message.name)
            unanswered.answer(call_id)
            name = message.name if message.name is not None or call_id is None else names.get(call_id)
            message = replace(message, tool_call_id=call_id, name=name)
        yield message


class _Unanswered:
    """Calls that have no result yet. An answered one stays in its queues until it is the first of them."""

    def __init__(self, calls: Sequence[ToolCall]) -> None:
        self._answered: set[str | None] = set()
        self._ids: dict[str | None, deque[str]] = {None: deque(call.id for call in calls)}
        for call in calls:
            self._ids.setdefault(call.name, deque()).append(call.id)

    def first(self, name: str | None) -> str | None:
        """The id of the first one of that name, or of any where there is no name."""
        ids = self._ids.get(name, deque())
        while ids and ids[0] in self._answered:
            ids.popleft()
        return ids[0] if ids else None

    def answer(self, call_id: str | None) -> None:
        self._answered.add(call_id)


def _calls_written(messages: Iterable[Message]) -> Iterator[Message]:
    for message in messages:
        texts = [message.content, *map(written_call, message.tool_calls)]
        yield replace(message, content="\n".join(filter(None, texts)), tool_calls=())


def _calls_one_at_a_time(messages: Iterable[Message]) -> Iterator[Message]:
    """Each call in a message of its own, and behind it its result."""
    rest = deque(messages)
    while rest:
        message = rest.popleft()
        if len(message.tool_calls) < 2:
            yield message
        else:
            yield from _one_at_a_time(message, _first_results(rest))


def _first_results(rest: deque[Message]) -> list[Message]:
    """The results that the rest begins with, taken from it."""
    results = list(takewhile(lambda each: each.role is Role.TOOL, rest))
    for _ in results:
        rest.popleft()
    return results


def _one_at_a_time(message: Message, results: Sequence[Message]) -> Iterator[Message]:
    left = dict(enumerate(results))
    places: dict[str | None, deque[int]] = {}
    for place, result in left.items():
        places.setdefault(result.tool_call_id, deque()).append(place)
    for call in message.tool_calls:
        yield replace(message, tool_calls=(call,))
        message = replace(message, content="", reasoning=None)  # said once, before the first call
        if places.get(call.id):
            yield left.pop(places[call.id].popleft())
    yield from left.values()


def _texts_before_calls(messages: Iterable[Message]) -> Iterator[Message]:
    """What an assistant said beside calls, in a message of its own before them."""
    for message in messages:
        if message.tool_calls and message.content:
            yield replace(message, tool_calls=())
            message = replace(message, content="", reasoning=None)
        yield message


def _results_told(messages: Iterable[Message]) -> Iterator[Message]:
    """Results that follow one another in one message of the user, with what the user says next: many templates want
    user and assistant to take turns."""
    told: list[str] = []
    for message in messages:
        if message.role is Role.TOOL:
            told.append(told_result(message.content))
            continue
        if told and message.role is Role.USER:
            message = replace(message, content="\n".join([*told, message.content]))
        elif told:
            yield Message(Role.USER, "\n".join(told))
        told = []
        yield message
    if told:
        yield Message(Role.USER, "\n".join(told))


def _ids_shortened(messages: Iterable[Message]) -> Iterator[Message]:
    for message in messages:
        calls = tuple(replace(call, id=_short_id(call.id)) for call in message.tool_calls)
        call_id = None if message.tool_call_id is None else _short_id(message.tool_call_id)
        yield replace(message, tool_calls=calls, tool_call_id=call_id)


def _short_id(call_id: str) -> str:
    """The id, or another one that depends on it alone."""
    plain: str = plain_of(call_id)
    if len(plain) == _SHORT_ID_LENGTH and plain.isascii() and plain.isalnum():
        return call_id
    return blake2b(plain.encode(errors="surrogatepass")).hexdigest()[:_SHORT_ID_LENGTH]


def _with_prompt(messages: list[Message], prompt: str, takes_system: bool) -> list[Message]:
    """The prompt behind the client's system message; where the template takes none, before what the user says first."""
    role = Role.SYSTEM if takes_system else Role.USER
    places = [place for place, message in enumerate(messages) if message.role is role]
    if not places or (takes_system and places[0] > 0):
        return [Message(role, prompt), *messages]
    given = messages[places[0]]
    texts = [given.content, prompt] if takes_system else [prompt, given.content]
    messages[places[0]] = replace(given, content="\n\n".join(filter(None, texts)))
    return messages
