"""Answers in the formats whose arguments are JSON within tags, or text between markers."""

from streaming.tool_formats.samples import Sample

_PARIS = ("get_weather", {"city": "Paris"})
_ROME = ("get_weather", {"city": "Rome"})
_NOW = ("now", {})
_SEARCH = ("search", {"query": "été 日本", "limit": 3, "tags": ["sun", "</tool_call>"], "filters": {"a": {"b": None}}})
_SEARCH_JSON = '{"query": "été \\u65e5本", "limit": 3, "tags": ["sun", "</tool_call>"], "filters": {"a": {"b": null}}}'

HERMES = [
    Sample(
        "hermes", '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>', "", [_PARIS]
    ),
    Sample(
        "hermes",
        'Let me see.\n\n<tool_call>{"name":"get_weather","arguments":{"city":"Paris"}}</tool_call>\n'
        '<tool_call>\n{"name": "now"}\n</tool_call>\n\nDone.',
        "Let me see.\n\nDone.",
        [_PARIS, _NOW],
    ),
    Sample("hermes", f'<tool_call>\n{{"arguments": {_SEARCH_JSON}, "name": "search"}}', "", [_SEARCH]),
    Sample("hermes", 'A <tool_call> is {"name": "now"}, I think.', 'A <tool_call> is {"name": "now"}, I think.', []),
]

MINIMAX_M1 = [
    Sample(
        "minimax-m1",
        '<tool_calls>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n{"name": "now", "arguments": {}}\n'
        "</tool_calls>",
        "",
        [_PARIS, _NOW],
    ),
    Sample("minimax-m1", f'<tool_calls>\n{{"name": "search", "arguments": {_SEARCH_JSON}}}\n', "", [_SEARCH]),
]

QWEN3_CODER = [
    Sample(
        "qwen3-coder",
        "I look.\n<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n</function>\n"
        "</tool_call>\n<tool_call>\n<function=now>\n</function>\n</tool_call>",
        "I look.",
        [_PARIS, _NOW],
    ),
    Sample(
        "qwen3-coder",
        "<tool_call>\n<function=search>\n<parameter=query>\nété 日本\n</parameter>\n"
        "<parameter=limit>\n3\n</parameter>\n"
        '<parameter=tags>\n["sun", "</tool_call>"]\n</parameter>\n'
        '<parameter=filters>\n{"a": {"b": null}}\n</parameter>\n</function>',
        "",
        [_SEARCH],
    ),
    Sample("qwen3-coder", "<function=now></function>", "", [_NOW]),
]

SEED_OSS = [
    Sample(
        "seed-oss",
        "<seed:tool_call>\n<function=get_weather>\n<parameter=city>Paris</parameter>\n</function>\n</seed:tool_call>",
        "",
        [_PARIS],
    ),
    Sample(
        "seed-oss",
        "<seed:tool_call><function=search><parameter=query>été 日本</parameter><parameter=limit>3</parameter>"
        "<parameter=tags>['sun', '</tool_call>']</parameter>"
        "<parameter=filters>{'a': {'b': None}}</parameter></function></seed:tool_call>\nDone",
        "Done",
        [_SEARCH],
    ),
]

GLM = [
    Sample(
        "glm",
        "\n<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>\n</tool_call>\n"
        "<tool_call>now\n</tool_call>",
        "",
        [_PARIS, _NOW],
    ),
    Sample(
        "glm",
        "Well:<tool_call>search<arg_key>query</arg_key><arg_value>été 日本</arg_value><arg_key>limit</arg_key>"
        '<arg_value>3</arg_value><arg_key>tags</arg_key><arg_value>["sun", "</tool_call>"]</arg_value>'
        '<arg_key>filters</arg_key><arg_value>{"a": {"b": null}}</arg_value></tool_call>',
        "Well:",
        [_SEARCH],
    ),
]

HUNYUAN = [
    Sample(
        "hunyuan",
        "<tool_calls:opensource>\n<tool_call:opensource>get_weather<tool_sep:opensource>\n"
        "<arg_key:opensource>city</arg_key:opensource>\n<arg_value:opensource>Paris</arg_value:opensource>\n"
        "</tool_call:opensource>\n<tool_call:opensource>now<tool_sep:opensource>\n</tool_call:opensource>\n"
        "</tool_calls:opensource>",
        "",
        [_PARIS, _NOW],
    ),
]

DEEPSEEK_R1 = [
    Sample(
        "deepseek-r1",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n"
        '{"city": "Paris"}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>now\n```json\n{}\n```'
        "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        "",
        [_PARIS, _NOW],
    ),
    Sample(
        "deepseek-r1",
        "Yes.<｜tool_calls_begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>search\n```json\n" + _SEARCH_JSON,
        "Yes.",
        [_SEARCH],
    ),
]

