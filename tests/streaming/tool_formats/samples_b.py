"""What models write whose calls are lists in JSON or in Python, between markers of their own or without any."""

from streaming.tool_formats.samples import Sample

PARIS = ("get_weather", {"city": "Paris"})
NOW = ("now", {})
ADD = ("add", {"a": 1, "b": 2.5})
SEARCH = ("search", {"query": 'He said: "no"', "tags": ["zażółć", "東京"], "filters": {"a": {"b": [1, None, True]}}})

OBJECT = '{"name": "get_weather", "arguments": {"city": "Paris"}}'
PARAMETERS = '{"name": "get_weather", "parameters": {"city": "Paris"}}'
OBJECTS = f'[{OBJECT}, {{"name": "add", "arguments": {{"a": 1, "b": 2.5}}}}]'
SEARCH_ARGUMENTS = (
    '{"query": "He said: \\"no\\"", "tags": ["zażółć", "東京"], "filters": {"a": {"b": [1, null, true]}}}'
)
SEARCH_OBJECT = f'{{"name": "search", "arguments": {SEARCH_ARGUMENTS}}}'
PYTHON = '[get_weather(city="Paris"), add(a=1, b=2.5)]'
SEARCH_PYTHON = """[search(query='He said: "no"', tags=["zażółć", '東京'], filters={'a': {"b": [1, None, True]}})]"""

BARE = [
    Sample("hermes", OBJECT, "", [PARIS]),
    Sample("hermes", PARAMETERS, "", [PARIS]),
    Sample("hermes", OBJECTS, "", [PARIS, ADD]),
    Sample("hermes", SEARCH_OBJECT, "", [SEARCH]),
    Sample("hermes", f"I will look.\n{OBJECT}\nDone.", "I will look.\nDone.", [PARIS]),
    Sample("hermes", f"```json\n{OBJECT}\n```", "", [PARIS]),
    Sample("hermes", f"Now:\n\n```\n{OBJECTS}\n```\nDone.", "Now:\nDone.", [PARIS, ADD]),
    Sample("hermes", f"```json\n{OBJECT}\n{SEARCH_OBJECT}\n```", "", [PARIS, SEARCH]),
    Sample("hermes", f"```tool_call\n{OBJECT}", "", [PARIS]),
    Sample("hermes", f"{OBJECT}\n{SEARCH_OBJECT}", "", [PARIS, SEARCH]),
    Sample("hermes", f"{OBJECT}; {SEARCH_OBJECT};", "", [PARIS, SEARCH]),
    Sample("hermes", f'{{"tool_calls": {OBJECTS}}}', "", [PARIS, ADD]),
    Sample("hermes", f'{{"type": "function", "function": {OBJECT}}}', "", [PARIS]),
    Sample("hermes", '[{"id": "1", "function": {"name": "now", "arguments": "{}"}}]', "", [NOW]),
    Sample("hermes", '{ "name" : "now", "arguments" : {} }', "", [NOW]),
    Sample("hermes", PYTHON, "", [PARIS, ADD]),
    Sample("hermes", f"```tool_code\n{PYTHON}\n```", "", [PARIS, ADD]),
    Sample("hermes", '```tool_code\nget_weather(city="Paris")\nadd(a=1, b=2.5)\n```\nDone.', "Done.", [PARIS, ADD]),
    Sample("hermes", '```tool_code\nget_weather(city="Paris")\n```', "", [PARIS]),
    Sample("hermes", '{"name": "Paris", "country": "France"}', '{"name": "Paris", "country": "France"}', []),
    Sample("hermes", "[Paris](https://paris.fr), [1, 2]", "[Paris](https://paris.fr), [1, 2]", []),
    Sample("hermes", "```python\nimport os\n```", "```python\nimport os\n```", []),
]

LLAMA = [
    Sample("llama", PARAMETERS, "", [PARIS]),
    Sample("llama", f"<|python_tag|>{PARAMETERS}", "", [PARIS]),
    Sample("llama", f"<|python_tag|>{PARAMETERS}; {SEARCH_OBJECT}", "", [PARIS, SEARCH]),
    Sample("llama", '{"type": "function", "name": "now", "parameters": {}}', "", [NOW]),
    Sample("llama", '<|python_tag|>get_weather.call(city="Paris")', "", [PARIS]),
    Sample("llama", '<function=get_weather>{"city": "Paris"}</function>', "", [PARIS]),
    Sample("llama", '<function=get_weather>\n{"city": "Paris"}', "", [PARIS]),
    Sample("llama", '<function=get_weather{"city": "Paris"}</function>', "", [PARIS]),
    Sample("llama", PYTHON, "", [PARIS, ADD]),
    Sample("llama", f"Well.\n{SEARCH_PYTHON}", "Well.", [SEARCH]),
    Sample("llama", f"<|python_start|>{PYTHON}<|python_end|> Done.", "Done.", [PARIS, ADD]),
    Sample("llama", "<|python_tag|>print(1)", "<|python_tag|>print(1)", []),
]

