"""The tiny model is what it says it is, to llama.cpp and to transformers."""

from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio

from octavo.core.vocabulary import InfillTokens, Vocabulary
from octavo.engine.base import EngineInfo

from . import forward
from .checks import TOLERANCE
from .engines import running
from .reference import ask_transformers
from .tiny_gguf import CHAT_TEMPLATE, PIECES, VOCABULARY_SIZE, Special, TinyModel, write_tiny_gguf


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def loaded(tiny: TinyModel) -> tuple[EngineInfo, Vocabulary]:
    async with running(tiny.path) as engine:
        return engine.info, engine.tokenizer.vocabulary


def test_the_same_seed_gives_the_same_file_and_another_one_another(tiny: TinyModel, tmp_path: Path) -> None:
    again, other = (write_tiny_gguf(tmp_path / f"{seed}.gguf", seed).path.read_bytes() for seed in (0, 1))
    assert again == tiny.path.read_bytes() != other
    assert len(again) == len(other)


def test_every_text_token_is_its_bytes_and_every_byte_a_token(loaded: tuple[EngineInfo, Vocabulary]) -> None:
    vocabulary = loaded[1]
    assert vocabulary.size == VOCABULARY_SIZE
    assert vocabulary.pieces[: len(PIECES)] == PIECES
    assert vocabulary.pieces[:256] == tuple(bytes([byte]) for byte in range(256))


def test_special_tokens_of_every_kind_are_read(loaded: tuple[EngineInfo, Vocabulary]) -> None:
    info, vocabulary = loaded
    assert {each.text: (each.id, each.is_control) for each in vocabulary.special_tokens} == {
        each.value: (each.id, each not in (Special.THINK, Special.END_THINK)) for each in Special
    }
    assert vocabulary.eog_tokens == {Special.EOS.id, Special.EOT.id}
    assert (vocabulary.bos_token, vocabulary.adds_bos, vocabulary.eos_token) == (Special.BOS.id, True, Special.EOS.id)
    assert vocabulary.infill == InfillTokens(Special.FIM_PREFIX.id, Special.FIM_SUFFIX.id, Special.FIM_MIDDLE.id)
    assert vocabulary.pieces[Special.THINK.id] == b"<think>"
    assert (info.context_length, info.chat_template) == (256, CHAT_TEMPLATE)


def test_numpy_and_transformers_agree_about_the_model(tiny: TinyModel) -> None:
    tokens = tuple(np.random.default_rng(1).integers(0, VOCABULARY_SIZE, 200).tolist())
    [theirs] = ask_transformers(tiny.path, [tokens])
    ours = forward.logprobs(tiny, tokens)[:-1]
    assert theirs.logprobs == pytest.approx(ours[np.arange(199), tokens[1:]], abs=TOLERANCE)
    assert (theirs.best == ours.argmax(axis=-1)).all()
