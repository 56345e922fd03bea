"""The step loop with images in prompts, over given logits and a vision that sees what images say they are."""

from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.batching.cores import (
    AdaptedRunner,
    Answers,
    SeeingCore,
    Visit,
    alone,
    check_all,
    play,
    run,
    samplings,
    visits_of,
)
from engine.batching.fake_vision import FakeVision, holding, picture, shown
from engine.batching.steps import rising_costs
from engine.builders import hashed_logits, request, runner_limits
from octavo.core.images import Image, ImageSpan
from octavo.core.output import FinishReason
from octavo.core.request import GenerationRequest, LogprobParams
from octavo.core.sampling import SamplingParams
from octavo.engine.batching.composer import Composer, LoneSteps, MixedSteps
from octavo.engine.batching.drafts import PromptLookup
from octavo.engine.batching.image_store import ImageStore
from octavo.engine.batching.runner import ForwardBatch, RunnerLimits, Snapshot
from octavo.engine.batching.sampler import sample
from octavo.engine.batching.sequence import Sequence
from octavo.engine.runners.scripted import NextLogits

ONE, OTHER = picture(20, tag="one"), picture(20, tag="other")
TILES, SMALL = picture(3, 5, 3, tag="tiles"), picture(1, tag="small")
WHOLE = picture(6, 6, tag="whole", is_whole=True)
LARGE, LARGE_WHOLE = picture(300, tag="large"), picture(300, tag="large", is_whole=True)
IMAGES = (ONE, OTHER, TILES, SMALL, WHOLE, LARGE, LARGE_WHOLE)
COMPOSERS = pytest.mark.parametrize("composer", [MixedSteps, LoneSteps])


@pytest.fixture
def images() -> Iterator[ImageStore]:
    with holding(*IMAGES) as store:
        yield store


def runner_of(
    next_logits: NextLogits | None = None,
    *,
    num_slots: int = 4,
    context_length: int = 64,
    max_batch_tokens: int = 16,
    max_logits: int = 16,
    can_share: bool = True,
    cache_tokens: int | None = None,
) -> AdaptedRunner:
    limits = runner_limits(
        num_slots=num_slots,
        context_length=context_length,
        max_batch_tokens=max_batch_tokens,
        max_logits=max_logits,
        can_share=can_share,
    )
    return AdaptedRunner(limits, next_logits or hashed_logits(0), cache_tokens=cache_tokens)


def core(
    runner: AdaptedRunner,
    images: ImageStore,
    composer: Callable[[RunnerLimits], Composer] = MixedSteps,
    max_saved: int = 0,
) -> SeeingCore:
    return SeeingCore(runner, composer(runner.limits), images, max_saved=max_saved)


def asked(*parts: int | Image, max_tokens: int = 4, **fields: object) -> GenerationRequest:
    """A request that shows images between tokens of text; its answer ends at max_tokens unless a field says other."""
    prompt = shown(*parts)
    settings: dict[str, object] = {"ignore_eos": True} | fields
    return request(prompt.tokens, max_tokens, images=prompt.spans, **settings)


def lengths(runner: AdaptedRunner) -> list[tuple[bool, int]]:
    """Of each batch: whether it is of an image, and how many tokens it has."""
    return [(batch.image is not None, len(batch.tokens)) for batch in runner.batches]


parts = st.lists(
    st.lists(st.integers(1, 15), min_size=1, max_size=6).map(tuple)
    | st.sampled_from((ONE, OTHER, TILES, SMALL, WHOLE)),
    min_size=1,
    max_size=5,
)


def made(parts: list[tuple[int, ...] | Image], *, max_tokens: int, **fields: object) -> GenerationRequest | None:
    flat = [each for part in parts for each in ((part,) if isinstance(part, Image) else part)]
    made = asked(*flat, max_tokens=max_tokens, **fields)
    return made if len(made.prompt_tokens) + max_tokens <= 64 else None


requests = st.builds(
    made,
    parts,
    max_tokens=st.integers(0, 8),
    sampling=samplings,
    ignore_eos=st.booleans(),
    logprobs=st.builds(LogprobParams, st.booleans(), st.booleans(), st.integers(0, 3)),
).filter(lambda made: made is not None)
visits = visits_of(requests)


@COMPOSERS
@given(visits, st.integers(1, 4), st.integers(6, 40), st.integers(1, 20), st.booleans(), st.integers(0, 200))
def test_everybody_gets_what_the_plain_loop_gives(
    composer: type,
    visits: list[Visit],
    num_slots: int,
    token_budget: int,
    max_logits: int,
    can_share: bool,
    max_saved: int,
) -> None:
    next_logits = hashed_logits(3)
    runner = runner_of(
        next_logits,
        num_slots=num_slots,
        max_batch_tokens=token_budget,
        max_logits=max(max_logits, num_slots),
        can_share=can_share,
    )
    with holding(*IMAGES) as images:
        under_test = core(runner, images, composer, max_saved)
        check_all(visits, play(under_test, visits), next_logits)
    assert (under_test.num_running, under_test.num_waiting) == (0, 0)


