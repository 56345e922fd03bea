"""Finds the shape in which a template takes tools, by rendering it with invented ones.

No list of models is kept: the first shape is taken in which all that was put in comes out.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Protocol

from octavo.core.messages import Message, Role
from octavo.core.tools import Tool, ToolCall
from octavo.errors import TemplateError
from octavo.prompting.tool_shape import NO_TOOL_SHAPE, ToolShape

_WHOLE_TOOL = Tool(
    "trial_function",
    {
        "name": "trial_function",
        "description": "What it is for.",
        "parameters": {
            "type": "object",
            "properties": {"trial_parameter": {"type": "string", "description": "What it means."}},
            "required": ["trial_parameter"],
        },
    },
)
_BARE_TOOL = Tool("trial_function", {"name": "trial_function"})
_SYSTEM = Message(Role.SYSTEM, "what was ordered")
_QUESTION = Message(Role.USER, "what was asked")
_CALLS = (
    ToolCall("call_of_the_first", "first_function", '{"trial_parameter": "what was given first"}'),
    ToolCall("call_of_the_second", "second_function", '{"trial_parameter": "what was given second"}'),
)
_RESULTS = (
    Message(Role.TOOL, "what came back first", "first_function", "call_of_the_first"),
    Message(Role.TOOL, "what came back second", "second_function", "call_of_the_second"),
)
_HISTORY = (_QUESTION, Message(Role.ASSISTANT, "", tool_calls=_CALLS), *_RESULTS)
_HISTORY_TEXTS = (
    *("first_function", "what was given first", "what came back first"),
    *("second_function", "what was given second", "what came back second"),
)


class TrialRender(Protocol):
    """A template's rendering of messages and tools in a shape. Raises TemplateError."""

    def __call__(self, messages: Sequence[Message], tools: Sequence[Tool], shape: ToolShape) -> str: ...


def find_shape(render: TrialRender, *, seconds: float = 5.0) -> ToolShape:
    """The first shape in which the template shows all that there is to show.

    Raises TemplateError where that is not known after so many seconds of the processor's time, but for the last trial.
    """
    trials = _Trials(render, seconds)
    if not trials.show(_WHOLE_TOOL.name, messages=[_QUESTION], tools=[_WHOLE_TOOL], shape=ToolShape()):
        # What it knows of calls alone is of no use: the prompt shows the model another way to write them.
        takes_system = trials.show(_SYSTEM.content, messages=[_SYSTEM, _QUESTION], tools=[], shape=NO_TOOL_SHAPE)
        return replace(NO_TOOL_SHAPE, takes_system=takes_system)
    shape = next(filter(trials.show_history, _history_shapes()), replace(NO_TOOL_SHAPE, knows_tools=True))
    takes_any_id = trials.show_history(replace(shape, has_short_ids=False))
    takes_bare = trials.show(_BARE_TOOL.name, messages=[_QUESTION], tools=[_BARE_TOOL], shape=shape)
    return replace(shape, has_short_ids=not takes_any_id, has_whole_definitions=not takes_bare)


def _history_shapes() -> Iterator[ToolShape]:
    """All shapes of a history that leave something to the template, the best first."""
    for knows_results, parallel, objects, nulls in product((True, False), (True, False), (True, False), (False, True)):
        yield ToolShape(
            knows_results=knows_results,
            has_parallel_calls=parallel,
            has_object_arguments=objects,
            has_null_contents=nulls,
            has_short_ids=True,
        )
    yield ToolShape(knows_calls=False, has_short_ids=True)


class _Trials:
    def __init__(self, render: TrialRender, seconds: float) -> None:
        self._render = render
        self._ends_at = time.thread_time() + seconds

    def show_history(self, shape: ToolShape) -> bool:
        return self.show(*_HISTORY_TEXTS, messages=_HISTORY, tools=[_WHOLE_TOOL], shape=shape)

    def show(self, *texts: str, messages: Sequence[Message], tools: Sequence[Tool], shape: ToolShape) -> bool:
        """Whether all the texts are in the prompt."""
        if time.thread_time() > self._ends_at:
            raise TemplateError("the model's chat template takes too long with tools", param="tools")
        try:
            prompt = self._render(messages, tools, shape)
        except TemplateError:
            return False
        return all(text in prompt for text in texts)
