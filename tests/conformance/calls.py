"""Calls in an answer, whichever way and in whichever of the wire's two forms they came."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from support.checks import strict_json

Wire = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ToldCall:
    """id: another one in each answer, empty in the older form. arguments: JSON text."""

    name: str
    arguments: str
    id: str = field(compare=False)

    @property
    def given(self) -> Any:
        """What the arguments say."""
        return strict_json(self.arguments)


def calls_of(messages: Iterable[Wire]) -> tuple[ToldCall, ...]:
    """Of one message, or of the deltas that make it up."""
    calls: list[ToldCall] = []
    for message in messages:
        for index, id, function in _parts(message):
            if "name" in function:
                assert index == len(calls)
                calls.append(ToldCall(function["name"], "", id))
            calls[index] = replace(calls[index], arguments=calls[index].arguments + function["arguments"])
    return tuple(calls)


def _parts(message: Wire) -> Iterator[tuple[int, str, Wire]]:
    for place, call in enumerate(message.get("tool_calls", ())):
        yield call.get("index", place), call.get("id", ""), call["function"]
    if "function_call" in message:
        yield 0, "", message["function_call"]
