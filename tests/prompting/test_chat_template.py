import json
import math
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

import pytest
from prompting_builders import CHATML, GEMMA, LLAMA3, MISTRAL, assistant, system, user

from octavo.core.messages import Message, Role
from octavo.errors import TemplateError
from octavo.prompting import DEFAULT_CHAT_TEMPLATE, ChatTemplate


def render(source: str, *messages: Message, **variables: object) -> str:
    return ChatTemplate(source).render(messages, bos_token="<s>", eos_token="</s>", variables=variables)


@pytest.mark.parametrize("source", [CHATML, DEFAULT_CHAT_TEMPLATE])
def test_chatml_wraps_each_turn_and_opens_the_answer(source: str) -> None:
    assert render(source, system("Be brief."), user("Hi")) == (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    )


def test_the_answer_is_not_opened_without_a_generation_prompt() -> None:
    rendered = render(CHATML, user("Hi"), assistant("Hello"), add_generation_prompt=False)
    assert rendered == "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nHello<|im_end|>\n"


def test_a_llama_3_template_trims_contents_and_sees_that_there_are_no_tools() -> None:
    assert render(LLAMA3, system(" Be brief. "), user(" Hi ")) == (
        "<s><|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|>"
        "<|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\n"
    )


def test_a_mistral_template_sees_loop_variables_and_the_end_token() -> None:
    assert render(MISTRAL, user("1+1?"), assistant("2"), user("2+2?")) == (
        "<s>[INST] 1+1? [/INST] 2</s>[INST] 2+2? [/INST]"
    )


def test_a_gemma_template_renames_the_assistant() -> None:
    assert render(GEMMA, user("Hi"), assistant(" Hello"), user("Bye")) == (
        "<s><start_of_turn>user\nHi<end_of_turn>\n<start_of_turn>model\nHello<end_of_turn>\n"
        "<start_of_turn>user\nBye<end_of_turn>\n<start_of_turn>model\n"
    )


def test_what_a_template_refuses_is_refused_in_its_own_words() -> None:
    with pytest.raises(TemplateError) as refusal:
        render(GEMMA, system("Be brief."), user("Hi"))
    assert refusal.value.message == "the model's chat template refused the messages: System role not supported"
    assert refusal.value.param == "messages"
    with pytest.raises(TemplateError, match="roles must alternate"):
        render(MISTRAL, user("Hi"), user("Hi"))


def test_a_name_is_there_only_where_it_was_given() -> None:
    source = "{% for m in messages %}{{ m.name if 'name' in m else '-' }},{% endfor %}"
    assert render(source, user("Hi", name="Ada"), user("Hi")) == "Ada,-,"


def test_a_tool_result_names_its_call() -> None:
    source = "{{ tools }}{% for m in messages %}{{ m.role }} {{ m.tool_call_id }}: {{ m.content }}{% endfor %}"
    assert render(source, Message(Role.TOOL, "42", tool_call_id="call_1")) == "Nonetool call_1: 42"


def test_a_reasoning_is_there_by_each_of_its_names_and_only_where_it_was_given() -> None:
    source = "{% for m in messages %}{{ [m.reasoning_content, m.reasoning, m.thinking, 'thinking' in m] }}{% endfor %}"
    thoughtful = Message(Role.ASSISTANT, "4", reasoning="2+2")
    assert render(source, thoughtful) == "['2+2', '2+2', '2+2', True]"
    assert render("{{ 'thinking' in messages[0] or 'reasoning' in messages[0] }}", assistant("4")) == "False"


def test_a_client_s_variables_are_there_and_the_server_s_own_stay_what_they_are() -> None:
    assert render("{{ effort }}, {{ depth['x'][0] }}", effort="high", depth={"x": [1]}) == "high, 1"
    own = {"messages": [], "tools": ["x"], "bos_token": "x", "eos_token": "x"}
    source = "{{ messages | length }} {{ tools is none }} {{ bos_token }} {{ eos_token }}"
    assert render(source, user("Hi"), **own) == render(source, user("Hi")) == "1 True <s> </s>"
    assert render("{{ documents }}") == "None"
    assert render("{{ documents }}", documents=["x"]) == "['x']"


def test_contents_are_not_escaped_or_read_as_templates() -> None:
    assert render("{{ messages[0].content }}", user("<b>{{ 1 + 1 }}</b> & é")) == "<b>{{ 1 + 1 }}</b> & é"


@pytest.mark.parametrize("options", ["", "indent=2", "separators=(',', ':')", "sort_keys=true"])
def test_tojson_writes_what_hugging_face_writes(options: str) -> None:
    rendered = render("{{ {'b': ['<é>', none], 'a': {'x': 1.5}} | tojson(" + options + ") }}")
    given = eval(f"dict({options})", {"true": True})
    assert rendered == json.dumps({"b": ["<é>", None], "a": {"x": 1.5}}, ensure_ascii=False, **given)