@COMPOSERS
@given(visits, st.integers(2, 4), st.integers(64, 110), st.integers(6, 40), st.integers(0, 200))
def test_with_a_cache_for_few_everybody_still_gets_the_same(
    composer: type, visits: list[Visit], num_slots: int, cache_tokens: int, token_budget: int, max_saved: int
) -> None:
    next_logits = hashed_logits(4)
    runner = runner_of(next_logits, num_slots=num_slots, max_batch_tokens=token_budget, cache_tokens=cache_tokens)
    with holding(*IMAGES) as images:
        check_all(visits, play(core(runner, images, composer, max_saved), visits), next_logits)


@COMPOSERS
@pytest.mark.parametrize("image", [ONE, TILES, SMALL, WHOLE])
@pytest.mark.parametrize("max_tokens", [0, 1, 4])
@pytest.mark.parametrize("scores", [False, True])
def test_an_image_may_be_the_first_and_the_last_of_a_prompt(
    composer: type, image: Image, max_tokens: int, scores: bool, images: ImageStore
) -> None:
    each = asked(image, max_tokens=max_tokens, logprobs=LogprobParams(of_prompt=scores))
    assert run(core(runner_of(), images, composer), each).of(each) == alone(each, hashed_logits(0))


def test_an_image_is_computed_in_chunks_of_the_budget_and_texts_apart(images: ImageStore) -> None:
    runner = runner_of(max_batch_tokens=8)
    run(core(runner, images), asked(1, 2, ONE, 3, max_tokens=1))
    assert lengths(runner) == [(False, 2), (True, 8), (True, 8), (True, 4), (False, 1)]


def test_touching_parts_are_computed_one_by_one(images: ImageStore) -> None:
    runner = runner_of()
    run(core(runner, images), asked(1, TILES, SMALL, SMALL, 2, max_tokens=1))
    assert lengths(runner) == [(False, 1), *((True, size) for size in (3, 5, 3, 1, 1)), (False, 1)]


def decoding_beside(image: Image, images: ImageStore) -> AdaptedRunner:
    """A runner that has computed the image beside somebody else's answer, with steps that are dear."""
    runner = runner_of(context_length=400, max_batch_tokens=512)
    under_test = core(runner, images, lambda limits: MixedSteps(limits, rising_costs(per_token=1.0)))
    run(under_test, asked(1, 2, max_tokens=30), asked(image, 3, max_tokens=1))
    return runner


def test_beside_an_answer_an_image_is_computed_in_chunks_that_do_not_hold_it_up(images: ImageStore) -> None:
    chunks = [size for is_image, size in lengths(decoding_beside(LARGE, images)) if is_image]
    assert sum(chunks) == 300
    assert max(chunks[1:]) <= 128, "the first one is before the answer begins"


def test_an_image_that_is_seen_as_a_whole_is_computed_in_one_step_whatever_waits(images: ImageStore) -> None:
    assert [size for is_image, size in lengths(decoding_beside(LARGE_WHOLE, images)) if is_image] == [300]


def test_others_have_turns_between_the_chunks_of_an_image(images: ImageStore) -> None:
    runner = runner_of(max_batch_tokens=4)
    under_test = core(runner, images)
    run(under_test, asked(1, max_tokens=12), asked(2, ONE, 3, max_tokens=2), asked(4, OTHER, 5, max_tokens=2))
    kinds = [is_image for is_image, _ in lengths(runner)]
    assert kinds.count(True) == 10
    both = kinds[kinds.index(True) :][: 2 * 10]
    assert all(one != other for one, other in pairwise(both))


def test_two_requests_that_show_one_image_have_it_encoded_once(images: ImageStore) -> None:
    vision = FakeVision()
    with holding(*IMAGES, vision=vision) as images:
        run(core(runner_of(), images), *(asked(token, TILES, 2) for token in (3, 4, 5)))
    assert vision.encoded == [(TILES.digest, number) for number in range(3)]


def test_nobody_s_image_is_encoded_while_another_one_can_be_computed(images: ImageStore) -> None:
    vision = FakeVision()
    with holding(*IMAGES, vision=vision) as images:
        runner = runner_of(max_batch_tokens=4)
        under_test = core(runner, images)
        for each in (asked(1, ONE, 2), asked(1, OTHER, 2)):
            under_test.submit(each)
        seen = []
        while under_test.has_work:
            under_test.step()
            seen.append((len(vision.encoded), sum(is_image for is_image, _ in lengths(runner))))
    second = next(num_computed for num_encoded, num_computed in seen if num_encoded == 2)
    assert second == 5, "all chunks of the first"


