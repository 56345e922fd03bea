"""An answer of a model, as it comes."""

from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Self

from octavo.cli.terminal import write_aside, write_text


@dataclass(frozen=True, slots=True)
class Delta:
    """What comes next of an answer, and of the reasoning before it."""

    content: str
    reasoning: str

    @classmethod
    def from_wire(cls, event: Any) -> Self:
        """Of an event of `POST /v1/chat/completions`. Raises KeyError and its like for another event."""
        deltas = [choice["delta"] for choice in event["choices"]]
        return cls(_joined(deltas, "content"), _joined(deltas, "reasoning_content"))


class AnswerPrinter:
    """Writes an answer to standard output, and the reasoning before it aside. text: of the answer so far."""

    def __init__(self) -> None:
        self.text = ""
        self._is_reasoning = False

    def show(self, deltas: Generator[Delta, None, None]) -> None:
        """All of them. They are closed also where something breaks this off."""
        try:
            with closing(deltas):
                for delta in deltas:
                    self._show(delta)
        finally:
            self._end_reasoning()

    def end_line(self) -> None:
        """End the answer's last line, if there is one."""
        if self.text:
            write_text("\n")

    def _show(self, delta: Delta) -> None:
        if delta.reasoning:
            self._is_reasoning = True
            write_aside(delta.reasoning)
        if delta.content:
            self._end_reasoning()
            self.text += delta.content
            write_text(delta.content)

    def _end_reasoning(self) -> None:
        if self._is_reasoning:
            write_aside("\n")
        self._is_reasoning = False


def _joined(deltas: list[dict[str, Any]], name: str) -> str:
    return "".join(delta.get(name) or "" for delta in deltas)
