"""The choices of a request."""

import gc
import weakref
from itertools import pairwise

from octavo.api.convert.job import Plan, planned_job
from octavo.api.schemas.completions import CompletionRequest
from octavo.core.caller import ANYONE
from octavo.core.grammar import ANY_TEXT
from octavo.core.request import LogprobParams
from octavo.engine.scripted import ScriptedEngine
from octavo.engine.specs import ScriptedSpec
from octavo.service import GenerationJob, ServedModel

PROMPTS = ((65,), (66, 67), (68,))


def wire_of(**fields: object) -> CompletionRequest:
    return CompletionRequest.model_validate({"model": "m", "prompt": "x", "n": 4, **fields})


def job_of(wire: CompletionRequest) -> GenerationJob:
    model = ServedModel("m", ScriptedEngine(ScriptedSpec("abc")), 0)
    plan = Plan(PROMPTS, max_tokens=9, best_of=4, logprobs=LogprobParams(), grammar=ANY_TEXT, caller=ANYONE)
    return planned_job("id", wire, model, plan)


def test_choices_are_ordered_by_prompt_and_sample() -> None:
    choices = job_of(wire_of()).choices
    assert len(choices) == 12
    assert [choice.index for choice in choices] == list(range(12))
    assert [choice.request.prompt_tokens for choice in choices[::4]] == list(PROMPTS)
    assert [choice.index for choice in choices[2:9:3]] == [2, 5, 8]
    assert choices[-1].index == 11
    assert len({choice.request.sampling.seed for choice in choices}) == 12
    assert len({choice.request.id for choice in choices}) == 12


def test_a_choice_is_the_same_however_often_it_is_asked_for() -> None:
    choices = job_of(wire_of()).choices
    assert list(choices) == list(choices)
    assert [choices[index] for index in range(12)] == list(choices)


def test_choices_are_made_as_they_are_asked_for() -> None:
    first = iter(job_of(wire_of(n=128)).choices)
    made = [next(first) for _ in range(3)]
    assert all(one is not other for one, other in pairwise(made))
    gc.collect()
    assert sum(type(each) is type(made[0]) for each in gc.get_objects()) < 10


def test_a_job_keeps_nothing_of_the_request_but_what_it_needs() -> None:
    wire = wire_of(prompt="x" * 1000)
    gone = weakref.ref(wire)
    job = job_of(wire)
    del wire
    gc.collect()
    assert gone() is None
    assert job.choices[0].index == 0
