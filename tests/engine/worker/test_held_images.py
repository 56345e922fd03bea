"""What is said to the child about images."""

from hypothesis import given
from hypothesis import strategies as st

from octavo.core.images import Image
from octavo.engine.worker.frames import DropImage, HoldImage
from octavo.engine.worker.held_images import HeldImages

ONE, OTHER = Image.of(b"one"), Image.of(b"other")


class Child:
    """What it was told, and what it holds, which it holds once."""

    def __init__(self) -> None:
        self.heard: list[HoldImage | DropImage] = []
        self.held: set[str] = set()

    def hear(self, message: HoldImage | DropImage) -> None:
        self.heard.append(message)
        match message:
            case HoldImage(image):
                assert image.digest not in self.held
                self.held.add(image.digest)
            case DropImage(digest):
                self.held.remove(digest)


def test_an_image_is_sent_once_however_many_hold_it_and_dropped_behind_the_last() -> None:
    child = Child()
    images = HeldImages(child.hear)
    with images.held((ONE, OTHER, ONE)):
        with images.held((ONE,)), images.held((ONE,)):
            assert child.heard == [HoldImage(ONE), HoldImage(OTHER)]
        assert len(child.heard) == 2
    assert child.heard[2:] == [DropImage(OTHER.digest), DropImage(ONE.digest)]


def test_one_that_is_held_again_is_sent_again() -> None:
    child = Child()
    images = HeldImages(child.hear)
    for _ in range(2):
        with images.held((ONE,)):
            pass
    assert child.heard == [HoldImage(ONE), DropImage(ONE.digest)] * 2


def test_a_child_that_has_just_come_is_sent_what_is_held_and_nothing_else() -> None:
    first, second = Child(), Child()
    children = [first]
    images = HeldImages(lambda message: children[-1].hear(message))
    with images.held((ONE,)):
        pass
    with images.held((OTHER, OTHER)):
        children.append(second)
        images.send_all()
        assert second.heard == [HoldImage(OTHER)]
    assert second.held == set()


@given(st.lists(st.tuples(st.integers(0, 5), st.lists(st.sampled_from((ONE, OTHER)), max_size=3)), max_size=30))
def test_the_child_holds_what_anybody_holds(acts: list[tuple[int, list[Image]]]) -> None:
    """Holders come, and those of a number go."""
    child = Child()
    images = HeldImages(child.hear)
    holders = []
    for which, wanted in acts:
        if which < len(holders):
            holders.pop(which)[0].__exit__(None, None, None)
        else:
            hold = images.held(wanted)
            hold.__enter__()
            holders.append((hold, wanted))
        assert child.held == {image.digest for _, wanted in holders for image in wanted}
