"""A model most of whose layers see the last tokens only: what was cached of it serves every beginning of its text."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from gguf import GGUFWriter

from numeric.tiny_gguf import VOCABULARY_SIZE, Shape, add_shape, add_vocabulary, draw_weights
from octavo.engine.batching.runner import ForwardBatch
from octavo.engine.runners.llama_cpp import binding
from octavo.engine.runners.llama_cpp.binding import ContextSettings
from octavo.engine.runners.llama_cpp.context import LlamaRunner
from octavo.engine.runners.llama_cpp.model import load_model

WINDOW = 16
TOKENS = np.random.default_rng(0).integers(0, VOCABULARY_SIZE, 200).astype(np.int32)


def write_windowed(path: Path) -> None:
    """Of the architecture "cohere2": three layers with a window, then one without."""
    shape = Shape(num_layers=4, width=128, feed_forward=64)
    writer = GGUFWriter(path, "cohere2")
    add_shape(writer, shape)
    writer.add_layer_norm_eps(shape.norm_epsilon)
    writer.add_sliding_window(WINDOW)
    writer.add_logit_scale(1.0)
    add_vocabulary(writer)
    for name, weights in draw_weights(shape, seed=0).items():
        if name != "output.weight" and "ffn_norm" not in name:
            writer.add_tensor(name, weights)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaRunner]:
    path = tmp_path_factory.mktemp("windowed") / "model.gguf"
    write_windowed(path)
    binding.initialize()
    model = load_model(path, use_extra_buffers=True, on_progress=lambda fraction: None)
    created = LlamaRunner.create(model, ContextSettings(256, 3, 1, 256, "f16", "f16"))
    yield created
    created.close()


def logits(runner: LlamaRunner, slot: int, start: int, end: int) -> np.ndarray:
    return runner.forward(ForwardBatch.build([(slot, start, TOKENS[start:end], 1)]))[0].copy()


@pytest.mark.parametrize("length", [30, 100, 150, 199])
def test_a_beginning_of_a_copy_is_whole(runner: LlamaRunner, length: int) -> None:
    for slot in (0, 1, 2):
        runner.truncate(slot, 0)
    logits(runner, 0, 0, 200)
    runner.restore(1, runner.save(0))
    runner.truncate(1, length)
    runner.truncate(0, length)
    from_copy, in_place = (logits(runner, slot, length, 200) for slot in (1, 0))
    assert np.array_equal(from_copy, in_place)
    assert np.allclose(logits(runner, 2, 0, 200), from_copy, atol=0.05)
