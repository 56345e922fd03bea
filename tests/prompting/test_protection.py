import json

import pytest
from prompting_builders import END, START, assistant, system, user, user_defined, vocabulary

from octavo.core.messages import Message, Role
from octavo.core.tools import Tool, ToolCall
from octavo.errors import InvalidRequest
from octavo.prompting import ChatTemplate
from octavo.prompting.arguments import object_of
from octavo.prompting.marked_text import MarkedText
from octavo.prompting.markers import SENTINELS, Markers
from octavo.prompting.protection import Protection, choose_sentinel

CUT = SENTINELS[0]
THINK_END = user_defined(258, "</think>")
CHAT = Protection(Markers(vocabulary(START, END)), CUT)
THINKING = Protection(Markers(vocabulary(START, END, THINK_END), "</think>"), CUT, [THINK_END.text])


def shown(text: str | None) -> str:
    assert text is not None
    return "".join(["", text])


def render(source: str, **variables: object) -> str:
    protected = CHAT.variables(variables)
    return CHAT.marked(ChatTemplate(source).render([], bos_token="", eos_token="", variables=protected))


def test_every_string_of_a_message_is_marked_and_the_rest_is_kept() -> None:
    marked, unmarked = CHAT.messages([user("<|im_end|>", name="<|im_start|>"), user("Hi")])
    assert (marked.content, shown(marked.name)) == (f"<{CUT}|im_end|>", f"<{CUT}|im_start|>")
    assert unmarked == user("Hi")
    [result] = CHAT.messages([Message(Role.TOOL, "ok", tool_call_id="<|im_end|>")])
    assert (result.content, shown(result.tool_call_id)) == ("ok", f"<{CUT}|im_end|>")
    [thoughtful] = CHAT.messages([Message(Role.ASSISTANT, "4", reasoning="<|im_end|>")])
    assert thoughtful == Message(Role.ASSISTANT, "4", reasoning=f"<{CUT}|im_end|>")


def test_an_assistant_may_write_open_texts_and_nobody_else() -> None:
    text = "1</think>2<|im_end|>"
    marked = f"1<{CUT}/think>2<{CUT}|im_end|>"
    answered, *others = THINKING.messages([assistant(text), user(text), system(text), Message(Role.TOOL, text)])
    assert answered.content == f"1</think>2<{CUT}|im_end|>"
    assert [other.content for other in others] == [marked] * 3
    [thoughtful] = THINKING.messages([Message(Role.ASSISTANT, "4", reasoning=text)])
    assert thoughtful.reasoning == marked


def test_what_an_open_text_divides_is_marked_on_both_sides() -> None:
    [message] = THINKING.messages([assistant("<|im_</think>end|>")])
    assert message.content == f"<{CUT}|im_</think>e{CUT}nd|>"


def test_variables_are_marked_at_any_depth_and_their_names_are_kept() -> None:
    marked = CHAT.variables({"im_": [1, {"<|im_end|>": ("<|im_start|>", None, True)}], "b": "Hi"})
    assert list(marked) == ["im_", "b"]
    assert repr(marked["im_"]).encode() == rb"[1, {'<\ufdd0|im_end|>': ['<\ufdd0|im_start|>', None, True]}]"
    assert type(marked["b"]) is str


def test_templates_find_marked_keys_and_values() -> None:
    source = (
        "{{ x.im_ }} {{ x['im_'] }} {{ 'im_' in x }} {{ x.im_ == 'end' }} {{ 'end' == x.im_ }} {{ x.im_ in ['end'] }}"
    )
    assert render(source, x={"im_": "end"}).replace(CUT, "") == "end end True True True True"
    assert render("{{ x != 'end' }} {{ x == 'other' }} {{ x == y }} {{ x == 1 }}", x="end", y="end") == (
        "False False True False"
    )
    assert render("{% for k, v in x.items() %}{{ k == 'im_' and x[k] == v }}{% endfor %}", x={"im_": "end"}) == "True"


def test_a_marked_text_is_in_sets_and_dicts_what_the_client_wrote() -> None:
    text = MarkedText.of("end", f"e{CUT}nd")
    assert {"end": 1}[text] == {text: 1}["end"] == 1
    assert {text, "end"} == {"end"}
    assert shown(text) == f"e{CUT}nd"


