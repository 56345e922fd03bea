"""Formats whose arguments are text between markers."""

import pytest

from streaming.tool_formats.samples import calls_of, run

PARIS = ("get_weather", {"city": "Paris"})


@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("qwen3-coder", "<tool_call><function=get_weather><parameter=city>Paris</parameter></function></tool_call>"),
        ("qwen3-coder", "<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n</function>\n"),
        ("qwen3-coder", "<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n</function>\n</tool_call>"),
        ("qwen3-coder", '<tool_call>\n<function=get_weather>\n{"city": "Paris"}\n</function>\n</tool_call>'),
        ("seed-oss", "<function=get_weather>\n<parameter=city>Paris</parameter>\n</function>"),
        ("glm", "<tool_call> get_weather <arg_key> city </arg_key><arg_value>Paris</arg_value>\n\n</tool_call>"),
        ("glm", '<tool_call>get_weather{"city": "Paris"}'),
        ("minimax-m2", '<invoke name="get_weather"><parameter name="city">Paris</parameter></invoke>'),
        ("minimax-m2", '<minimax:tool_call><invoke name="get_weather">{"city": "Paris"}</invoke></minimax:tool_call>'),
        (
            "minimax-m3",
            ']<]minimax[>[<invoke name="get_weather">]<]minimax[>[<city>Paris]<]minimax[>[</city>'
            "]<]minimax[>[</invoke>",
        ),
        ("minicpm", '<function name="get_weather">\n<param name="city"><![CDATA[Pa]]>ris</param>\n</function>'),
    ],
)
def test_one_call_in_many_spellings(format: str, text: str) -> None:
    event = run(text, format)
    assert (event.text, calls_of(event)) == ("", [PARIS])


@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("qwen3-coder", "<tool_call>\n<function=sing>\n</function>\n</tool_call>"),
        ("qwen3-coder", "<tool_call>\n<function=now>\n"),
        ("qwen3-coder", "<tool_call>\n<function=get_weather>\n<parameter=city>\nParis"),
        ("qwen3-coder", "<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n"),
        ("qwen3-coder", "<tool_call>\n</tool_call>"),
        ("qwen3-coder", "In <function=f> and <tool_call> there is nothing."),
        ("glm", "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>"),
        ("glm", "<tool_call>get_weather\n<arg_key>city</arg_key>\n</tool_call>"),
        ("glm", "<tool_call></tool_call>"),
        ("deepseek-v3.2", "<｜DSML｜function_calls>\n</｜DSML｜function_calls>"),
        ("deepseek-v3.2", '<｜DSML｜function_calls>\n<｜DSML｜invoke name="get_weather">\n<b>'),
        ("minimax-m2", '<minimax:tool_call><invoke name="get_weather"><parameter name="city">Paris'),
        ("minimax-m3", ']<]minimax[>[<invoke name="now">' + "]<]minimax[>[<a>" * 1000),
        ("minimax-m3", ']<]minimax[>[<invoke name="now">]<]minimax[>[</now>'),
    ],
)
def test_what_is_no_call_or_not_all_of_one_is_text(format: str, text: str) -> None:
    event = run(text, format)
    assert (event.text, event.tool_calls) == (text, ())


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("\nParis\n", "Paris"),
        ("Paris", "Paris"),
        ("\n\n a\n  b \n\n", "\n a\n  b \n"),
        ("\n</tool_call>\n<b></parameters>\n", "</tool_call>\n<b></parameters>"),
        ("\n7\n", "7"),
        ("\n", "\n"),
        ("\n\n", ""),
    ],
)
def test_the_lines_around_a_value_are_no_part_of_it(written: str, value: str) -> None:
    text = f"<tool_call>\n<function=get_weather>\n<parameter=city>{written}</parameter>\n</function>\n</tool_call>"
    assert calls_of(run(text, "qwen3-coder")) == [("get_weather", {"city": value})]


@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("qwen3-coder", "<tool_call>\n<function=add>\n<parameter=a>\n1\n<parameter=b>\n2\n</parameter>\n</function>"),
        ("qwen3-coder", "<tool_call>\n<function=add>\n<parameter=a>\n1\n</parameter>\n<parameter=b>\n2\n</function>"),
        (
            "qwen3-coder",
            "<tool_call><function=add><parameter=a>1</parameter><parameter=b>2</parameter></tool_call>",
        ),
        ("seed-oss", "<function=add><parameter=a>1</parameter><parameter=b>2</parameter></seed:tool_call>"),
        (
            "glm",
            "<tool_call>add<arg_key>a</arg_key><arg_value>1<arg_key>b</arg_key><arg_value>2</arg_value></tool_call>",
        ),
        ("minimax-m2", '<invoke name="add"><parameter name="a">1<parameter name="b">2</invoke>'),
        (
            "minimax-m2",
            '<minimax:tool_call><invoke name="add"><parameter name="a">1</parameter><parameter name="b">2</parameter>'
            "</minimax:tool_call>",
        ),
        ("minicpm", '<function name="add"><param name="a">1<param name="b">2</function>'),
    ],
)
def test_ends_within_a_call_may_be_missing(format: str, text: str) -> None:
    event = run(text, format)
    assert (event.text, calls_of(event)) == ("", [("add", {"a": 1, "b": 2})])


def test_dsml_says_itself_what_is_a_string() -> None:
    parameters = [("a", "true", "7"), ("b", "false", "7"), ("new", "true", "8"), ("other", "false", "[8]")]
    text = "".join(
        f'<｜DSML｜parameter name="{name}" string="{is_string}">{value}</｜DSML｜parameter>\n'
        for name, is_string, value in parameters
    )
    event = run(f'<｜DSML｜tool_calls><｜DSML｜invoke name="add">{text}</｜DSML｜invoke>', "deepseek-v4")
    assert calls_of(event) == [("add", {"a": "7", "b": 7, "new": "8", "other": [8]})]


def test_minimax_m3_values_are_what_the_schema_says_of_them() -> None:
    text = (
        '<invoke name="search"><query>1</query><tags><item>1</item><item></item></tags>'
        "<filters><when></when><n>1</n><list><item>2</item></list></filters></invoke>"
    ).replace("<", "]<]minimax[>[<")
    expected = {"query": "1", "tags": ["1", ""], "filters": {"when": "", "n": 1, "list": [2]}}
    assert calls_of(run(text, "minimax-m3")) == [("search", expected)]


def test_minimax_m3_values_with_nothing_in_them_are_empty() -> None:
    text = '<invoke name="search"><query></query><tags></tags><filters></filters></invoke>'
    event = run(text.replace("<", "]<]minimax[>[<"), "minimax-m3")
    assert calls_of(event) == [("search", {"query": "", "tags": [], "filters": {}})]
