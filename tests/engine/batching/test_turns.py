"""Who shares a step, and that nobody waits for long."""

from collections.abc import Sequence as Sequence_

from hypothesis import given
from hypothesis import strategies as st

from engine.batching.fake_vision import picture, shown
from engine.builders import request
from octavo.engine.batching.sequence import Sequence
from octavo.engine.batching.turns import Turn, Turns

Kind = tuple[str, bool]
KINDS: tuple[Kind, ...] = tuple((adapter, sees) for adapter in ("", "a", "b") for sees in (False, True))
IMAGE = shown(picture(3), 1)


def text(adapter: str = "") -> Sequence:
    return Sequence(request((1, 2), adapter=adapter), context_length=64)


def at_image(adapter: str = "") -> Sequence:
    return Sequence(request(IMAGE.tokens, images=IMAGE.spans, adapter=adapter), context_length=64)


def kind(sequence: Sequence) -> Kind:
    return sequence.request.adapter, sequence.span_ahead is not None


def test_texts_with_one_adapter_share_a_step() -> None:
    texts = [text() for _ in range(3)]
    turn = Turns().next(texts)
    assert (turn.sequences, turn.num_others, turn.is_at_image) == (texts, 0, False)


def test_adapters_take_turns_in_the_order_in_which_they_came() -> None:
    first, second, third, more = text("b"), text(), text("a"), text("b")
    turns = Turns()
    steps = [turns.next([first, second, third, more]) for _ in range(6)]
    assert [list(step.sequences) for step in steps] == [[first, more], [second], [third]] * 2
    assert [step.num_others for step in steps] == [2] * 6


def test_images_have_steps_of_their_own_and_take_turns_among_themselves() -> None:
    texts, images = [text(), text()], [at_image(), at_image()]
    turns = Turns()
    steps = [list(turns.next([*texts, *images]).sequences) for _ in range(8)]
    assert steps == [texts, images[:1], texts, images[1:]] * 2


def test_a_sequence_that_has_seen_its_image_is_a_text() -> None:
    seen, decoding = at_image(), text()
    turns = Turns()
    assert [list(turns.next([seen, decoding]).sequences) for _ in range(2)] == [[seen], [decoding]]
    seen.advance(3)
    assert list(turns.next([seen, decoding]).sequences) == [seen, decoding]


kinds = st.sampled_from(KINDS)
changes = st.lists(st.tuples(st.integers(0, 5), st.none() | kinds), max_size=40)


@given(st.lists(kinds, min_size=1, max_size=6), changes)
def test_whoever_comes_and_goes_a_turn_is_of_one_kind(
    first: list[Kind], changes: list[tuple[int, Kind | None]]
) -> None:
    running = [made(kind) for kind in first]
    turns = Turns()
    for place, coming in changes:
        turn = turns.next(running)
        check_turn(turn, running)
        change(running, place, coming)


@given(st.lists(kinds, min_size=2, max_size=4), st.lists(st.tuples(st.integers(0, 2), kinds), min_size=10, max_size=30))
def test_a_kind_that_is_there_all_the_time_is_never_passed_by_more_others_than_there_is_room_for(
    first: list[Kind], changes: list[tuple[int, Kind]]
) -> None:
    """running[0] stays, whatever the others do."""
    running = [made(kind) for kind in first]
    patient, turns, num_passed = running[0], Turns(), 0
    for place, coming in changes:
        turn = turns.next(running)
        num_passed = 0 if kind(turn.sequences[0]) == kind(patient) else num_passed + 1
        assert num_passed <= len(first)
        change(running, 1 + place % (len(running) - 1), coming)


@given(st.lists(st.booleans(), min_size=10, max_size=30))
def test_an_image_that_takes_many_steps_is_not_passed_by_new_ones_without_end(comes: list[bool]) -> None:
    large, small = at_image(), at_image()
    turns, num_passed = Turns(), 0
    for is_new in comes:
        [seen] = turns.next([large, small]).sequences
        num_passed = 0 if seen is large else num_passed + 1
        assert num_passed <= 2
        small = at_image() if is_new else small


def made(kind: Kind) -> Sequence:
    adapter, sees = kind
    return at_image(adapter) if sees else text(adapter)


def change(running: list[Sequence], place: int, coming: Kind | None) -> None:
    """The sequence at this place leaves, and one comes in its place."""
    if coming is not None and place < len(running):
        running[place] = made(coming)


def check_turn(turn: Turn, running: Sequence_[Sequence]) -> None:
    [its] = {kind(sequence) for sequence in turn.sequences}
    alike = [sequence for sequence in running if kind(sequence) == its]
    assert turn.is_at_image == its[1]
    assert turn.num_others == len({kind(sequence) for sequence in running}) - 1
    if turn.is_at_image:
        [sequence] = turn.sequences
        assert sequence in alike
    else:
        assert list(turn.sequences) == alike
