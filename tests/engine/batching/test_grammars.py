"""Answers that keep to a grammar, over a vocabulary of bytes and logits that know nothing of it."""

import asyncio
import json
import re
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

import numpy as np
import pytest
from llguidance import LLParserLimits
from numpy.typing import NDArray

from engine.batching.cores import Answer
from engine.builders import collect, hashed_logits, request
from octavo.core.grammar import Grammar
from octavo.core.output import FinishReason
from octavo.core.request import GenerationRequest, LogprobParams
from octavo.core.sampling import BAN_BIAS, FORCE_BIAS, SamplingParams
from octavo.engine.base import EngineInfo
from octavo.engine.batching import grammars
from octavo.engine.batching.composer import MixedSteps
from octavo.engine.batching.engine import BatchingEngine
from octavo.engine.batching.grammars import GrammarCompiler
from octavo.engine.batching.runner import RunnerLimits
from octavo.engine.runners.scripted import NextLogits, ScriptedRunner
from octavo.engine.scripted import END_TOKEN, ByteTokenizer
from octavo.errors import EngineError, UnsupportedGrammar

SIZE = ByteTokenizer([]).vocabulary.size
POINT = {
    "type": "object",
    "properties": {"x": {"type": "integer", "minimum": 0, "maximum": 999}, "on": {"type": "boolean"}},
    "required": ["x", "on"],
    "additionalProperties": False,
}


def lark(text: str) -> Grammar:
    return Grammar(json.dumps({"grammars": [{"lark_grammar": text}]}))


def json_of(schema: object) -> Grammar:
    return Grammar(json.dumps({"grammars": [{"json_schema": schema}]}))


ANY_WORD = lark("start: /[a-z]*/")
POINTS = json_of({**POINT, "x-guidance": {"whitespace_flexible": False}})


def asked(grammar: Grammar, max_tokens: int = 60, **settings: object) -> GenerationRequest:
    return replace(request(tuple(b"Say: "), max_tokens), grammar=grammar, **settings)  # type: ignore[arg-type]


@asynccontextmanager
async def engine(
    next_logits: NextLogits | None = None, *, num_slots: int = 4, cache_tokens: int | None = None
) -> AsyncIterator[BatchingEngine]:
    limits = RunnerLimits(num_slots, 256, 64, SIZE, 64)
    runner = ScriptedRunner(limits, next_logits or hashed_logits(0, SIZE), cache_tokens=cache_tokens)
    made = BatchingEngine(runner, MixedSteps(limits), ByteTokenizer([]), EngineInfo(256, num_slots, None, "fp_test"))
    loop = asyncio.create_task(asyncio.to_thread(made.run))
    try:
        yield made
    finally:
        await made.close()
        await loop


async def answer(made: BatchingEngine, wanted: GenerationRequest) -> Answer:
    tokens, reason = await collect(made.generate(wanted))
    assert reason is not None
    return Answer(tuple(tokens), reason)


def text_of(given: Answer) -> str:
    return bytes(token for token in given.tokens if token < END_TOKEN).decode()


def preferring(*tokens: int) -> NextLogits:
    """A "model" that always wants these tokens, the first one most."""

    def next_logits(_: tuple[int, ...]) -> NDArray[np.float32]:
        logits = np.zeros(SIZE, np.float32)
        logits[list(tokens)] = np.arange(len(tokens), 0, -1) * 10
        return logits

    return next_logits


async def test_every_answer_is_what_its_grammar_says() -> None:
    async with engine(num_slots=3) as made:
        seeds = [SamplingParams(seed=seed, temperature=temperature) for seed in range(8) for temperature in (0.0, 1.5)]
        answers = await asyncio.gather(*(answer(made, asked(POINTS, sampling=seed)) for seed in seeds))
    for given in answers:
        assert given.end is FinishReason.STOP
        point = json.loads(text_of(given))
        assert 0 <= point["x"] <= 999
        assert isinstance(point["on"], bool)
    assert len({text_of(given) for given in answers}) > 4


