"""Behind pictures, the engine computes what libmtmd's own helper does, whatever a family does with their tokens."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio

from octavo.core.images import Image
from octavo.engine.base import Engine
from octavo.errors import ImageRefused
from support.block_pictures import blocks
from support.libmtmd import Chunk, Libmtmd, Part
from support.shared_models import shared_model
from support.tiny_vision import FAMILIES, VisionModel

from .seeing import NUM_SLOTS, ROUNDED, Family, answer, assembled, check, generate, row_of, running

pytestmark = pytest.mark.asyncio(loop_scope="module")

BATCH = 256
SMALL_STEPS = "in steps of less than a picture"
SETTINGS = {"in one step": {"token_budget": BATCH}, SMALL_STEPS: {"token_budget": 8}}
SEEN_WHOLE = "gemma3"
"""Each token of its pictures attends to all the others."""
WIDE, SQUARE, TALL = blocks(1, 80, 48), blocks(2, 64, 64), blocks(3, 48, 96)
PROMPTS: dict[str, Sequence[Part]] = {
    "a picture first": (WIDE, " what is it"),
    "a picture in the middle": ("You see ", TALL, " what is it"),
    "two pictures": ("One ", WIDE, " and two ", SQUARE, " which"),
    "two touching pictures": ("Both: ", TALL, WIDE, " which"),
    "two touching pictures first": (SQUARE, TALL, " which"),
    "one picture three times": ("Now ", WIDE, WIDE, " and ", WIDE, " how many"),
    "no picture": ("You see nothing at all, and that is all there is",),
}


def write_family(name: str, folder: Path) -> VisionModel:
    if name in FAMILIES:
        return FAMILIES[name](folder)
    tiny_vlm = shared_model("tiny-vlm")
    return VisionModel(tiny_vlm / "tiny-vlm-f16.gguf", tiny_vlm / "mmproj-tiny-vlm-f16.gguf")


@pytest.fixture(scope="module", params=[*FAMILIES, "tiny-vlm"])
def family(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Family:
    return Family(request.param, write_family(request.param, tmp_path_factory.mktemp(request.param)))


@pytest.fixture(scope="module")
def libmtmd(family: Family) -> Iterator[Libmtmd]:
    files = family.files
    opened = Libmtmd(files.path, files.mmproj, context_length=files.context_length, batch=BATCH)
    yield opened
    opened.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=SETTINGS)
async def engine(request: pytest.FixtureRequest, family: Family) -> AsyncIterator[Engine]:
    if family.name == SEEN_WHOLE and request.param == SMALL_STEPS:
        pytest.skip("a picture that is seen as a whole needs a step that holds it")
    async with running(family, **SETTINGS[request.param]) as engine:
        yield engine


async def test_a_prompt_s_tokens_are_those_that_libmtmd_cuts_it_into(engine: Engine, libmtmd: Libmtmd) -> None:
    for parts in PROMPTS.values():
        tokens, spans = await assembled(engine, parts)
        expected: list[Chunk] = list(libmtmd.chunks(parts))
        ours: list[int | None] = list(tokens)
        for span in spans:
            ours[span.start : span.end] = [None] * span.num_tokens
        theirs = [token for chunk in expected for token in chunk.tokens or [None] * chunk.num_tokens]
        assert ours == theirs
        assert [span.num_tokens for span in spans] == [chunk.num_tokens for chunk in expected if chunk.is_image]
        assert all((token < 0) == (place is None) for token, place in zip(tokens, ours, strict=True))


@pytest.mark.parametrize("name", PROMPTS)
async def test_what_follows_pictures_is_the_helper_s_computed_anew_and_found_computed(
    engine: Engine, libmtmd: Libmtmd, family: Family, name: str
) -> None:
    first, second = [await answer(engine, PROMPTS[name]) for _ in range(2)]
    check(libmtmd, family, PROMPTS[name], first)
    check(libmtmd, family, PROMPTS[name], second)
    assert second.tokens == first.tokens
    assert second.num_cached > 0


async def test_a_prompt_that_parts_between_two_touching_pictures_keeps_the_first_one(
    engine: Engine, libmtmd: Libmtmd, family: Family
) -> None:
    one, two, three = blocks(10, 80, 48), blocks(11, 64, 64), blocks(12, 48, 64)
    shared = len((await assembled(engine, ("Look ", one)))[0])
    for parts in (("Look ", one, two, " which"), ("Look ", one, three, " which"), ("Look ", one, " which")):
        given = await answer(engine, parts)
        check(libmtmd, family, parts, given)
    assert given.num_cached >= shared - 1  # the last token before a picture may be asked for again
    again = await answer(engine, ("Look ", one, two, " which"))
    check(libmtmd, family, ("Look ", one, two, " which"), again)


async def test_a_second_turn_with_a_picture_finds_the_first_one_computed(
    engine: Engine, libmtmd: Libmtmd, family: Family
) -> None:
    first = ("In ", blocks(13, 96, 48), " there is")
    second = (*first, " a thing, and in ", blocks(14, 48, 80), " one more")
    await answer(engine, first)
    given = await answer(engine, second)
    check(libmtmd, family, second, given)
    assert given.num_cached >= len((await assembled(engine, first))[0]) - 1


async def test_pictures_that_differ_in_one_pixel_share_nothing(
    engine: Engine, libmtmd: Libmtmd, family: Family
) -> None:
    one = blocks(15, 64, 64)
    other = one.copy()
    other.putpixel((9, 9), (0, 0, 0))
    before = len((await assembled(engine, ("See ",)))[0])
    for each in (one, other):
        given = await answer(engine, ("See ", each, " what"))
        check(libmtmd, family, ("See ", each, " what"), given)
    assert given.num_cached <= before + 1  # the token that some families have before a picture


async def test_requests_with_and_without_pictures_run_together(
    engine: Engine, libmtmd: Libmtmd, family: Family
) -> None:
    prompts = [*PROMPTS.values()] * 2
    for parts, given in zip(
        prompts, await asyncio.gather(*(answer(engine, each, 12) for each in prompts)), strict=True
    ):
        check(libmtmd, family, parts, given)


async def test_a_picture_is_taken_back_from_the_host_s_memory(engine: Engine, libmtmd: Libmtmd, family: Family) -> None:
    parts = ("Keep ", blocks(16, 80, 64), " what is it")
    await answer(engine, parts)
    for number in range(2 * NUM_SLOTS):
        await answer(engine, (f"{number} is another text that needs a slot for itself",))
    given = await answer(engine, parts)
    check(libmtmd, family, parts, given)
    assert given.num_cached >= len((await assembled(engine, parts[:2]))[0]) - 1


async def test_the_text_around_pictures_is_scored_and_pictures_are_not(
    engine: Engine, libmtmd: Libmtmd, family: Family
) -> None:
    head, tail = ("You see ", TALL, " and", WIDE, " that"), " is all there is"
    tokens, _ = await assembled(engine, (*head, tail))
    scored = (await generate(engine, (*head, tail), max_tokens=0, of_prompt=True)).prompt_logprobs
    assert [each.token for each in scored] == [token for token in tokens[1:] if token >= 0]
    of_tail = await engine.tokenizer.encode([tail])
    expected = libmtmd.logprobs(head, of_tail)
    given = [row_of(each, engine.tokenizer.vocabulary.size) for each in scored[-len(of_tail) :]]
    assert np.abs(np.array(given) - expected).max() < family.tolerance


async def test_a_prompt_may_end_with_a_picture(engine: Engine) -> None:
    first, second = [await answer(engine, ("Look: ", WIDE)) for _ in range(2)]
    assert np.isfinite(first.logprobs).all()
    assert np.abs(first.logprobs - second.logprobs).max() < ROUNDED


async def test_a_deterministic_engine_gives_the_same_bits_alone_in_company_and_from_the_cache(
    libmtmd: Libmtmd, family: Family
) -> None:
    head = "Once upon a time there was a text that is longer than what is computed at a time, " * 2
    prompts = [(head[:length], WIDE, " and ", TALL, head[: 200 - length], " so") for length in range(36, 116, 16)]
    async with running(family, deterministic=True) as engine:
        alone = [await answer(engine, parts) for parts in prompts]
        again = [await answer(engine, parts) for parts in reversed(prompts)][::-1]
        in_company = await asyncio.gather(*(answer(engine, parts) for parts in prompts))
    assert any(each.num_cached for each in again)
    for parts, one, *others in zip(prompts, alone, again, in_company, strict=True):
        check(libmtmd, family, parts, one)
        assert all(np.array_equal(one.logprobs, other.logprobs) for other in others)


async def test_what_is_no_picture_is_refused(engine: Engine, libmtmd: Libmtmd, family: Family) -> None:
    with pytest.raises(ImageRefused):
        await engine.tokenizer.encode_image(Image.of(b"no picture"))
    check(libmtmd, family, PROMPTS["no picture"], await answer(engine, PROMPTS["no picture"]))


async def test_a_picture_that_is_seen_as_a_whole_is_refused_where_no_step_holds_it(family: Family) -> None:
    if family.name != SEEN_WHOLE:
        pytest.skip("its pictures can be cut")
    async with running(family, **SETTINGS[SMALL_STEPS]) as engine:
        with pytest.raises(ImageRefused, match="token-budget"):
            await assembled(engine, PROMPTS["a picture first"])