LFM2 = [
    Sample("lfm2", f"<|tool_call_start|>{PYTHON}<|tool_call_end|>", "", [PARIS, ADD]),
    Sample("lfm2", f"So: <|tool_call_start|>{SEARCH_PYTHON}<|tool_call_end|>\nOk", "So:\nOk", [SEARCH]),
    Sample("lfm2", f"<|tool_call_start|>{OBJECTS}<|tool_call_end|>", "", [PARIS, ADD]),
    Sample("lfm2", f"<|tool_call_start|>{SEARCH_OBJECT}", "", [SEARCH]),
    Sample("lfm2", "<|tool_call_start|>\n[ now( ), ]\n<|tool_call_end|>", "", [NOW]),
    Sample("lfm2", "<|tool_call_start|>[now()]<|tool_call_end|><|tool_call_start|>[now()]", "", [NOW, NOW]),
    Sample("lfm2", "<|tool_call_start|>[then()]<|tool_call_end|>", "<|tool_call_start|>[then()]<|tool_call_end|>", []),
]

MISTRAL = [
    Sample("mistral", '[TOOL_CALLS]get_weather[ARGS]{"city": "Paris"}', "", [PARIS]),
    Sample("mistral", '[TOOL_CALLS]get_weather{"city": "Paris"}', "", [PARIS]),
    Sample("mistral", '[TOOL_CALLS] get_weather\n{"city": "Paris"}', "", [PARIS]),
    Sample("mistral", '[TOOL_CALLS]get_weather[CALL_ID]a1b2c3d4e[ARGS]{"city": "Paris"}', "", [PARIS]),
    Sample("mistral", f"Ok.[TOOL_CALLS]search[ARGS]{SEARCH_ARGUMENTS}[TOOL_CALLS]now[ARGS]{{}}", "Ok.", [SEARCH, NOW]),
    Sample("mistral", "[TOOL_CALLS]now[ARGS]", "[TOOL_CALLS]now[ARGS]", []),
    Sample("mistral", f"[TOOL_CALLS]{OBJECTS}", "", [PARIS, ADD]),
    Sample("mistral-nemo", f"[TOOL_CALLS]{OBJECTS}", "", [PARIS, ADD]),
    Sample("mistral-nemo", f'[TOOL_CALLS] [{SEARCH_OBJECT[:-1]}, "id": "a1b2c3d4e"}}]', "", [SEARCH]),
    Sample("mistral-nemo", f"[TOOL_CALLS]{OBJECT}", "", [PARIS]),
    Sample("mistral-nemo", OBJECTS, "", [PARIS, ADD]),
    Sample("mistral", "[TOOL_CALLS]then[ARGS]{}", "[TOOL_CALLS]then[ARGS]{}", []),
]

COMMAND_R = [
    Sample(
        "command-r-plus",
        'I will look.\nAction:\n```json\n[\n    {\n        "tool_name": "get_weather",\n'
        '        "parameters": {\n            "city": "Paris"\n        }\n    },\n    {\n'
        '        "tool_name": "now",\n        "parameters": {}\n    }\n]```\n',
        "I will look.",
        [PARIS, NOW],
    ),
    Sample("command-r-plus", 'Action: ```json\n[{"tool_name": "now", "parameters": {}}]\n```', "", [NOW]),
    Sample("command-r-plus", 'Action: [{"tool_name": "now", "parameters": {}}]', "", [NOW]),
    Sample("command-r-plus", "Action: none. Action: ```json", "Action: none. Action: ```json", []),
    Sample(
        "command-r7b",
        '<|START_ACTION|>[\n    {"tool_call_id": "0", "tool_name": "get_weather", "parameters": {"city": "Paris"}},\n'
        f'    {{"tool_call_id": "1", "tool_name": "search", "parameters": {SEARCH_ARGUMENTS}}}\n]<|END_ACTION|>',
        "",
        [PARIS, SEARCH],
    ),
    Sample("command-r7b", 'So.<|START_ACTION|>[{"tool_name": "now", "parameters": {}}]', "So.", [NOW]),
]

