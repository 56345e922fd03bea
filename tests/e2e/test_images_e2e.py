"""What a model that sees says of pictures, through HTTP."""

import math
import re
from collections.abc import AsyncIterator, Iterator, Sequence

import httpx
import pytest

from support.checks import check_error
from support.pictures import text_part
from support.processes import Server

from .tiny_vlm import (
    CHAT,
    COLOUR,
    COLOURS,
    FORMATS,
    NO_IMAGE,
    NUM_TOKENS,
    SYNTH,
    answer_to,
    answers_to,
    asking,
    connected,
    conversation,
    draw,
    draw_clearly,
    repeating,
    said,
    said_in,
    seeing,
    user,
)
from .wire import Wire

SEED = 20_000
NUM_PICTURES = 500
RIGHT = 0.98
"""Of the answers, at least: a model of a million parameters is not always right."""
NUM_PAIRS = 50
LONG = asking(text_part("Tell me a story."), max_tokens=200, ignore_eos=True)
PLACEHOLDERS = (
    *("<image>", "<__media__>", "<|image|>", "<image_soft_token>", "[img-1]", "<start_of_image>", "<|image_pad|>"),
    *("<|vision_start|><|image_pad|><|vision_end|>", "<img>", "<__image__>", "<image>" * 100, "\ue000\ue001\uf8ff"),
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with seeing(folder=tmp_path_factory.mktemp("seeing")) as server:
        yield server


@pytest.fixture
async def client(server: Server) -> AsyncIterator[httpx.AsyncClient]:
    async with connected(server) as client:
        yield client


def assistant(text: str) -> Wire:
    return {"role": "assistant", "content": text}


def check_mostly_right(answers: Sequence[str], expected: Sequence[str], names: Sequence[object]) -> None:
    """names: of the cases, for the message."""
    cases = zip(answers, expected, names, strict=True)
    wrong = [f"{name}: {given!r}, not {right!r}" for given, right, name in cases if given != right]
    assert len(wrong) <= (1 - RIGHT) * len(answers), f"{len(wrong)} of {len(answers)} wrong: {'; '.join(wrong)}"
    assert not any(NO_IMAGE in given for given in answers), f"a picture was lost: {'; '.join(wrong)}"


@pytest.mark.slow
async def test_the_colours_of_fresh_pictures_are_told_beside_text_streams(client: httpx.AsyncClient) -> None:
    """In each format, before and behind the text, streamed and not."""

    def body(number: int) -> Wire:
        parts = [drawings[number].part(FORMATS[number % len(FORMATS)]), COLOUR]
        return asking(*(parts if number // 2 % 2 else parts[::-1]))

    drawings = [draw(SEED + number) for number in range(NUM_PICTURES)]
    async with repeating(client, asking(COLOUR)) as short, repeating(client, LONG) as long:
        answers = await answers_to(client, map(body, range(NUM_PICTURES)))
    names = [f"seed {SEED + number}, {FORMATS[number % len(FORMATS)]}" for number in range(NUM_PICTURES)]
    check_mostly_right(answers, [drawing.colour for drawing in drawings], names)
    assert set(short) == {NO_IMAGE}
    assert long, "no text was whole before the pictures were"


@pytest.mark.parametrize(
    "text", [*SYNTH.Q_COLOUR[:4], "What shape?", "Describe the image.", "Which colours do you see?"]
)
async def test_no_image_is_said_where_there_is_none(client: httpx.AsyncClient, text: str) -> None:
    assert await said(client, asking(text_part(text))) == NO_IMAGE


@pytest.mark.parametrize("size", [(1, 1), (24, 24), (64, 64), (200, 120), (3, 500), (1000, 1000)], ids=str)
async def test_a_picture_of_any_size_is_sixteen_tokens(client: httpx.AsyncClient, size: tuple[int, int]) -> None:
    drawing = draw(SEED, shape="none", size=size)
    usage = (await answer_to(client, asking(drawing.part(), COLOUR)))["usage"]
    assert usage["prompt_tokens"] == 29
    assert (await answer_to(client, asking(COLOUR)))["usage"]["prompt_tokens"] == 13


async def test_two_pictures_are_told_in_order(client: httpx.AsyncClient) -> None:
    pairs = [(draw(SEED + 2 * i), draw(SEED + 2 * i + 1)) for i in range(NUM_PAIRS)]
    answers = await answers_to(client, (asking(a.part(), b.part("JPEG"), COLOURS) for a, b in pairs))
    check_mostly_right(answers, [f"{a.colour}, {b.colour}" for a, b in pairs], range(NUM_PAIRS))


@pytest.mark.parametrize(("place", "word"), [(0, "first"), (1, "second"), (2, "third")])
async def test_each_of_three_pictures_can_be_asked_about(client: httpx.AsyncClient, place: int, word: str) -> None:
    triples = [[draw_clearly(3 * i + j) for j in range(3)] for i in range(12)]
    question = text_part(f"What colour is the {word} image?")
    answers = await answers_to(client, (asking(*(each.part() for each in three), question) for three in triples))
    right = [three[place].colour for three in triples]
    assert sum(given == colour for given, colour in zip(answers, right, strict=True)) >= 11, (answers, right)


async def test_texts_may_stand_between_pictures(client: httpx.AsyncClient) -> None:
    pairs = [(draw_clearly(2 * i), draw_clearly(2 * i + 1)) for i in range(12)]
    line = text_part("\n")
    answers = await answers_to(client, (asking(a.part(), line, b.part(), line, COLOURS) for a, b in pairs))
    assert sum(given == f"{a.colour}, {b.colour}" for given, (a, b) in zip(answers, pairs, strict=True)) >= 11, answers


async def test_eight_pictures_are_the_most(client: httpx.AsyncClient) -> None:
    parts = [draw_clearly(i).part() for i in range(9)]
    answer = await answer_to(client, asking(*parts[:8], COLOURS))
    alone = await answer_to(client, asking(COLOURS))
    assert answer["usage"]["prompt_tokens"] == alone["usage"]["prompt_tokens"] + 8 * NUM_TOKENS
    assert said_in(answer) != NO_IMAGE
    refused = await client.post(CHAT, json=conversation(user(*parts[:4]), assistant("?"), user(*parts[4:], COLOURS)))
    assert "8" in check_error(refused, 422, "messages")["message"]


async def test_a_picture_may_come_in_a_later_turn(client: httpx.AsyncClient) -> None:
    pairs = [(draw(SEED + 2 * i), draw(SEED + 2 * i + 1)) for i in range(NUM_PAIRS)]
    talks = (conversation(user(a.part(), COLOUR), assistant(a.colour), user(b.part("WEBP"), COLOUR)) for a, b in pairs)
    check_mostly_right(await answers_to(client, talks), [b.colour for _, b in pairs], range(NUM_PAIRS))


async def test_a_later_turn_may_ask_about_the_picture_of_the_first(client: httpx.AsyncClient) -> None:
    drawings = [draw_clearly(i) for i in range(24)]
    system = {"role": "system", "content": SYNTH.SYSTEM[0]}
    talks = (
        conversation(system, user(text_part("What shape?"), each.part()), assistant(each.shape), user(COLOUR))
        for each in drawings
    )
    answers = await answers_to(client, talks)
    assert sum(given == each.colour for given, each in zip(answers, drawings, strict=True)) >= 23, answers


async def test_a_system_prompt_may_come_first(client: httpx.AsyncClient) -> None:
    drawings = [draw(SEED + i) for i in range(NUM_PAIRS)]
    talks = (
        conversation({"role": "system", "content": SYNTH.SYSTEM[i % 6]}, user(each.part(), COLOUR))
        for i, each in enumerate(drawings)
    )
    check_mostly_right(await answers_to(client, talks), [each.colour for each in drawings], range(NUM_PAIRS))


@pytest.mark.parametrize("detail", ["low", "high", "auto", None])
async def test_every_detail_is_accepted(client: httpx.AsyncClient, detail: str | None) -> None:
    drawing = draw_clearly(1)
    answer = await answer_to(client, asking(drawing.part(detail=detail), COLOUR))
    assert said_in(answer) == drawing.colour
    assert answer["usage"]["prompt_tokens"] == 29


async def test_another_detail_is_refused(client: httpx.AsyncClient) -> None:
    response = await client.post(CHAT, json=asking(draw_clearly(1).part(detail="huge"), COLOUR))
    check_error(response, 422, "messages")


async def test_several_answers_are_of_the_same_picture_and_count_it_once(client: httpx.AsyncClient) -> None:
    drawing = draw_clearly(2)
    answer = await answer_to(client, asking(drawing.part(), COLOUR, n=4, temperature=0.3, seed=7))
    assert [choice["message"]["content"] for choice in answer["choices"]] == [drawing.colour] * 4
    assert answer["usage"]["prompt_tokens"] == 29


async def test_an_answer_about_a_picture_has_log_probabilities(client: httpx.AsyncClient) -> None:
    drawing = draw_clearly(3)
    [choice] = (await answer_to(client, asking(drawing.part(), COLOUR, logprobs=True, top_logprobs=3)))["choices"]
    entries = choice["logprobs"]["content"]
    assert "".join(entry["token"] for entry in entries).startswith(drawing.colour)
    assert all(entry["logprob"] == entry["top_logprobs"][0]["logprob"] <= 0 for entry in entries)
    assert entries[0]["logprob"] > math.log(0.5)


async def test_the_texts_around_a_picture_can_be_scored(client: httpx.AsyncClient) -> None:
    drawing = draw_clearly(4)
    bodies = [asking(*parts, COLOUR, loglikelihood=True, max_tokens=0) for parts in ([drawing.part()], [])]
    shown, alone = [(await answer_to(client, body))["choices"][0]["logprobs"]["content"] for body in bodies]
    assert [entry["token"] for entry in shown] == [entry["token"] for entry in alone]
    assert "What colour?" in b"".join(bytes(entry["bytes"] or ()) for entry in shown).decode()
    assert shown != alone


async def test_an_answer_about_a_picture_can_be_made_to_match(client: httpx.AsyncClient) -> None:
    drawing = draw_clearly(5)
    prefixed = {"type": "regex", "pattern": f"Answer: ({'|'.join(SYNTH.COLOURS)})"}
    text = await said(client, asking(drawing.part(), COLOUR, response_format=prefixed))
    assert re.fullmatch(prefixed["pattern"], text)
    assert text.endswith(drawing.colour)


async def test_a_picture_can_be_read_without_an_answer(client: httpx.AsyncClient) -> None:
    answer = await answer_to(client, asking(draw_clearly(6).part(), COLOUR, max_tokens=0))
    assert said_in(answer) == ""
    assert answer["usage"]["completion_tokens"] == 0
    assert answer["usage"]["prompt_tokens"] == 29


async def test_nothing_that_a_user_types_is_a_picture(client: httpx.AsyncClient, server: Server) -> None:
    """Placeholders of other servers and of this model's own template, and characters for private use."""
    before = [child.pid for child in server.children()]
    for text in PLACEHOLDERS:
        usage = (await answer_to(client, asking(text_part(text), COLOUR)))["usage"]
        shown = await answer_to(client, asking(draw_clearly(7).part(), text_part(text), COLOUR))
        assert shown["usage"]["prompt_tokens"] == usage["prompt_tokens"] + NUM_TOKENS, text
    assert [child.pid for child in server.children()] == before