def test_a_marked_text_is_compared_measured_and_searched_as_what_the_client_wrote() -> None:
    text = MarkedText.of("end", f"e{CUT}nd")
    assert "eoz" > text > "ena"
    assert "end" >= text <= "end"
    assert len(text) == 3
    assert "end" in text
    assert CUT not in text
    assert text.startswith("en")
    assert text.endswith(("x", "nd"))
    assert text.startswith(text)


def test_a_marked_text_in_other_letters_is_marked_too() -> None:
    text = MarkedText.of("end", f"e{CUT}nd")
    assert shown(text.upper()) == f"E{CUT}ND"
    assert text.upper() == "END"
    assert text.upper().lower() == text


def test_a_marked_text_stays_one_where_python_or_a_template_makes_text_of_it() -> None:
    source = "{% macro echo(x) %}{{ x }}{% endmacro %}{{ echo(x) == 'end' and echo(x) | string == 'end' }}"
    assert render(source, x="end") == "True"


def test_tools_are_marked_at_any_depth_keys_too() -> None:
    definition = {"name": "end", "parameters": {"properties": {"im_": {"enum": ["start", 1, None]}}}}
    [tool] = CHAT.tools([Tool("end", definition)])
    assert tool == Tool("end", definition)
    assert shown(tool.name) == f"e{CUT}nd"
    assert json.dumps(tool.definition, ensure_ascii=False) == (
        f'{{"name": "e{CUT}nd", "parameters": {{"properties": {{"i{CUT}m_": {{"enum": ["s{CUT}tart", 1, null]}}}}}}}}'
    )


def test_calls_are_marked_as_text_and_as_what_their_arguments_say() -> None:
    given = ToolCall("im_", "end", r'{"<|im\u005fend|>": ["start"]}')
    [message] = CHAT.messages([Message(Role.ASSISTANT, "", tool_calls=(given,))])
    [call] = message.tool_calls
    assert call == given
    assert [shown(call.id), shown(call.name)] == [f"i{CUT}m_", f"e{CUT}nd"]
    assert json.dumps(object_of(call.arguments), ensure_ascii=False) == f'{{"<{CUT}|im_end|>": ["s{CUT}tart"]}}'


def test_the_sentinel_is_in_no_tool_and_no_call() -> None:
    tool = Tool("f", {"name": SENTINELS[0], "parameters": {SENTINELS[1]: [SENTINELS[2]]}})
    calls = (ToolCall(SENTINELS[3], SENTINELS[4], SENTINELS[5]), ToolCall("", "", r'{"a": "\uFDD6"}'))
    assert choose_sentinel([Message(Role.ASSISTANT, "", tool_calls=calls)], {}, [tool]) == SENTINELS[7]


@pytest.mark.parametrize("source", ["{{ x }}", "{{ x | tojson }}", "{{ x | tojson(ensure_ascii=true) }}"])
def test_sentinels_survive_where_python_or_json_escape_them(source: str) -> None:
    assert f"<{CUT}|im_end|>" in render(source, x=["<|im_end|>"])


def test_the_sentinel_is_one_that_no_string_of_the_client_holds() -> None:
    assert choose_sentinel([user("Hi")], {"a": 1}) == SENTINELS[0]
    held = [
        user(SENTINELS[0]),
        user("Hi", name=SENTINELS[1]),
        Message(Role.ASSISTANT, "", reasoning=SENTINELS[2], tool_call_id=SENTINELS[3]),
    ]
    assert choose_sentinel(held, {}) == SENTINELS[4]
    assert choose_sentinel([user(SENTINELS[0])], {"a": [{SENTINELS[1]: {"b": SENTINELS[2]}}]}) == SENTINELS[3]
    assert choose_sentinel([user(r"\ufdd0")], {"a": r"\ufdd1"}) == SENTINELS[2]
    with pytest.raises(InvalidRequest) as refusal:
        choose_sentinel([user("".join(SENTINELS[:-1]))], {"a": SENTINELS[-1]})
    assert refusal.value.param == "messages"
