"""A model with an adapter sees pictures as the model with the merged weights does."""

import asyncio
from dataclasses import replace
from pathlib import Path

import numpy as np

from numeric.tiny_gguf import TinyModel, draw_weights
from numeric.tiny_lora import TinyAdapter, write_tiny_lora
from octavo.core.adapters import Adapter, digest_of
from support.block_pictures import blocks
from support.libmtmd import Libmtmd
from support.tiny_vision import SHAPE, VisionModel, text_writer, write_llava
from support.vision_towers import SEED, write

from .seeing import Family, answer, check, running

SCALE = 0.5
PARTS = ("You see ", blocks(1, 64, 64), " and ", blocks(2, 80, 48), " what is it")


def described(adapter: TinyAdapter) -> Adapter:
    with adapter.path.open("rb") as file:
        return Adapter("adapted", str(adapter.path), digest_of(file), SCALE)


def write_merged(path: Path, files: VisionModel, adapter: TinyAdapter) -> VisionModel:
    model = TinyModel(files.path, SHAPE, draw_weights(SHAPE, SEED))
    weights = adapter.merged(model, SCALE).weights
    write(text_writer(path, "llama", ()), {name: values.astype(np.float32) for name, values in weights.items()})
    return replace(files, path=path)


async def test_pictures_are_seen_with_an_adapter_and_without_at_the_same_time(tmp_path: Path) -> None:
    files = write_llava(tmp_path)
    adapter = write_tiny_lora(tmp_path / "adapter.gguf", TinyModel(files.path, SHAPE, draw_weights(SHAPE, SEED)))
    merged = write_merged(tmp_path / "merged.gguf", files, adapter)
    async with running(Family("llava", files)) as engine:
        await engine.load_adapter(described(adapter))
        keys = ("", "adapted", "", "adapted")
        answers = await asyncio.gather(*(answer(engine, PARTS, adapter=key) for key in keys))
        again = [await answer(engine, PARTS, adapter=key) for key in keys]
    for each, key in zip((*answers, *again), (*keys, *keys), strict=True):
        expected = merged if key else files
        libmtmd = Libmtmd(expected.path, expected.mmproj, context_length=expected.context_length, batch=256)
        check(libmtmd, Family("llava", expected), PARTS, each)
        libmtmd.close()
    assert all(each.num_cached > 0 for each in again)
