"""DeepSeek's and Kimi's calls, which stand in sections of their own."""

import pytest

from streaming.tool_formats.samples import calls_of, run

PARIS = ("get_weather", {"city": "Paris"})
FENCED = '```json\n{"city": "Paris"}\n```'


@pytest.mark.parametrize("format", ["deepseek-r1", "deepseek-v3.1"])
@pytest.mark.parametrize(
    "call",
    [
        f"function<｜tool▁sep｜>get_weather\n{FENCED}<｜tool▁call▁end｜>",
        f"function<｜tool▁sep｜>get_weather{FENCED}\n<｜tool▁call▁end｜>\n",
        'function<｜tool▁sep｜>get_weather\n{"city": "Paris"}<｜tool▁call▁end｜>',
        'get_weather<｜tool▁sep｜>{"city": "Paris"}<｜tool▁call▁end｜>',
        f"get_weather<｜tool▁sep｜>{FENCED}<｜tool▁call▁end｜>",
    ],
)
@pytest.mark.parametrize("opening", ["<｜tool▁calls▁begin｜>", "<｜tool_calls_begin｜>\n", ""])
@pytest.mark.parametrize("closing", ["<｜tool▁calls▁end｜>", ""])
def test_deepseek_spellings(format: str, call: str, opening: str, closing: str) -> None:
    begin = "<｜tool▁call▁begin｜>"
    event = run(f"Yes.{opening}{begin}{call}{begin}{call}{closing}", format)
    assert (event.text, calls_of(event)) == ("Yes.", [PARIS, PARIS])


@pytest.mark.parametrize("id", ["functions.get_weather:0", "functions.get_weather:12", "get_weather:0", "get_weather"])
@pytest.mark.parametrize("space", ["", "\n", " "])
def test_kimi_spellings(id: str, space: str) -> None:
    parts = (
        "<|tool_calls_section_begin|>",
        "<|tool_call_begin|>",
        id,
        "<|tool_call_argument_begin|>",
        '{"city": "Paris"}',
        "<|tool_call_end|>",
        "<|tool_calls_section_end|>",
    )
    event = run(space.join(parts), "kimi-k2")
    assert (event.text, calls_of(event)) == ("", [PARIS])


@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("deepseek-r1", "<｜tool▁calls▁begin｜><｜tool▁calls▁end｜>"),
        ("deepseek-r1", "<｜tool▁calls▁begin｜> A <｜tool▁sep｜>"),
        ("deepseek-v3.1", "<｜tool▁call▁begin｜>sing<｜tool▁sep｜>{}<｜tool▁call▁end｜>"),
        ("kimi-k2", "<|tool_calls_section_begin|>Let me see"),
        ("kimi-k2", '<|tool_call_begin|>functions.now:0<|tool_call_argument_begin|>{"a"<|tool_call_end|>'),
    ],
)
def test_what_is_no_call_is_text(format: str, text: str) -> None:
    event = run(text, format)
    assert (event.text, event.tool_calls) == (text, ())
