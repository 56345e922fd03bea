import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompting_builders import ByteEncoder, control, vocabulary

from octavo.core.vocabulary import InfillTokens
from octavo.errors import ContextLengthExceeded, InfillUnsupported
from octavo.prompting import encode_infill

PREFIX, SUFFIX, MIDDLE, BOS, FILE = (
    control(256, "<PRE>"),
    control(257, "<SUF>"),
    control(258, "<MID>"),
    control(259, "<s>"),
    control(260, "<file>"),
)
INFILL = InfillTokens(PREFIX.id, SUFFIX.id, MIDDLE.id)


def encoder(*, adds_bos: bool = False, adds_space_prefix: bool = False, has_infill: bool = True) -> ByteEncoder:
    return ByteEncoder(
        vocabulary(
            *(PREFIX, SUFFIX, MIDDLE, BOS, FILE),
            bos_token=BOS.id,
            adds_bos=adds_bos,
            adds_space_prefix=adds_space_prefix,
            infill=INFILL if has_infill else None,
        )
    )


def plain(text: str) -> tuple[int, ...]:
    return tuple(text.encode())


async def test_prefix_and_suffix_stand_before_the_gap_each_behind_its_token() -> None:
    tokens = await encode_infill(encoder(), "def f(", "):\n", context_length=99)
    assert tokens == (PREFIX.id, *plain("def f("), SUFFIX.id, *plain("):\n"), MIDDLE.id)


async def test_bos_comes_first_where_the_model_expects_it() -> None:
    tokens = await encode_infill(encoder(adds_bos=True), "a", "b", context_length=99)
    assert tokens == (BOS.id, PREFIX.id, *plain("a"), SUFFIX.id, *plain("b"), MIDDLE.id)


async def test_either_side_of_the_gap_may_be_empty() -> None:
    assert await encode_infill(encoder(), "", "", context_length=3) == (PREFIX.id, SUFFIX.id, MIDDLE.id)
    assert await encode_infill(encoder(), (), "b", context_length=9) == (PREFIX.id, SUFFIX.id, *plain("b"), MIDDLE.id)


async def test_special_tokens_are_meant_on_both_sides() -> None:
    tokens = await encode_infill(encoder(), "<file>a", "b<file>", context_length=99)
    assert tokens == (PREFIX.id, FILE.id, *plain("a"), SUFFIX.id, *plain("b"), FILE.id, MIDDLE.id)


async def test_a_prefix_of_token_ids_is_taken_as_it_is() -> None:
    tokens = await encode_infill(encoder(), (BOS.id, 65, FILE.id), "b", context_length=99)
    assert tokens == (PREFIX.id, BOS.id, 65, FILE.id, SUFFIX.id, *plain("b"), MIDDLE.id)


async def test_a_model_without_infill_tokens_takes_no_suffix() -> None:
    with pytest.raises(InfillUnsupported) as refusal:
        await encode_infill(encoder(has_infill=False), "a", "b", context_length=99)
    assert (refusal.value.code, refusal.value.param) == ("suffix_unsupported", "suffix")
    assert "fill-in-the-middle" in refusal.value.message


async def test_what_does_not_fit_is_refused_with_both_numbers() -> None:
    bos_adding = encoder(adds_bos=True)
    assert len(await encode_infill(bos_adding, "aaa", "bbb", context_length=10)) == 10
    with pytest.raises(ContextLengthExceeded) as refusal:
        await encode_infill(bos_adding, "aaa", "bbbb", context_length=10)
    assert refusal.value.message == "The prompt has 11 tokens; the model's context is 10."
    assert refusal.value.param == "prompt"


async def test_what_cannot_fit_is_not_even_tokenized() -> None:
    asked = encoder()
    with pytest.raises(ContextLengthExceeded, match="at least 33 tokens"):
        await encode_infill(asked, (65,) * 20, "é" * 30, context_length=10)
    assert asked.num_calls == 0


async def test_only_the_head_of_the_text_gets_the_space_that_a_tokenizer_puts_before_texts() -> None:
    tokens = await encode_infill(encoder(adds_space_prefix=True), "a", "b c", context_length=99)
    assert tokens == (PREFIX.id, *plain(" a"), SUFFIX.id, *plain("b c"), MIDDLE.id)


async def test_behind_a_special_token_of_the_suffix_a_text_begins_as_in_any_prompt() -> None:
    tokens = await encode_infill(encoder(adds_space_prefix=True), (), "<file>b", context_length=99)
    assert tokens == (PREFIX.id, SUFFIX.id, FILE.id, *plain(" b"), MIDDLE.id)


@given(suffix=st.text())
async def test_no_space_is_put_before_any_suffix(suffix: str) -> None:
    spacing = encoder(adds_space_prefix=True)
    tokens = await encode_infill(spacing, (), suffix, context_length=10**6)
    assert tokens == (PREFIX.id, SUFFIX.id, *plain(suffix), MIDDLE.id)
