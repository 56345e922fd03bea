"""What a request says about calls, as the streams of its answer get it."""

from dataclasses import replace
from typing import Any

import pytest

from octavo.api.convert.tools import tool_use
from octavo.api.schemas.chat import ChatCompletionRequest
from octavo.core.tools import NO_TOOLS, CallSyntax, ToolUse
from octavo.engine.specs import ScriptedSpec
from octavo.service import ServedModel
from octavo.streaming.tool_formats.hermes import HERMES
from support.bad_inputs import CHAT

from .asking import BARE
from .calling import CLOCK, CORE_TOOLS, TOOLS, WEATHER, allowed, named
from .server import WatchedEngine

OLDER = {"functions": [WEATHER, CLOCK]}
FIRST, SECOND = CORE_TOOLS[:1], CORE_TOOLS[1:]


def used(**fields: Any) -> ToolUse:
    model = ServedModel("demo", WatchedEngine(ScriptedSpec()), created=0)
    return tool_use(ChatCompletionRequest.model_validate({**BARE[CHAT], **fields}), model)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, ToolUse(CORE_TOOLS, "hermes")),
        ({"parallel_tool_calls": False}, ToolUse(CORE_TOOLS, "hermes", is_parallel=False)),
        ({"tool_choice": "none"}, NO_TOOLS),
        ({"tool_choice": "required"}, ToolUse(CORE_TOOLS, "hermes", is_forced=True)),
        ({"tool_choice": named("get_time")}, ToolUse(SECOND, "hermes", is_forced=True, is_parallel=False)),
        ({"tool_choice": allowed("auto", "get_weather")}, ToolUse(FIRST, "hermes")),
        ({"tool_choice": allowed("required", "get_weather")}, ToolUse(FIRST, "hermes", is_forced=True)),
        ({"response_format": {"type": "text"}}, ToolUse(CORE_TOOLS, "hermes")),
    ],
    ids=str,
)
def test_a_choice_says_what_may_and_what_must_be_called(fields: dict[str, Any], expected: ToolUse) -> None:
    assert used(tools=TOOLS, **fields) == expected


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (None, ToolUse(CORE_TOOLS, "hermes", is_parallel=False)),
        ("none", NO_TOOLS),
        ({"name": "get_weather"}, ToolUse(FIRST, "hermes", is_forced=True, is_parallel=False)),
    ],
    ids=str,
)
def test_an_older_request_has_at_most_one_call(choice: Any, expected: ToolUse) -> None:
    assert used(**OLDER, function_call=choice) == expected


@pytest.mark.parametrize(
    "form",
    [
        {"type": "json_object"},
        {"type": "json_schema", "json_schema": {"schema": {}}},
        {"type": "regex", "pattern": "a"},
        {"type": "grammar", "grammar": 'start: "a"'},
    ],
    ids=str,
)
def test_only_marked_calls_are_calls_where_the_answer_has_a_form(form: dict[str, Any]) -> None:
    for fields in ({"tools": TOOLS}, OLDER):
        assert not used(**fields, response_format=form).reads_unmarked


def test_a_forced_call_that_would_end_the_generation_within_itself_is_written_in_the_generic_form(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cut = replace(HERMES, name="cut", syntax=CallSyntax(begin="<|end|>call ", middle=" "))
    monkeypatch.setattr(ServedModel, "tool_format", cut)
    assert used(tools=TOOLS, tool_choice="required").format == "hermes"
    assert used(tools=TOOLS).format == "cut"
