"""What a grammar forces is drafted, and changes no answer."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llguidance import LLMatcher

from engine.batching.cores import Answer, Answers
from engine.batching.steps import SteadySteps
from engine.builders import hashed_logits, request
from octavo.constraints.library import library_tokenizer
from octavo.core.sampling import SamplingParams
from octavo.engine.batching.composer import MixedSteps
from octavo.engine.batching.core import EngineCore
from octavo.engine.batching.draft_model import DraftModel
from octavo.engine.batching.drafts import ForcedTokens, PromptLookup
from octavo.engine.batching.grammars import GrammarState
from octavo.engine.batching.runner import RunnerLimits
from octavo.engine.batching.sequence import Sequence
from octavo.engine.batching.speculation import NO_DRAFTING, Drafting, Speculation
from octavo.engine.batching.step_costs import FREE_STEPS
from octavo.engine.runners.scripted import NextLogits, ScriptedRunner
from octavo.engine.scripted import END_TOKEN, ByteTokenizer

BYTES = ByteTokenizer([])
SIZE = BYTES.vocabulary.size
LIBRARY = library_tokenizer(BYTES.vocabulary, BYTES.encode_text)
GRAMMARS = {
    "names": LLMatcher.grammar_from_json_schema(
        {
            "type": "object",
            "properties": {"first_name": {"enum": ["Ann", "Anton"]}, "is_old": {"type": "boolean"}},
            "required": ["first_name", "is_old"],
            "additionalProperties": False,
        },
        overrides={"whitespace_flexible": False},
    ),
    "words": LLMatcher.grammar_from_lark('start: "it is " ("so" | "not so" | /[a-f]{0,9}/) " he said" /!*/'),
}


class CountingMatcher:
    """Counts how often the library is asked what is forced."""

    def __init__(self, matcher: LLMatcher) -> None:
        self._matcher = matcher
        self.num_asked = 0

    def compute_ff_tokens(self) -> list[int]:
        self.num_asked += 1
        return self._matcher.compute_ff_tokens()

    def consume_token(self, token: int) -> bool:
        return self._matcher.consume_token(token)

    def is_stopped(self) -> bool:
        return self._matcher.is_stopped()


def state(grammar: str) -> GrammarState:
    matcher = LLMatcher(LIBRARY, grammar, log_level=0)
    assert not matcher.get_error()
    return GrammarState(matcher)


def constrained(grammar: GrammarState, max_tokens: int = 100) -> Sequence:
    return Sequence(request((1, 2), max_tokens), 200, frozenset({END_TOKEN}), grammar)


def core(next_logits: NextLogits, drafting: Drafting = NO_DRAFTING) -> tuple[EngineCore, ScriptedRunner]:
    runner = ScriptedRunner(RunnerLimits(4, 200, 64, SIZE, 64), next_logits)
    composer = MixedSteps(runner.limits, SteadySteps(), drafting)
    return EngineCore(runner, composer, eog_tokens=frozenset({END_TOKEN})), runner


def answers_of(under_test: EngineCore, samplings: list[SamplingParams], grammars: list[str]) -> list[Answer]:
    answers = Answers()
    asked = [request(tuple(b"Say: "), 60, sampling=sampling) for sampling in samplings]
    for each, grammar in zip(asked, grammars, strict=True):
        answers.take(under_test.submit(each, state(GRAMMARS[grammar])))
    while under_test.has_work:
        answers.take(under_test.step())
    under_test.close()
    return [answers.of(each) for each in asked]


samplings = st.builds(
    SamplingParams,
    temperature=st.sampled_from((0.0, 1.0)),
    presence_penalty=st.sampled_from((0.0, 0.6)),
    seed=st.integers(0, 1000),
)


def forced_alone(_: NextLogits) -> Speculation:
    return Speculation([ForcedTokens()], SteadySteps())


def all_drafters(next_logits: NextLogits) -> Speculation:
    model = DraftModel(ScriptedRunner(RunnerLimits(4, 200, 64, SIZE, 64), next_logits), FREE_STEPS)
    return Speculation([ForcedTokens(), PromptLookup()], SteadySteps(), model)


@pytest.mark.parametrize("drafting", [forced_alone, all_drafters])
@settings(max_examples=30)
@given(st.lists(st.tuples(samplings, st.sampled_from(sorted(GRAMMARS))), min_size=1, max_size=6))
def test_answers_under_grammars_are_those_without_drafts(
    drafting: Callable[[NextLogits], Speculation], wanted: list[tuple[SamplingParams, str]]
) -> None:
    next_logits = hashed_logits(2, SIZE)
    samplings, grammars = [each for each, _ in wanted], [each for _, each in wanted]
    plain, plain_runner = core(next_logits)
    drafted, runner = core(next_logits, drafting(next_logits))
    assert answers_of(drafted, samplings, grammars) == answers_of(plain, samplings, grammars)
    assert len(runner.batches) < len(plain_runner.batches)


def forced(drafter: ForcedTokens, sequence: Sequence, max_length: int = 50) -> bytes:
    return bytes(drafter.propose([sequence], [max_length])[0].tolist())


def test_a_draft_is_what_the_grammar_leaves_no_choice_about() -> None:
    drafter, sequence = ForcedTokens(), constrained(state(GRAMMARS["names"]))
    assert forced(drafter, sequence).startswith(b'{"first_name":"An')
    assert forced(drafter, sequence, max_length=3) == b'{"f'
    for token in b'{"first_name":"Ann':
        sequence.append(token)
    assert forced(drafter, sequence).startswith(b'","is_old":')


def test_there_is_none_where_there_is_a_choice_or_no_grammar() -> None:
    drafter, sequence = ForcedTokens(), constrained(state(GRAMMARS["words"]))
    for token in b"it is ":
        sequence.append(token)
    free = Sequence(request((1, 2)), 200)
    assert [len(tokens) for tokens in drafter.propose([sequence, free], [9, 9])] == [0, 0]


def test_the_library_is_asked_again_only_where_a_draft_is_used_up_or_was_wrong() -> None:
    matcher = CountingMatcher(LLMatcher(LIBRARY, GRAMMARS["names"], log_level=0))
    sequence = constrained(GrammarState(matcher))  # type: ignore[arg-type]
    drafter = ForcedTokens()
    for token in b'{"first_':
        assert forced(drafter, sequence)[0] == token
        sequence.append(token)
    assert matcher.num_asked == 1


def mask(matcher: LLMatcher) -> list[int]:
    bits = np.unpackbits(np.frombuffer(matcher.compute_bitmask(), np.uint8), bitorder="little")
    return np.flatnonzero(bits).tolist()


@pytest.mark.parametrize("grammar", sorted(GRAMMARS))
@given(st.lists(st.integers(0, SIZE), max_size=60))
def test_asking_what_is_forced_changes_nothing_of_what_is_allowed(grammar: str, choices: list[int]) -> None:
    asked, other = (state(GRAMMARS[grammar]).matcher for _ in range(2))
    for choice in choices:
        said, allowed = asked.compute_ff_tokens(), mask(other)
        assert mask(asked) == allowed
        assert not said or said[0] in allowed
        token = allowed[choice % len(allowed)]
        assert asked.consume_token(token) == other.consume_token(token)
        if other.is_stopped():
            break
    assert asked.is_stopped() == other.is_stopped()
