"""The random models that see are what they say they are, to libmtmd."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from support.block_pictures import blocks
from support.libmtmd import Chunk, Libmtmd
from support.tiny_vision import FAMILIES

PICTURE = blocks(1, 80, 48)
PARTS = ("See ", PICTURE, " what")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("families")


@pytest.fixture
def family(request: pytest.FixtureRequest, folder: Path) -> Iterator[Libmtmd]:
    files = FAMILIES[request.param](folder)
    opened = Libmtmd(files.path, files.mmproj, context_length=files.context_length, batch=128)
    yield opened
    opened.close()


def images(family: Libmtmd) -> list[Chunk]:
    return [chunk for chunk in family.chunks(PARTS) if chunk.is_image]


@pytest.mark.parametrize("family", ["llava"], indirect=True)
def test_llava_sees_a_picture_as_tokens_of_text(family: Libmtmd) -> None:
    assert [(chunk.num_tokens, chunk.num_positions) for chunk in images(family)] == [(16, 16)]
    assert not family.is_mrope
    assert family.is_causal(PARTS)


@pytest.mark.parametrize("family", ["qwen2vl", "qwen3vl"], indirect=True)
def test_qwen_gives_a_picture_fewer_positions_than_tokens(family: Libmtmd) -> None:
    assert [(chunk.num_tokens, chunk.num_positions) for chunk in images(family)] == [(15, 5)]
    assert family.is_mrope
    assert family.is_causal(PARTS)


@pytest.mark.parametrize("family", ["gemma3"], indirect=True)
def test_gemma3_sees_a_picture_as_a_whole(family: Libmtmd) -> None:
    assert [(chunk.num_tokens, chunk.num_positions) for chunk in images(family)] == [(16, 16)]
    assert not family.is_mrope
    assert not family.is_causal(PARTS)


@pytest.mark.parametrize("family", ["idefics3"], indirect=True)
def test_idefics3_sees_a_picture_in_tiles_with_text_between(family: Libmtmd) -> None:
    is_image = [chunk.is_image for chunk in family.chunks(PARTS)]
    assert is_image == [False, True] * 5 + [False]
    assert all(chunk.num_tokens == 4 for chunk in images(family))


@pytest.mark.parametrize("family", FAMILIES, indirect=True)
def test_another_picture_or_another_place_gives_other_numbers(family: Libmtmd) -> None:
    answer = (1, 2, 3)
    prompts = (PARTS, ("See ", blocks(2, 80, 48), " what"), (PICTURE, "See  what"))
    one, other, elsewhere = (family.logprobs(parts, answer) for parts in prompts)
    assert np.isfinite(one).all()
    assert (np.abs(one - other).max(axis=-1) > 0.05).all()
    assert (np.abs(one - elsewhere).max(axis=-1) > 0.05).all()


@pytest.mark.parametrize("name", FAMILIES)
def test_the_files_are_the_same_each_time(name: str, tmp_path: Path) -> None:
    folders = [tmp_path / each for each in ("one", "other")]
    for each in folders:
        each.mkdir()
    one, other = (FAMILIES[name](each) for each in folders)
    assert one.path.read_bytes() == other.path.read_bytes()
    assert one.mmproj.read_bytes() == other.mmproj.read_bytes()