def test_the_extensions_of_hugging_face_are_there() -> None:
    assert render("{% for i in range(9) %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}") == "01"
    assert render("a{% generation %}b{{ 1 + 1 }}{% endgeneration %}c") == "ab2c"
    assert render("{{ strftime_now('%Y') | int >= 2024 }}") == "True"
    assert datetime.strptime(render("{{ strftime_now('%d %b %Y') }}"), "%d %b %Y")


def test_blocks_leave_no_white_space_behind() -> None:
    assert render("a\n    {% if true %}\nb\n    {% endif %}\nc") == "a\nb\nc"


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("' a,b '.strip().split(',')[-1]", "b"),
        ("'a-b'.replace('-', '+')", "a+b"),
        ("'a-b' | replace('-', '')", "ab"),
        ("', '.join(['a', 'b'])", "a, b"),
        ("[{'n': 1}, {'n': 2}] | map(attribute='n') | join('+')", "1+2"),
        ("[{'n': 1}, {'n': 2}] | join('+', attribute='n')", "1+2"),
        ("'{:>4}|{}'.format(7, 'x')", "   7|x"),
        ("'%s is %03d' % ('x', 7)", "x is 007"),
        ("'%s%s' | format('a', 1)", "a1"),
        ("'a\\nb' | indent(2)", "a\n  b"),
        ("'a\\nb' | indent(2, true)", "  a\n  b"),
        ("{'a': 1}.items() | list", "[('a', 1)]"),
        ("{'b': 1, 'a': 2} | dictsort", "[('a', 2), ('b', 1)]"),
        ("[3, 1, 2] | sort | first", "1"),
        ("[1, 2, 3] | select('gt', 1) | list | length", "2"),
        ("[1, 2, 3][::-1] | string", "[3, 2, 1]"),
        ("'a' ~ 1 ~ none", "a1None"),
        ("3 * '-' + '=' * 2", "---=="),
        ("2 ** 10 % 1000", "24"),
        ("'b' in 'abc' and 'x' not in ['a', 'b'] and 1 < 2 <= 2", "True"),
        ("messages is defined and tools is none and nothing is not defined", "True"),
        ("namespace(a=1).a", "1"),
        ("'<' | safe + '<'", "<<"),
    ],
)
def test_templates_may_use_what_real_ones_use(expression: str, value: str) -> None:
    assert render("{{ " + expression + " }}") == value


def test_macros_calls_namespaces_and_recursive_loops_work() -> None:
    source = """
{%- macro wrap(text, times=2) %}{{ (text ~ '!') * times }}{{ caller() if caller }}{% endmacro %}
{%- set ns = namespace(total=0) %}
{%- for i in range(4) if i is odd %}{% set ns.total = ns.total + i %}{% endfor %}
{%- set shown %}<{{ ns.total }}>{% endset %}
{%- for node in [[[]], []] recursive %}({{ loop(node) }}){% endfor %}
{%- call wrap('a') %}b{% endcall %}{{ shown }}{% filter upper %}x{% endfilter %}"""
    assert render(source) == "(())()a!a!b<4>X"


def test_renderings_do_not_see_each_other() -> None:
    template = ChatTemplate("{% set seen = joiner(',') %}{{ seen() }}{{ messages[0].content }}")
    answers = [template.render([user(text)], bos_token="", eos_token="") for text in ("a", "b")]
    assert answers == ["a", "b"]


def test_renderings_in_several_threads_do_not_see_each_other() -> None:
    """Half of them have no time at all, which another's guard would give them."""
    template = ChatTemplate("{% for i in range(2000) %}{{ messages[0].content }}{% endfor %}")

    def rendered(number: int) -> str:
        try:
            return template.render(
                [user(f"{number},")], bos_token="", eos_token="", deadline=0 if number % 2 else math.inf
            )
        except TemplateError as error:
            return error.message

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(rendered, range(100)))
    refusal = "the model's chat template was stopped: it ran longer than 0 seconds"
    assert answers == [refusal if number % 2 else f"{number}," * 2000 for number in range(100)]


def test_each_rendering_has_time_and_room_of_its_own() -> None:
    template = ChatTemplate("{% for i in range(1000) %}{% set x = 'x' * 100000 %}{% endfor %}done")
    for _ in range(10):  # any six of them make more than one may
        assert template.render([user("Hi")], bos_token="", eos_token="") == "done"
    with pytest.raises(TemplateError, match="longer than 0 seconds"):
        template.render([user("Hi")], bos_token="", eos_token="", deadline=0)
    assert template.render([user("Hi")], bos_token="", eos_token="") == "done"


@pytest.mark.parametrize("source", ["{% for %}", "{{ 1 +", "{% nonsense %}", "{{ 1 | nonsense }}", "{% endfor %}"])
def test_what_is_not_a_template_is_refused_when_it_is_made(source: str) -> None:
    with pytest.raises(TemplateError, match="line 1"):
        ChatTemplate(source)