@COMPOSERS
def test_a_new_image_is_encoded_however_many_requests_with_known_ones_come(
    composer: Callable[[RunnerLimits], Composer], images: ImageStore
) -> None:
    """Seven streams of questions about a known image, so that somebody is always at it."""
    under_test = core(runner_of(num_slots=8), images, composer)
    under_test.submit(asked(1, ONE, 2, max_tokens=1))
    while under_test.has_work:
        under_test.step()
    waiting = asked(9, OTHER, 2, max_tokens=1)
    under_test.submit(waiting)
    for number in range(7):
        under_test.submit(asked(number + 20, ONE, 2, max_tokens=1))
    for step in range(200):
        outputs = under_test.step()
        if any(id == waiting.id for id, _ in outputs):
            break
        for _ in outputs:
            under_test.submit(asked(step % 7 + 20, step % 11 + 40, ONE, 2, max_tokens=1))
    else:
        raise AssertionError("it was never answered")


def test_a_preempted_sequence_sees_its_image_again_and_ends_the_same(images: ImageStore) -> None:
    runner = runner_of(cache_tokens=50)
    first, second = asked(1, ONE, 2, max_tokens=20), asked(3, OTHER, 4, max_tokens=20)
    answers = run(core(runner, images), first, second)
    assert [answers.of(each) for each in (first, second)] == [alone(each, hashed_logits(0)) for each in (first, second)]
    assert sum(size for is_image, size in lengths(runner) if is_image) > 40, "an image was computed twice"


def test_a_prompt_that_is_scored_and_preempted_behind_its_image_is_scored_once(images: ImageStore) -> None:
    """Its image has been computed, and a text token behind it scored, before there is no room any more."""
    runner = runner_of(max_batch_tokens=8, cache_tokens=34)
    first = asked(1, 2, max_tokens=30)
    second = asked(3, SMALL, *range(1, 15), *range(1, 15), max_tokens=1, logprobs=LogprobParams(of_prompt=True))
    under_test = core(runner, images)
    answers = Answers()
    answers.take(under_test.submit(first))
    for _ in range(6):
        answers.take(under_test.step())
    answers.take(run_to_end(under_test, second))
    assert sum(is_image for is_image, _ in lengths(runner)) == 2, "its image was computed twice"
    assert answers.of(second) == alone(second, hashed_logits(0))


def run_to_end(under_test: SeeingCore, asked: GenerationRequest) -> Iterator[object]:
    yield from under_test.submit(asked)
    while under_test.has_work:
        yield from under_test.step()


TEXT = tuple(range(1, 11)) * 2


@COMPOSERS
def test_equal_images_are_computed_once_and_different_ones_never_taken_for_each_other(
    composer: type, images: ImageStore
) -> None:
    under_test = core(runner_of(max_logits=4, num_slots=3), images, composer, max_saved=1000)
    prompts = [asked(*TEXT, image, last, 8, max_tokens=1) for last, image in enumerate((ONE, OTHER, ONE, OTHER))]
    assert [run(under_test, each).num_cached(each) for each in prompts] == [0, 20, 40, 40]


def test_of_an_image_that_is_not_whole_in_a_prefix_nothing_is_taken(images: ImageStore) -> None:
    under_test = core(runner_of(max_batch_tokens=10), images)
    gone = asked(*TEXT, ONE, 3)
    under_test.submit(gone)
    for _ in range(3):
        under_test.step()
    under_test.cancel(gone.id)
    after = asked(*TEXT, ONE, 3, max_tokens=1)
    assert run(under_test, after).num_cached(after) == 20


@pytest.mark.parametrize(("second", "num_cached"), [(OTHER, 40), (ONE, 20), (TILES, 20)])
def test_touching_images_are_cut_between_them(second: Image, num_cached: int, images: ImageStore) -> None:
    """ONE, OTHER and then only ONE in common, or nothing."""
    under_test = core(runner_of(num_slots=1), images, max_saved=1000)
    run(under_test, asked(ONE, OTHER, 3, max_tokens=1))
    after = asked(ONE, second, 4, max_tokens=1)
    answers = run(under_test, after)
    assert answers.num_cached(after) == num_cached
    assert answers.of(after) == alone(after, hashed_logits(0))


def test_a_prompt_s_log_probabilities_leave_images_out_and_have_the_text_right_behind_them(images: ImageStore) -> None:
    scored = asked(1, 2, ONE, 3, TILES, 4, 5, max_tokens=0, logprobs=LogprobParams(of_prompt=True, num_top=2))
    runner = runner_of(max_batch_tokens=8)
    answer = run(core(runner, images), scored).of(scored)
    assert [each.token for each in answer.prompt_logprobs] == [2, 3, 4, 5]
    assert answer == alone(scored, hashed_logits(0))
    rows = [int(batch.wants_logits.sum()) for batch in runner.batches if batch.image is not None]
    assert rows == [0, 0, 1, 1, 1, 1], "of a part of an image only the last token can say something of a text"