FUNCTIONARY = [
    Sample("functionary-v3.1", '<function=get_weather>{"city": "Paris"}</function>', "", [PARIS]),
    Sample(
        "functionary-v3.1",
        f"Ok.<function=search>{SEARCH_ARGUMENTS}</function><function=now>{{}}</function>",
        "Ok.",
        [SEARCH, NOW],
    ),
    Sample("functionary-v3.1", "<function=now></function>", "", [NOW]),
    Sample("functionary-v3.1", "<function=now>", "<function=now>", []),
    Sample("functionary-v3.2", 'get_weather\n{"city": "Paris"}', "", [PARIS]),
    Sample("functionary-v3.2", "all\nHello\nyou", "Hello\nyou", []),
    Sample("functionary-v3.2", f"all\nOk.>>>search\n{SEARCH_ARGUMENTS}>>>now\n{{}}", "Ok.", [SEARCH, NOW]),
    Sample("functionary-v3.2", ">>>all\nOk.", "Ok.", []),
    Sample("functionary-v3.2", "all\n>>> print(1)", ">>> print(1)", []),
    Sample("functionary-v3.2", "all of them.\nNow", "all of them.\nNow", []),
    Sample("functionary-v3.2", " now \n\n{}", "", [NOW]),
]

GIGACHAT = [
    Sample("gigachat-3", f"<|message_sep|>\n\nfunction call<|role_sep|>\n{OBJECT}<|message_sep|>\n\n", "", [PARIS]),
    Sample("gigachat-3", f"Ok.<|message_sep|>\n\nfunction call<|role_sep|>\n{SEARCH_OBJECT}", "Ok.", [SEARCH]),
    Sample("gigachat-3", f"function call<|role_sep|>\n{OBJECT}", "", [PARIS]),
    Sample("gigachat-3", "Ok.<|message_sep|>\n\n", "Ok.", []),
    Sample("gigachat-3.1", f"Ok.<|function_call|>{SEARCH_OBJECT}<|message_sep|>\n\n", "Ok.", [SEARCH]),
    Sample("gigachat-3.1", f"<|function_call|>{OBJECT}", "", [PARIS]),
]

OTHERS = [
    Sample("granite", f"<|tool_call|>{OBJECTS}", "", [PARIS, ADD]),
    Sample("granite", f"<|tool_call|> [{SEARCH_OBJECT}]\n", "", [SEARCH]),
    Sample("granite", f"<tool_call>{OBJECTS}</tool_call>", "", [PARIS, ADD]),
    Sample("phi", f"<|tool_call|>{OBJECTS}<|/tool_call|>", "", [PARIS, ADD]),
    Sample("phi", f"Ok. functools[{SEARCH_OBJECT}]", "Ok.", [SEARCH]),
    Sample("firefunction", f"functools{OBJECTS}", "", [PARIS, ADD]),
    Sample("firefunction", f"Ok. functools[{SEARCH_OBJECT}] Done.", "Ok. Done.", [SEARCH]),
    Sample("firefunction", "functools is a module", "functools is a module", []),
    Sample(
        "apertus",
        f'<|tools_prefix|>[{{"get_weather": {{"city": "Paris"}}}}, {{"search": {SEARCH_ARGUMENTS}}}]<|tools_suffix|>',
        "",
        [PARIS, SEARCH],
    ),
    Sample("apertus", 'Ok.<|tools_prefix|>[{"now": {}}]', "Ok.", [NOW]),
    Sample("apriel", f"Ok.\n<tool_calls>{OBJECTS}</tool_calls>", "Ok.", [PARIS, ADD]),
    Sample("apriel", f"<tool_calls>\n[\n{SEARCH_OBJECT}\n]\n</tool_calls>", "", [SEARCH]),
    Sample("nemotron-nano-v2", f"<TOOLCALL>{OBJECTS}</TOOLCALL>", "", [PARIS, ADD]),
    Sample("nemotron-nano-v2", f"Ok.\n<TOOLCALL>[{SEARCH_OBJECT}]", "Ok.", [SEARCH]),
    Sample(
        "nemotron-nano-v2",
        '<TOOLCALL>[{"name": "get_weather", "arguments": "{\\"city\\": \\"</TOOLCALL>\\"}"}]</TOOLCALL>',
        "",
        [("get_weather", {"city": "</TOOLCALL>"})],
    ),
]

SAMPLES = [*BARE, *LLAMA, *LFM2, *MISTRAL, *COMMAND_R, *FUNCTIONARY, *GIGACHAT, *OTHERS]