DEEPSEEK_V31 = [
    Sample(
        "deepseek-v3.1",
        'Yes.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"city": "Paris"}<｜tool▁call▁end｜>'
        "<｜tool▁call▁begin｜>now<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        "Yes.",
        [_PARIS, _NOW],
    ),
    Sample(
        "deepseek-v3.1",
        f"<｜tool▁call▁begin｜>search<｜tool▁sep｜>{_SEARCH_JSON}<｜tool▁call▁end｜>",
        "",
        [_SEARCH],
    ),
]

DEEPSEEK_DSML = [
    Sample(
        "deepseek-v3.2",
        "Yes.\n\n<｜DSML｜function_calls>\n"
        '<｜DSML｜invoke name="get_weather">\n<｜DSML｜parameter name="city" string="true">Paris</｜DSML｜parameter>\n'
        '</｜DSML｜invoke>\n<｜DSML｜invoke name="now">\n</｜DSML｜invoke>\n</｜DSML｜function_calls>',
        "Yes.",
        [_PARIS, _NOW],
    ),
    Sample(
        "deepseek-v4",
        '<｜DSML｜tool_calls>\n<｜DSML｜invoke name="search">\n'
        '<｜DSML｜parameter name="query" string="true">été 日本</｜DSML｜parameter>\n'
        '<｜DSML｜parameter name="limit" string="false">3</｜DSML｜parameter>\n'
        '<｜DSML｜parameter name="tags" string="false">["sun", "</tool_call>"]</｜DSML｜parameter>\n'
        '<｜DSML｜parameter name="filters" string="false">{"a": {"b": null}}</｜DSML｜parameter>\n'
        "</｜DSML｜invoke>\n",
        "",
        [_SEARCH],
    ),
]

MINIMAX_M2 = [
    Sample(
        "minimax-m2",
        '\n<minimax:tool_call>\n<invoke name="get_weather">\n<parameter name="city">Paris</parameter>\n</invoke>\n'
        '<invoke name="now">\n</invoke>\n</minimax:tool_call>',
        "",
        [_PARIS, _NOW],
    ),
    Sample(
        "minimax-m2",
        'So <invoke name="search"><parameter name="query">été 日本</parameter><parameter name="limit">3</parameter>'
        '<parameter name="tags">["sun", "</tool_call>"]</parameter>'
        '<parameter name="filters">{"a": {"b": null}}</parameter></invoke>',
        "So",
        [_SEARCH],
    ),
]

_M3 = "]<]minimax[>["
MINIMAX_M3 = [
    Sample(
        "minimax-m3",
        f'Yes{_M3}<tool_call>\n{_M3}<invoke name="get_weather">{_M3}<city>Paris{_M3}</city>{_M3}</invoke>\n'
        f'{_M3}<invoke name="now">{_M3}</invoke>\n{_M3}</tool_call>',
        "Yes",
        [_PARIS, _NOW],
    ),
    Sample(
        "minimax-m3",
        f'{_M3}<tool_call>\n{_M3}<invoke name="search">{_M3}<query>été 日本{_M3}</query>{_M3}<limit>3{_M3}</limit>'
        f"{_M3}<tags>{_M3}<item>sun{_M3}</item>{_M3}<item></tool_call>{_M3}</item>{_M3}</tags>"
        f"{_M3}<filters>{_M3}<a>{_M3}<b>null{_M3}</b>{_M3}</a>{_M3}</filters>{_M3}</invoke>",
        "",
        [_SEARCH],
    ),
]

KIMI_K2 = [
    Sample(
        "kimi-k2",
        "Yes.<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>"
        '{"city": "Paris"}<|tool_call_end|><|tool_call_begin|>functions.now:1<|tool_call_argument_begin|>{}'
        "<|tool_call_end|><|tool_calls_section_end|>",
        "Yes.",
        [_PARIS, _NOW],
    ),
    Sample("kimi-k2", f"<|tool_call_begin|>search<|tool_call_argument_begin|>{_SEARCH_JSON}", "", [_SEARCH]),
]

MINICPM = [
    Sample(
        "minicpm",
        'Yes.\n<function name="get_weather"><param name="city">Paris</param></function>\n'
        '<function name="now"></function>',
        "Yes.",
        [_PARIS, _NOW],
    ),
    Sample(
        "minicpm",
        '<function name="search"><param name="query"><![CDATA[été 日本]]></param><param name="limit">3</param>'
        "<param name=\"tags\">['sun', '</tool_call>']</param>"
        "<param name=\"filters\">{'a': {'b': None}}</param></function>",
        "",
        [_SEARCH],
    ),
]

SAMPLES = (
    *HERMES,
    *MINIMAX_M1,
    *QWEN3_CODER,
    *SEED_OSS,
    *GLM,
    *HUNYUAN,
    *DEEPSEEK_R1,
    *DEEPSEEK_V31,
    *DEEPSEEK_DSML,
    *MINIMAX_M2,
    *MINIMAX_M3,
    *KIMI_K2,
    *MINICPM,
)
