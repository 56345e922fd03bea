"""llama.cpp's attention by itself, with 16-bit keys and values, compared with numpy in double precision.

Where the build has a kernel of its own for it (native/grouped_attention.cpp), more is promised than that it is right.
"""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_cpp import llama_cpp
from numpy.typing import NDArray

from octavo.engine.runners.llama_cpp import binding
from octavo.engine.runners.llama_cpp.cache_tiles import CELLS_PER_TILE, NO_TILES

from .own_kernels import skip_without_own_kernels

Values = NDArray[np.float64]

F32, F16 = 0, 1
"""ggml's numbers of its types."""
NUM_BYTES = 2**26
OWN_TOLERANCE, TOLERANCE = 5e-6, 5e-3
"""Greatest differences; llama.cpp's own kernel rounds queries and sums of values to 16 bits."""

ggml = llama_cpp._lib
Pointer = ctypes.c_void_p


class InitParams(ctypes.Structure):
    _fields_ = (("mem_size", ctypes.c_size_t), ("mem_buffer", Pointer), ("no_alloc", ctypes.c_bool))


for function, result, arguments in (
    ("ggml_init", Pointer, (InitParams,)),
    ("ggml_free", None, (Pointer,)),
    ("ggml_new_tensor_4d", Pointer, (Pointer, ctypes.c_int, *(ctypes.c_int64,) * 4)),
    ("ggml_permute", Pointer, (Pointer, Pointer, *(ctypes.c_int,) * 4)),
    ("ggml_reshape_4d", Pointer, (Pointer, Pointer, *(ctypes.c_int64,) * 4)),
    ("ggml_get_data", Pointer, (Pointer,)),
    ("ggml_flash_attn_ext", Pointer, (*(Pointer,) * 5, *(ctypes.c_float,) * 3)),
    ("ggml_new_graph", Pointer, (Pointer,)),
    ("ggml_build_forward_expand", None, (Pointer, Pointer)),
    ("ggml_graph_compute_with_ctx", ctypes.c_int, (Pointer, Pointer, ctypes.c_int)),
):
    getattr(ggml, function).restype = result
    getattr(ggml, function).argtypes = arguments


@dataclass(frozen=True, slots=True)
class Operands:
    """queries: shape (streams, tokens, heads, size); keys, values: (streams, keys, groups of heads, size); mask, of
    which -inf hides a key from a token: (streams, tokens, keys).
    """

    queries: Values
    keys: Values
    values: Values
    mask: Values

    def stream(self, number: int) -> "Operands":
        part = slice(number, number + 1)
        return Operands(self.queries[part], self.keys[part], self.values[part], self.mask[part])

    def token(self, number: int) -> "Operands":
        part = slice(number, number + 1)
        return replace(self, queries=self.queries[:, part], mask=self.mask[:, part])


@dataclass(frozen=True, slots=True)
class Shape:
    """past: keys before the first token, of each stream; each token sees those before it and its own."""

    past: tuple[int, ...]
    num_tokens: int
    num_heads: int
    num_groups: int
    head_size: int
    value_size: int
    num_keys: int

    def draw(self, seed: int = 0) -> Operands:
        rng = np.random.default_rng(seed)
        num_streams = len(self.past)
        last_seen = np.array(self.past)[:, None, None] + np.arange(self.num_tokens)[:, None]
        cells = (num_streams, self.num_keys, self.num_groups)
        return Operands(
            rng.normal(size=(num_streams, self.num_tokens, self.num_heads, self.head_size)).astype(np.float32),
            rng.normal(size=(*cells, self.head_size)).astype(np.float16),
            rng.normal(size=(*cells, self.value_size)).astype(np.float16),
            np.where(np.arange(self.num_keys) <= last_seen, 0.0, -np.inf),
        )


SHAPES = (
    Shape((100,), 1, 9, 3, 64, 64, 256),
    Shape((650, 3, 700, 0), 1, 9, 3, 64, 64, 768),
    Shape((7, 300), 3, 14, 2, 64, 64, 512),
    Shape((1000,), 70, 9, 3, 64, 64, 1280),
    Shape((0, 60, 200), 5, 4, 4, 32, 32, 256),
    Shape((1500,), 1, 8, 1, 128, 128, 1536),
    Shape((10,), 7, 71, 1, 64, 64, 256),
    Shape((3,), 40, 6, 2, 96, 64, 256),
    Shape((20,), 6, 4, 2, 80, 80, 64),
    Shape((30, 2), 3, 2, 2, 8, 40, 40),
)
"""Heads alone and in groups, one block of rows and several, keys of one span and of more; the last two are left to
llama.cpp."""


@contextmanager
def ggml_context() -> Iterator[int]:
    context = ggml.ggml_init(InitParams(NUM_BYTES, None, False))
    try:
        yield context
    finally:
        ggml.ggml_free(context)