async def test_sequences_with_and_without_grammars_run_together_and_do_not_change_each_other() -> None:
    def mix() -> list[GenerationRequest]:
        words = [asked(lark(f'start: "{word}"+ "."'), 40, sampling=SamplingParams(seed=1)) for word in ("ab", "c")]
        return [
            *words,
            asked(POINTS, sampling=SamplingParams(seed=3)),
            request(max_tokens=30, ignore_eos=True, id="free"),
        ]

    async with engine() as made:
        alone = [await answer(made, each) for each in mix()]
        together = await asyncio.gather(*(answer(made, each) for each in mix()))
    assert [text_of(each) for each in alone[:3]] == [text_of(each) for each in together[:3]]
    assert together[3].tokens == alone[3].tokens
    assert re.fullmatch(r"(ab)+\.", text_of(together[0])) or together[0].end is FinishReason.LENGTH


async def test_a_grammar_that_can_go_on_no_further_ends_the_answer_without_an_end_token() -> None:
    async with engine() as made:
        given = await answer(made, asked(lark('start: "yes"'), ignore_eos=True, min_tokens=50))
    assert (given.tokens, given.end) == (tuple(b"yes"), FinishReason.STOP)


async def test_an_end_token_is_only_drawn_where_the_grammar_may_end() -> None:
    async with engine(preferring(END_TOKEN, ord("a"))) as made:
        given = await answer(made, asked(lark('start: "aaa" /a*/'), sampling=SamplingParams(temperature=0)))
    assert given.tokens == (*b"aaa", END_TOKEN)


async def test_where_end_tokens_are_ignored_a_grammar_that_may_go_on_does() -> None:
    async with engine(preferring(END_TOKEN, ord("a"))) as made:
        wanted = asked(ANY_WORD, 20, ignore_eos=True, sampling=SamplingParams(temperature=0))
        given = await answer(made, wanted)
    assert (given.tokens, given.end) == (tuple(b"a" * 20), FinishReason.LENGTH)


async def test_min_tokens_puts_off_an_end_that_a_grammar_allows() -> None:
    async with engine(preferring(END_TOKEN, ord("a"))) as made:
        wanted = asked(ANY_WORD, 20, min_tokens=5, sampling=SamplingParams(temperature=0))
        assert (await answer(made, wanted)).tokens == (*b"aaaaa", END_TOKEN)


async def test_biases_choose_among_what_a_grammar_allows() -> None:
    forced = SamplingParams(temperature=0, logit_bias=((ord("b"), FORCE_BIAS),))
    banned = SamplingParams(temperature=0, logit_bias=((ord("a"), BAN_BIAS),))
    async with engine(preferring(ord("a"), ord("b"))) as made:
        for sampling in (forced, banned):
            assert text_of(await answer(made, asked(lark('start: "a" | "b"'), sampling=sampling))) == "b"


@pytest.mark.parametrize("bias", [(ord("a"), BAN_BIAS), (ord("z"), FORCE_BIAS)])
async def test_where_biases_leave_nothing_of_a_grammar_the_grammar_decides(bias: tuple[int, float]) -> None:
    async with engine() as made:
        wanted = asked(lark('start: "aaa"'), sampling=SamplingParams(logit_bias=(bias,)))
        assert text_of(await answer(made, wanted)) == "aaa"


async def test_a_stop_token_that_the_grammar_allows_ends_the_answer() -> None:
    async with engine(preferring(ord("a"))) as made:
        wanted = asked(ANY_WORD, stop_tokens=frozenset({ord("a")}), sampling=SamplingParams(temperature=0))
        assert await answer(made, wanted) == Answer(tuple(b"a"), FinishReason.STOP)


async def test_log_probabilities_are_those_of_the_model_not_of_the_grammar() -> None:
    next_logits = hashed_logits(0, SIZE)
    async with engine() as made:
        wanted = asked(lark('start: "yes"'), logprobs=LogprobParams(of_output=True, num_top=3))
        chunks = [chunk async for chunk in made.generate(wanted)]
    known = list(wanted.prompt_tokens)
    for logprob in (each for chunk in chunks for each in chunk.logprobs):
        logits = next_logits(tuple(known)).astype(np.float64)
        softmax = logits - np.log(np.exp(logits).sum())
        assert logprob.logprob == pytest.approx(softmax[logprob.token], abs=1e-5)
        assert [token for token, _ in logprob.top] == np.argsort(-softmax)[:3].tolist()
        known.append(logprob.token)
    assert bytes(known[len(wanted.prompt_tokens) :]) == b"yes"


