"""A constrained answer comes behind a model's reasoning, which stays free, and is all that is constrained."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llguidance import LLMatcher, LLTokenizer

from octavo.constraints import answer_grammar, any_object_part, calls_grammar
from octavo.constraints.library import library_tokenizer
from octavo.core.channels import PLAIN, Channel, ChannelFormat
from octavo.core.grammar import Grammar
from octavo.core.tools import CallSyntax, Tool
from octavo.core.vocabulary import SpecialToken, Vocabulary
from octavo.prompting.chat_template import ChatTemplate
from octavo.prompting.reasoning import channel_format
from octavo.streaming.channels import Channels

END_OF_GENERATION = 256
JSON = '{"a": "<b>"}'
ANY_OBJECT = any_object_part()


@dataclass(frozen=True, slots=True)
class Model:
    """signs: of its channels, in its template. prompt_end: what an answer goes on from.
    begin, end: what stands around its thoughts. answer: what stands before an answer.
    controls: the names among these that may be control tokens.
    """

    signs: str
    prompt_end: str
    begin: str
    end: str
    answer: str = ""
    controls: tuple[str, ...] = ()

    def channels(self, more_prompt: str = "") -> ChannelFormat:
        return channel_format(ChatTemplate("{# " + self.signs + " #}"), self.prompt_end + more_prompt)


MODELS = {
    "gpt-oss": Model(
        "<|channel|>analysis<|message|>",
        "<|start|>assistant",
        "<|channel|>analysis<|message|>",
        "<|end|><|start|>assistant",
        "<|channel|>final<|message|>",
        ("<|start|>", "<|channel|>", "<|message|>", "<|end|>"),
    ),
    "Muse": Model(
        "to=self<|message|>",
        "<|start|>assistant",
        " to=self<|message|>",
        "<|eom|><|start|>assistant",
        " to=user<|message|>",
        ("<|start|>", "<|message|>", "<|eom|>"),
    ),
    "Solar": Model(
        "<|begin|>assistant<|think|>",
        "<|begin|>assistant",
        "<|think|>",
        "<|end|><|begin|>assistant",
        "<|content|>",
        ("<|begin|>", "<|think|>", "<|content|>", "<|end|>"),
    ),
    "Kimi K3": Model(
        "<|open|> <|close|> <|sep|>",
        "<|open|>message<|sep|>",
        "<|open|>think<|sep|>",
        "<|close|>think<|sep|>",
        "<|open|>response<|sep|>",
        ("<|open|>", "<|close|>", "<|sep|>"),
    ),
    "Command A": Model(
        "<|END_THINKING|>",
        "<|CHATBOT_TOKEN|>",
        "<|START_THINKING|>",
        "<|END_THINKING|>",
        "<|START_RESPONSE|>",
        ("<|START_THINKING|>", "<|END_THINKING|>", "<|START_RESPONSE|>"),
    ),
    "Command A, of a later template": Model(
        "<|END_THINKING|> <|START_TEXT|>",
        "<|CHATBOT_TOKEN|>",
        "<|START_THINKING|>",
        "<|END_THINKING|>",
        "<|START_TEXT|>",
        ("<|START_THINKING|>", "<|END_THINKING|>", "<|START_TEXT|>"),
    ),
    "Granite 3.3": Model("<think></think> <response></response>", "", "<think>", "</think>"),
    "Granite 3.2": Model(
        "'Here is my thought process:' 'Here is my response:'",
        "",
        "Here is my thought process: ",
        "\n\nHere is my response:\n",
    ),
    "Hunyuan": Model("</think> </answer>", "", "<think>\n", "\n</think>\n", "<answer>\n"),
    "Apriel": Model("[BEGIN FINAL RESPONSE]", "", "Here are my reasoning steps:\n", "\n[BEGIN FINAL RESPONSE]\n"),
    "Qwen3": Model("</think>", "", "<think>\n", "\n</think>\n\n", controls=("<think>", "</think>")),
    "DeepSeek-R1, of which one marker alone is a control token": Model(
        "</think>", "", "<think>\n", "\n</think>\n\n", controls=("<think>",)
    ),
    "Magistral": Model("[/THINK]", "", "[THINK]", "[/THINK]", controls=("[THINK]", "[/THINK]")),
    "Seed-OSS": Model("</seed:think>", "", "<seed:think>", "</seed:think>", controls=("<seed:think>", "</seed:think>")),
    "Kimi-VL": Model("◁/think▷", "", "◁think▷", "◁/think▷", controls=("◁think▷", "◁/think▷")),
    "Gemma 4": Model("<channel|>", "", "<|channel>thought\n", "\n<channel|>", controls=("<|channel>", "<channel|>")),
    "Apertus": Model(
        "<|inner_suffix|>",
        "",
        "<|inner_prefix|>",
        "<|inner_suffix|>",
        controls=("<|inner_prefix|>", "<|inner_suffix|>"),
    ),
    "EXAONE Deep": Model("</thought>", "", "<thought>\n", "\n</thought>\n\n"),
    "Reka Flash": Model("</reasoning>", "", "<reasoning>", "</reasoning>"),
}

models = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
any_controls = pytest.mark.parametrize("has_controls", [True, False], ids=["control tokens", "plain text"])


@lru_cache
def vocabulary_of(controls: tuple[str, ...]) -> Vocabulary:
    """All bytes, a token that ends the generation, and the control tokens."""
    names = ("<eog>", *controls)
    return Vocabulary(
        pieces=(*(bytes([value]) for value in range(256)), *(b"" for _ in names)),
        special_tokens=tuple(
            SpecialToken(END_OF_GENERATION + place, name, is_control=True) for place, name in enumerate(names)
        ),
        eog_tokens=frozenset({END_OF_GENERATION}),
        bos_token=None,
        adds_bos=False,
    )


@lru_cache
def tokenizer_of(controls: tuple[str, ...]) -> LLTokenizer:
    return library_tokenizer(vocabulary_of(controls), lambda text: list(text.encode()))


def tokens_of(text: str, controls: Sequence[str]) -> Iterator[int]:
    names = "|".join(map(re.escape, controls)) or "(?!)"
    for part in re.split(f"({names})", text):
        yield from [END_OF_GENERATION + 1 + controls.index(part)] if part in controls else part.encode()


@dataclass(frozen=True, slots=True)
class Followed:
    """is_allowed: whether the grammar allows the text to begin so. is_complete: whether it may end there.
    may_end: whether the generation could end, before each token and behind the last.
    """

    is_allowed: bool
    is_complete: bool
    may_end: Sequence[bool]


def follow(grammar: Grammar, text: str, controls: tuple[str, ...]) -> Followed:
    matcher = LLMatcher(tokenizer_of(controls), grammar.definition, log_level=0)
    assert not matcher.get_error()
    may_end = [can_end(matcher)]
    for token in tokens_of(text, controls):
        if not matcher.consume_token(token):
            return Followed(False, False, may_end)
        may_end.append(can_end(matcher))
    return Followed(True, matcher.is_accepting(), may_end)


def can_end(matcher: LLMatcher) -> bool:
    return matcher.is_stopped() or bool(matcher.compute_bitmask()[END_OF_GENERATION // 8] & 1)


def divided(channels: ChannelFormat, text: str) -> tuple[str, str]:
    """Reasoning and answer."""
    machine = Channels(channels)
    segments = [*machine.push(text), *machine.flush()]
    reasoning, answer = (
        "".join(part for channel, part in segments if channel is wanted)
        for wanted in (Channel.REASONING, Channel.ANSWER)
    )
    return reasoning, answer


@models
@any_controls
def test_json_is_allowed_behind_reasoning_and_told_apart_from_it(model: Model, has_controls: bool) -> None:
    controls = model.controls if has_controls else ()
    channels = model.channels()
    grammar = answer_grammar(ANY_OBJECT, channels, vocabulary_of(controls))
    text = f"{model.begin}Hm. {{}} 1 < 2{model.end}{model.answer}{JSON}"
    assert follow(grammar, text, controls).is_complete
    assert divided(channels, text) == ("Hm. {} 1 < 2", JSON)


@models
@any_controls
def test_an_answer_without_reasoning_is_allowed(model: Model, has_controls: bool) -> None:
    controls = model.controls if has_controls else ()
    channels = model.channels()
    grammar = answer_grammar(ANY_OBJECT, channels, vocabulary_of(controls))
    assert follow(grammar, model.answer + JSON, controls).is_complete
    assert divided(channels, model.answer + JSON) == ("", JSON)


@models
@any_controls
def test_reasoning_that_the_prompt_began_has_to_end(model: Model, has_controls: bool) -> None:
    controls = model.controls if has_controls else ()
    channels = model.channels(model.begin)
    assert channels.initial is Channel.REASONING
    grammar = answer_grammar(ANY_OBJECT, channels, vocabulary_of(controls))
    assert not follow(grammar, model.answer + JSON, controls).is_complete
    assert follow(grammar, f"Hm.{model.end}{model.answer}{JSON}", controls).is_complete
    assert follow(grammar, f"{model.end}{model.answer}{JSON}", controls).is_complete
    assert divided(channels, f"Hm.{model.end}{model.answer}{JSON}") == ("Hm.", JSON)


@models
@any_controls
def test_what_is_no_json_is_excluded_behind_the_reasoning(model: Model, has_controls: bool) -> None:
    controls = model.controls if has_controls else ()
    grammar = answer_grammar(ANY_OBJECT, model.channels(), vocabulary_of(controls))
    assert follow(grammar, f"{model.begin}Hm.{model.end}{model.answer}", controls).is_allowed
    for text in ("No.", "[", "{a", f"{model.begin}"):
        assert not follow(grammar, f"{model.begin}Hm.{model.end}{model.answer}{text}", controls).is_allowed
        assert not follow(grammar, f"{model.answer}{text} ", controls).is_complete


@models
@any_controls
def test_the_generation_can_not_end_before_the_answer_is_complete(model: Model, has_controls: bool) -> None:
    controls = model.controls if has_controls else ()
    grammar = answer_grammar(ANY_OBJECT, model.channels(), vocabulary_of(controls))
    followed = follow(grammar, f"{model.begin}Hm.{model.end}{model.answer}{JSON}", controls)
    assert not any(followed.may_end[:-1])
    assert followed.may_end[-1]


@models
@any_controls
def test_no_reasoning_comes_behind_one_that_the_prompt_has_ended(model: Model, has_controls: bool) -> None:
    controls = model.controls if has_controls else ()
    channels = model.channels(model.begin + model.end)
    if channels.initial is not Channel.ANSWER:
        return  # the prompt ends like any other
    grammar = answer_grammar(ANY_OBJECT, channels, vocabulary_of(controls))
    assert follow(grammar, model.answer + JSON, controls).is_complete
    assert not follow(grammar, model.begin, controls).is_allowed


def test_an_answer_that_the_prompt_has_opened_is_not_opened_again() -> None:
    model = MODELS["Kimi K3"]
    grammar = answer_grammar(ANY_OBJECT, model.channels(model.answer), vocabulary_of(()))
    assert follow(grammar, JSON, ()).is_complete
    assert not follow(grammar, model.answer, ()).is_allowed


@pytest.mark.parametrize("space", ["", " ", "\n", "\n\n"])
@any_controls
def test_white_space_may_stand_behind_the_end_of_reasoning(space: str, has_controls: bool) -> None:
    model = MODELS["Qwen3"]
    controls = model.controls if has_controls else ()
    grammar = answer_grammar(ANY_OBJECT, model.channels(), vocabulary_of(controls))
    assert follow(grammar, f"<think>Hm.</think>{space}{JSON}", controls).is_complete
    assert not follow(grammar, f"<think>Hm.</think>{' ' * 4}", controls).is_allowed
    assert not follow(grammar, f" {JSON}", controls).is_allowed


SPOKEN = st.lists(st.sampled_from(["<think>", "</thi", "\n", " ", "{", "}", "{}", "a", "👩"]), max_size=8).map("".join)
WRITTEN = st.lists(st.sampled_from(["<think>", "</think>", "</thi", "\n", " ", "{", "}", "{}", "a"]), max_size=8)


@given(WRITTEN.map("".join), st.booleans())
def test_what_the_grammar_allows_is_reasoning_and_json(text: str, has_begun: bool) -> None:
    channels = MODELS["Qwen3"].channels("<think>\n" if has_begun else "")
    grammar = answer_grammar(ANY_OBJECT, channels, vocabulary_of(()))
    if follow(grammar, text, ()).is_complete:
        reasoning, answer = divided(channels, text)
        assert json.loads(answer) == {}
        assert "</think>" not in reasoning


@given(SPOKEN, st.sampled_from(list(MODELS.values())), st.booleans())
def test_any_reasoning_is_allowed(thought: str, model: Model, has_controls: bool) -> None:
    controls = model.controls if has_controls else ()
    if any(name in thought for name in controls):
        return  # said by a control token, which has no place in a text
    grammar = answer_grammar(ANY_OBJECT, model.channels(), vocabulary_of(controls))
    assert follow(grammar, f"{model.begin}{thought}{model.end}{model.answer}{JSON}", controls).is_complete


@models
def test_json_may_spell_the_markers(model: Model) -> None:
    channels = replace(model.channels(), ends_in_answer=True)
    spelled = json.dumps({"a": f" {model.begin} {model.end} {model.answer} "}, ensure_ascii=False)
    grammar = answer_grammar(ANY_OBJECT, channels, vocabulary_of(()))
    for text in (f"{model.begin}Hm.{model.end}{model.answer}{spelled}", f"{model.answer}{spelled}"):
        assert follow(grammar, text, ()).is_complete
        assert divided(channels, text)[1] == spelled


def test_a_model_that_does_not_reason_has_the_grammar_alone() -> None:
    grammar = answer_grammar(ANY_OBJECT, PLAIN, vocabulary_of(()))
    assert len(json.loads(grammar.definition)["grammars"]) == 1
    assert not follow(grammar, "<think>", ()).is_allowed


TOOLS = (
    Tool("f", {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}),
    Tool("f2", {"name": "f2"}),
)
SYNTAX = CallSyntax("<|channel|>commentary to=functions.", " <|constrain|>json<|message|>", separator="<|call|>")


@any_controls
def test_calls_are_allowed_behind_reasoning_and_nothing_else_is(has_controls: bool) -> None:
    model = MODELS["gpt-oss"]
    controls = (*model.controls, "<|constrain|>", "<|call|>") if has_controls else ()
    thought = f"{model.begin}Hm.{model.end}"
    call = '<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"a": 1}'
    other = "<|channel|>commentary to=functions.f2 <|constrain|>json<|message|>{}"
    grammar = calls_grammar(SYNTAX, TOOLS, model.channels(), vocabulary_of(controls), max_calls=2)
    for text in (thought + call, call, f"{thought}{other}<|call|>{call}"):
        followed = follow(grammar, text, controls)
        assert followed.is_complete
        assert not any(followed.may_end[: len(list(tokens_of(thought, controls)))])
    for text in (f"{model.answer}", call.replace("functions.f", "functions.g"), f"{call}<|call|>{call}<|call|>"):
        assert not follow(grammar, text, controls).is_allowed