def attend(operands: Operands, num_threads: int = 1) -> NDArray[np.float32]:
    """Shape (streams, tokens, heads, size of a value)."""
    num_streams, num_tokens, num_heads, head_size = operands.queries.shape
    with ggml_context() as context:
        rows = [
            ggml.ggml_permute(context, tensor, 0, 2, 1, 3)
            for tensor in (
                new_tensor(context, F32, operands.queries),
                new_cache(context, operands.keys),
                new_cache(context, operands.values),
            )
        ]
        mask = new_tensor(context, F16, operands.mask[:, None])
        attended = ggml.ggml_flash_attn_ext(context, *rows, mask, head_size**-0.5, 0.0, 0.0)
        graph = ggml.ggml_new_graph(context)
        ggml.ggml_build_forward_expand(graph, attended)
        assert ggml.ggml_graph_compute_with_ctx(context, graph, num_threads) == 0
        result = np.empty((num_streams, num_tokens, num_heads, operands.values.shape[-1]), np.float32)
        ctypes.memmove(result.ctypes.data, ggml.ggml_get_data(attended), result.nbytes)
    return result


def new_tensor(context: int, kind: int, values: Values) -> int:
    """ggml names the innermost dimension first."""
    tensor: int = ggml.ggml_new_tensor_4d(context, kind, *reversed(values.shape))
    array = np.ascontiguousarray(values, (np.float32, np.float16)[kind])
    ctypes.memmove(ggml.ggml_get_data(tensor), array.ctypes.data, array.nbytes)
    return tensor


def new_cache(context: int, values: Values) -> int:
    """A view of all cells of a KV cache; such a cache has one dimension for the groups and the numbers of each."""
    num_streams, num_keys, num_groups, size = values.shape
    cache = new_tensor(context, F16, values.reshape(1, num_streams, num_keys, num_groups * size))
    view: int = ggml.ggml_reshape_4d(context, cache, size, num_groups, num_keys, num_streams)
    return view


def reference(operands: Operands) -> Values:
    heads_per_group = operands.queries.shape[2] // operands.keys.shape[2]
    keys, values = (
        np.repeat(cells.astype(np.float64), heads_per_group, axis=2) for cells in (operands.keys, operands.values)
    )
    scores = np.einsum("snhd,skhd->shnk", operands.queries, keys, optimize=True) * operands.queries.shape[3] ** -0.5
    scores += operands.mask[:, None]
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    attended: Values = np.einsum(
        "shnk,skhd->snhd", weights / weights.sum(axis=-1, keepdims=True), values, optimize=True
    )
    return attended


@pytest.fixture(scope="module", autouse=True)
def initialized() -> None:
    binding.initialize()


@pytest.mark.parametrize("num_threads", [1, 2, 3])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_it_is_numpy_s(shape: Shape, num_threads: int) -> None:
    operands = shape.draw()
    assert abs(attend(operands, num_threads) - reference(operands)).max() < TOLERANCE


@pytest.mark.parametrize("shape", SHAPES[:-2], ids=str)
def test_the_own_kernel_adds_up_in_single_precision(shape: Shape) -> None:
    skip_without_own_kernels()
    operands = shape.draw()
    assert abs(attend(operands) - reference(operands)).max() < OWN_TOLERANCE


@pytest.mark.parametrize("shape", SHAPES[:-2], ids=str)
def test_a_row_has_the_same_bits_in_every_batch_and_with_every_number_of_threads(shape: Shape) -> None:
    skip_without_own_kernels()
    operands = shape.draw()
    together = attend(operands)
    for num_threads in (2, 3):
        assert (attend(operands, num_threads) == together).all()
    for stream in range(len(shape.past)):
        assert (attend(operands.stream(stream), 2)[0] == together[stream]).all()
    for token in range(0, shape.num_tokens, 3):
        assert (attend(operands.token(token), 3)[:, 0] == together[:, token]).all()


@pytest.mark.parametrize("shape", SHAPES[:4], ids=str)
def test_cells_that_nobody_sees_change_nothing(shape: Shape) -> None:
    """They hold what an earlier sequence left there."""
    skip_without_own_kernels()
    operands = shape.draw()
    hidden = np.isinf(operands.mask).all(axis=1)
    keys, values = operands.keys.copy(), operands.values.copy()
    keys[hidden], values[hidden] = np.nan, np.inf
    assert (attend(replace(operands, keys=keys, values=values)) == attend(operands)).all()


def copied(operands: Operands, tile_ids: NDArray[np.int64]) -> Operands:
    """With the bytes that the numbers of the tiles promise: those of the first stream that has the number."""
    keys, values = operands.keys.copy(), operands.values.copy()
    for tile, ids in enumerate(tile_ids.T.tolist()):
        cells = slice(tile * CELLS_PER_TILE, (tile + 1) * CELLS_PER_TILE)
        for stream, id in enumerate(ids):
            keys[stream, cells], values[stream, cells] = keys[ids.index(id), cells], values[ids.index(id), cells]
    return replace(operands, keys=keys, values=values)