async def test_a_sequence_that_lost_its_slot_goes_on_where_it_was_in_its_grammar() -> None:
    sampling = [SamplingParams(seed=seed) for seed in range(4)]
    async with engine() as made:
        unhurried = [await answer(made, asked(POINTS, sampling=each)) for each in sampling]
    async with engine(cache_tokens=40) as cramped:
        answers = await asyncio.gather(*(answer(cramped, asked(POINTS, sampling=each)) for each in sampling))
    assert [text_of(each) for each in answers] == [text_of(each) for each in unhurried]


async def test_what_cannot_be_compiled_fails_alone_and_before_it_has_a_slot() -> None:
    async with engine() as made:
        beside = asyncio.create_task(answer(made, asked(POINTS)))
        with pytest.raises(UnsupportedGrammar, match="cannot be followed"):
            await answer(made, asked(lark("start: nothing_known")))
        assert (await beside).end is FinishReason.STOP
        assert made.health().num_running == 0


async def test_a_grammar_that_becomes_too_complex_ends_its_own_answer_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grammars, "PARSER_LIMITS", LLParserLimits(max_items_in_row=200))
    ambiguous = lark('start: a\na: a a | b\nb: b b | c | "x"\nc: c c | a | "x" a? b? c? | "x"')
    async with engine(preferring(ord("x"))) as made:
        beside = asyncio.create_task(answer(made, asked(POINTS)))
        with pytest.raises(EngineError, match="too complex"):
            await answer(made, asked(ambiguous, 240, sampling=SamplingParams(temperature=0)))
        assert (await beside).end is FinishReason.STOP


async def test_compiled_grammars_are_kept_up_to_a_bound_and_each_beginning_is_a_fresh_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other = lark('start: "a"')
    monkeypatch.setattr(grammars, "MAX_KEPT", len(ANY_WORD.definition) + len(POINTS.definition))
    tokenizer = ByteTokenizer([])
    compiler = GrammarCompiler(tokenizer.vocabulary, tokenizer.encode_text)
    compiled = counting(compiler)
    first, second = await asyncio.gather(compiler.begin(ANY_WORD), compiler.begin(ANY_WORD))
    assert second.matcher is not first.matcher
    assert compiled == [ANY_WORD]
    for grammar in (POINTS, ANY_WORD, other, ANY_WORD):
        await compiler.begin(grammar)
    assert compiled == [ANY_WORD, POINTS, other]
    await compiler.begin(POINTS)
    assert compiled[-1] == POINTS


def counting(compiler: GrammarCompiler) -> list[Grammar]:
    """What the compiler compiles from now on, in order."""
    compiled: list[Grammar] = []
    compile: Callable[[Grammar], grammars.GrammarState] = compiler._compile

    def counted(grammar: Grammar) -> grammars.GrammarState:
        compiled.append(grammar)
        return compile(grammar)

    compiler._compile = counted  # type: ignore[method-assign]
    return compiled


async def test_an_engine_that_ends_has_no_thread_left_that_reads_its_tokenizer() -> None:
    reading, may_go_on, is_closed = threading.Event(), threading.Event(), threading.Event()

    class SlowTokenizer(ByteTokenizer):
        def encode_text(self, text: str) -> Sequence[int]:
            reading.set()
            assert may_go_on.wait(60)
            assert not is_closed.is_set()
            return super().encode_text(text)

    class WatchedRunner(ScriptedRunner):
        def close(self) -> None:
            is_closed.set()

    limits = RunnerLimits(1, 256, 64, SIZE, 64)
    runner = WatchedRunner(limits, hashed_logits(0, SIZE))
    made = BatchingEngine(runner, MixedSteps(limits), SlowTokenizer([]), EngineInfo(256, 1, None, "fp_test"))
    loop = asyncio.create_task(asyncio.to_thread(made.run))
    assert await asyncio.to_thread(reading.wait, 60)
    await made.close()
    may_go_on.set()
    await loop
    assert is_closed.is_set()