def test_a_repetition_penalty_is_for_tokens_of_texts_only() -> None:
    params = SamplingParams(temperature=0.0, repetition_penalty=2.0)
    prompt = shown(1, ONE)
    seeing = Sequence(request(prompt.tokens, images=prompt.spans, sampling=params), context_length=64)
    reading = Sequence(request((1,), sampling=params), context_length=64)
    for best in range(1, 16):  # every place that a negative token could be taken for
        logits = np.ones((2, 16), np.float32)
        logits[:, best] = 1.5
        drawn = sample(logits, [seeing, reading]).tolist()
        assert drawn[0] == drawn[1]


@given(parts, st.lists(st.integers(1, 3), max_size=6), st.integers(0, 12))
def test_no_token_of_an_image_is_ever_drafted(
    parts: list[tuple[int, ...] | Image], output: list[int], max_length: int
) -> None:
    each = made(parts, max_tokens=0)
    if each is None:
        return
    known = Sequence(each, context_length=1000)
    for token in (1, *output):
        known.append(token)
    [drafted] = PromptLookup().propose([known], [max_length])
    assert (drafted >= 0).all()
    assert len(drafted) <= max_length


def test_a_draft_ends_where_an_image_followed() -> None:
    prompt = shown(1, 2, 3, SMALL, 4, 1, 2)
    known = Sequence(request(prompt.tokens, images=prompt.spans), context_length=1000)
    [drafted] = PromptLookup().propose([known], [8])
    assert drafted.tolist() == [3]


class WatchedRunner(AdaptedRunner):
    """shapes: by all tokens that a slot then held, (first position, number of tokens) of the batches that got there."""

    def __init__(self) -> None:
        super().__init__(runner_limits(num_slots=3, max_batch_tokens=8, max_logits=8), hashed_logits(0))
        self._held: dict[int, tuple[int, ...]] = {}
        self.shapes: dict[tuple[int, ...], set[tuple[int, int]]] = {}

    def restore(self, slot: int, snapshot: Snapshot) -> None:
        super().restore(slot, snapshot)
        self._held[slot] = tuple(self._cache[slot])

    def forward(self, batch: ForwardBatch) -> np.ndarray:
        [slot] = set(batch.slots.tolist())
        start = int(batch.positions[0])
        held = self._held[slot] = (*self._held.get(slot, ())[:start], *batch.tokens.tolist())
        self.shapes.setdefault(held, set()).add((start, len(batch.tokens)))
        return super().forward(batch)


@given(st.lists(parts, min_size=1, max_size=5), st.integers(0, 4))
def test_lone_steps_compute_every_token_in_the_same_shape_whatever_else_runs(
    prompts: list[list[tuple[int, ...] | Image]], which: int
) -> None:
    def shapes(*prompts: list[tuple[int, ...] | Image]) -> dict[tuple[int, ...], set[tuple[int, int]]]:
        runner = WatchedRunner()
        with holding(*IMAGES) as images:
            run(core(runner, images, LoneSteps), *(each for each in map(short, prompts) if each is not None))
        return runner.shapes

    together, by_itself = shapes(*prompts), shapes(prompts[which % len(prompts)])
    for tokens, shape in by_itself.items():
        assert together.get(tokens, shape) == shape


def short(parts: list[tuple[int, ...] | Image]) -> GenerationRequest | None:
    return made(parts, max_tokens=3)


def test_an_image_that_fails_ends_those_that_are_at_it_and_nobody_else(images: ImageStore) -> None:
    under_test = core(runner_of(), images)
    failing, same, other, text = asked(1, ONE), asked(2, ONE), asked(3, OTHER, 4), asked(5)
    answers = Answers()
    for each in (failing, same, other, text):
        answers.take(under_test.submit(each))
    for _ in range(2):
        answers.take(super(SeeingCore, under_test).step())
    span = under_test.unseen_span
    assert span is not None
    assert under_test.needs(span)
    assert not under_test.needs(ImageSpan(ONE.digest, 1, 0, 5))
    answers.take(under_test.fail_image(span, "It cannot be seen."))
    assert not under_test.needs(span)
    while under_test.has_work:
        answers.take(under_test.step())
    assert [answers.of(each).end for each in (failing, same)] == ["It cannot be seen."] * 2
    assert [answers.of(each) for each in (other, text)] == [alone(each, hashed_logits(0)) for each in (other, text)]
    assert answers.of(text).end is FinishReason.LENGTH