@contextmanager
def tiles_known(ids: NDArray[np.int64]) -> Iterator[None]:
    binding.use_tile_ids(ids)
    try:
        yield
    finally:
        binding.use_tile_ids(NO_TILES)


SHARED = (
    Shape((650,) * 8, 1, 9, 3, 64, 64, 768),
    Shape((650, 600, 700, 640, 31), 1, 14, 2, 64, 64, 768),
    Shape((100, 90, 95, 64), 5, 9, 3, 64, 64, 128),
    Shape((1500, 1501), 1, 8, 1, 128, 128, 1536),
    Shape((60,) * 70, 1, 6, 2, 32, 32, 64),
    Shape((100, 100), 40, 6, 2, 32, 32, 160),
)


def prefix_ids(shape: Shape, num_shared: int) -> NDArray[np.int64]:
    """All streams have the first tiles in common, and each has others of its own."""
    ids = np.arange(len(shape.past) * shape.num_keys // CELLS_PER_TILE).reshape(len(shape.past), -1)
    ids[:, :num_shared] = ids[0, :num_shared]
    return ids


@pytest.mark.parametrize("num_threads", [1, 2, 3])
@pytest.mark.parametrize("num_shared", [1, 2, 20])
@pytest.mark.parametrize("shape", SHARED, ids=str)
def test_a_row_has_the_same_bits_where_streams_share_tiles(shape: Shape, num_shared: int, num_threads: int) -> None:
    ids = prefix_ids(shape, num_shared)
    operands = copied(shape.draw(), ids)
    apart = attend(operands, num_threads)
    with tiles_known(ids):
        assert (attend(operands, num_threads) == apart).all()
        assert (attend(operands.stream(1), num_threads)[0] == apart[1]).all()


def test_shared_tiles_are_read_once() -> None:
    """Streams that hold something else under one number get what the first of them holds."""
    skip_without_own_kernels()
    ids = prefix_ids(SHARED[0], 5)
    operands = SHARED[0].draw()
    with tiles_known(ids):
        together = attend(operands)
    assert (together == attend(copied(operands, ids))).all()
    assert (together != attend(operands))[1:].any()


def test_numbers_of_a_cache_of_other_sizes_say_nothing() -> None:
    operands = SHARED[0].draw()
    for ids in (np.zeros((7, 24), np.int64), np.zeros((8, 25), np.int64)):
        with tiles_known(ids):
            known = attend(operands)
        assert (known == attend(operands)).all()


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_any_tiles_that_are_shared_change_no_bit(data: st.DataObject) -> None:
    num_tiles = data.draw(st.integers(1, 3))
    past = data.draw(st.lists(st.integers(0, num_tiles * CELLS_PER_TILE - 5), min_size=2, max_size=6))
    heads_per_group, num_groups = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 3))
    shape = Shape(
        tuple(past),
        num_tokens=data.draw(st.integers(1, 4)),
        num_heads=heads_per_group * num_groups,
        num_groups=num_groups,
        head_size=32,
        value_size=32,
        num_keys=num_tiles * CELLS_PER_TILE,
    )
    drawn = data.draw(st.lists(st.integers(0, 2), min_size=len(past) * num_tiles, max_size=len(past) * num_tiles))
    ids = np.array(drawn).reshape(len(past), num_tiles) + 3 * np.arange(num_tiles)
    operands = copied(shape.draw(), ids)
    apart = attend(operands)
    with tiles_known(ids):
        assert (attend(operands, data.draw(st.integers(1, 2))) == apart).all()


@pytest.mark.parametrize("num_wrong", [1, 256])
def test_a_key_that_is_no_number_is_not_hidden(num_wrong: int) -> None:
    operands = replace(SHAPES[0], past=(255,)).draw()
    operands.keys[:, :num_wrong] = np.nan
    assert np.isnan(attend(operands)).all()


def test_a_token_that_sees_nothing_gets_zeros() -> None:
    operands = SHAPES[3].draw()
    operands.mask[0, 2] = -np.inf
    attended = attend(operands, 2)
    assert (attended[0, 2] == 0).all()
    assert abs(attended[0, 3] - reference(operands.token(3))[0, 0]).max() < TOLERANCE


@settings(max_examples=25, deadline=None)
@given(
    past=st.lists(st.integers(0, 1100), min_size=1, max_size=4),
    num_tokens=st.integers(1, 30),
    heads_per_group=st.integers(1, 9),
    num_groups=st.integers(1, 3),
    vectors=st.integers(1, 3),
    num_threads=st.integers(1, 2),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_sizes_are_numpy_s(
    past: list[int],
    num_tokens: int,
    heads_per_group: int,
    num_groups: int,
    vectors: int,
    num_threads: int,
    seed: int,
) -> None:
    num_keys = -(-(max(past) + num_tokens) // 8) * 8
    size = 32 * vectors
    operands = Shape(tuple(past), num_tokens, heads_per_group * num_groups, num_groups, size, size, num_keys).draw(seed)
    assert abs(attend(operands, num_threads) - reference(operands)).max() < TOLERANCE
