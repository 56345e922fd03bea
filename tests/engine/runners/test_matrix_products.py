"""llama.cpp's products with quantized weights, in its plain layout and in those that a build has for its processor.

What comes out is compared with numpy over the dequantized weights. Activations are rounded to 8 bits on the way.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from gguf import GGMLQuantizationType, GGUFWriter
from gguf.quants import dequantize, quantize
from numpy.typing import NDArray

from numeric import forward
from numeric.tiny_gguf import VOCABULARY_SIZE, Shape, TinyModel, add_shape, add_vocabulary, draw_weights
from octavo.engine.runners.llama_cpp import binding
from octavo.engine.runners.llama_cpp.binding import ContextSettings
from octavo.engine.runners.llama_cpp.model import load_model

from .own_kernels import skip_without_own_kernels

Logits = NDArray[np.float32]

TYPES = (
    GGMLQuantizationType.Q4_1,
    GGMLQuantizationType.Q5_0,
    GGMLQuantizationType.Q5_1,
    GGMLQuantizationType.Q8_0,
)
SHAPES = tuple(
    Shape(num_layers, width, num_heads=4, num_kv_heads=1, feed_forward=feed_forward)
    for num_layers, width, feed_forward in ((1, 32, 96), (2, 96, 32), (1, 160, 64))
)
"""Keys and values are matrices of 8, 24 and 40 rows; rows have 1, 2, 3 and 5 blocks of 32."""
NUM_TOKENS = (1, 2, 3, 4, 5, 8, 33)
TOKENS = tuple(np.random.default_rng(3).integers(0, VOCABULARY_SIZE, max(NUM_TOKENS)).tolist())
TOLERANCE = 0.05
"""Root mean square of a difference, in standard deviations of the logits: 0.016 has been seen."""


@pytest.fixture(scope="module", params=SHAPES, ids=lambda shape: f"{shape.width}x{shape.feed_forward}")
def shape(request: pytest.FixtureRequest) -> Shape:
    return request.param


@pytest.fixture(scope="module", params=TYPES, ids=lambda kind: kind.name)
def model(request: pytest.FixtureRequest, shape: Shape, tmp_path_factory: pytest.TempPathFactory) -> TinyModel:
    binding.initialize()
    return write_quantized(tmp_path_factory.mktemp("quantized") / "model.gguf", shape, request.param)


def write_quantized(path: Path, shape: Shape, kind: GGMLQuantizationType, *, tied: bool = False) -> TinyModel:
    """All matrices are of this kind. tied: the embedding is the output's too. The model has the rounded weights."""
    drawn = draw_weights(shape, seed=0)
    if tied:
        drawn["output.weight"] = drawn["token_embd.weight"]
    matrices = {name: quantize(values, kind) for name, values in drawn.items() if values.ndim == 2}
    weights = drawn | {name: dequantize(values, kind) for name, values in matrices.items()}
    writer = GGUFWriter(path, "llama")
    add_shape(writer, shape)
    add_vocabulary(writer)
    for name, values in drawn.items():
        if tied and name == "output.weight":
            continue  # llama.cpp takes the embedding
        writer.add_tensor(name, matrices.get(name, values), raw_dtype=kind if name in matrices else None)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return TinyModel(path, shape, weights)


@contextmanager
def context_of(model: TinyModel, *, use_extra_buffers: bool = True, num_threads: int = 1) -> Iterator[binding.Context]:
    """With as many sequences as there are tokens; attention is exact."""
    if use_extra_buffers:
        skip_rows_of_one_block(model.shape)
    loaded = load_model(model.path, use_extra_buffers=use_extra_buffers, on_progress=lambda fraction: None)
    context = binding.Context(loaded, ContextSettings(64, len(TOKENS), num_threads, len(TOKENS), "f32", "f32"))
    try:
        yield context
    finally:
        context.close()
        loaded.close()


def skip_rows_of_one_block(shape: Shape) -> None:
    """A fault of llama.cpp's AMX products with many tokens, which no model meets that is more than a test's."""
    if "AMX_INT8 = 1" in binding.system_info() and 32 in (shape.width, shape.feed_forward):
        pytest.skip("llama.cpp's products on processors with AMX are wrong where rows have one block of 32")


def decode(context: binding.Context, tokens: tuple[int, ...], *, each_alone: bool = False) -> Logits:
    """Of one text, or of as many texts of one token; shape (n, vocabulary)."""
    places, zeros = np.arange(len(tokens), dtype=np.int32), np.zeros(len(tokens), np.int32)
    positions, sequences = (zeros, places) if each_alone else (places, zeros)
    code = context.decode(np.array(tokens, np.int32), positions, sequences, np.ones(len(tokens), np.bool_))
    assert code == 0
    logits = context.logits(len(tokens)).copy()
    for sequence in range(len(tokens)):
        context.remove(sequence, 0)
    return logits


def distance(logits: NDArray[np.floating], reference: NDArray[np.floating]) -> float:
    return float(np.sqrt(((logits - reference) ** 2).mean()) / reference.std())


@pytest.mark.parametrize("use_extra_buffers", [False, True])
@pytest.mark.parametrize("num_threads", [1, 2])
def test_logits_are_numpy_s_over_the_dequantized_weights(
    model: TinyModel, use_extra_buffers: bool, num_threads: int
) -> None:
    reference = forward.logits(model, TOKENS)
    with context_of(model, use_extra_buffers=use_extra_buffers, num_threads=num_threads) as context:
        for count in NUM_TOKENS:
            assert distance(decode(context, TOKENS[:count]), reference[:count]) < TOLERANCE


def test_both_layouts_agree(model: TinyModel) -> None:
    with context_of(model, use_extra_buffers=False) as plain, context_of(model) as extra:
        for count in NUM_TOKENS:
            tokens = TOKENS[:count]
            assert distance(decode(extra, tokens), decode(plain, tokens)) < TOLERANCE


def test_a_token_has_the_same_bits_alone_and_in_every_batch(model: TinyModel) -> None:
    """Promised of our own layout, which other processors do not have."""
    skip_without_own_kernels()
    with context_of(model) as context:
        alone = np.concatenate([decode(context, (token,)) for token in TOKENS])
        for count in NUM_TOKENS:
            together = decode(context, TOKENS[:count], each_alone=True)
            assert (together == alone[:count]).all()


@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.name)
def test_an_embedding_that_is_the_output_too_is_read_and_multiplied(kind: GGMLQuantizationType, tmp_path: Path) -> None:
    binding.initialize()
    model = write_quantized(tmp_path / "tied.gguf", SHAPES[1], kind, tied=True)
    with context_of(model) as context:
        assert distance(decode(context, TOKENS), forward.logits(model, TOKENS)) < TOLERANCE
