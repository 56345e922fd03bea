"""llama.cpp with libmtmd's own helper, one prompt at a time: what an engine that sees is held against."""

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from octavo.engine.runners.llama_cpp import binding
from octavo.engine.runners.llama_cpp.bare_package import bare_package

with bare_package("llama_cpp"):
    from llama_cpp import llama_cpp, mtmd_cpp

Part = str | Image.Image
"""Of a prompt: plain text, or an RGB picture."""
NO_FLASH_ATTENTION = 0
F32 = 0
IMAGE_CHUNK = mtmd_cpp.MTMD_INPUT_CHUNK_TYPE_IMAGE


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a prompt as libmtmd cuts it. tokens: of text; none where a picture is."""

    is_image: bool
    num_tokens: int
    num_positions: int
    tokens: tuple[int, ...]


class Libmtmd:
    """A model and its mmproj, on one thread, with a cache of 32-bit floats."""

    def __init__(self, path: Path, mmproj: Path, *, context_length: int, batch: int) -> None:
        """batch: most tokens computed at a time, as n_batch and n_ubatch."""
        self._context_length, self._batch = context_length, batch
        binding.initialize()
        mtmd_cpp.mtmd_helper_log_set(binding.log_callback, ctypes.c_void_p(0))
        params = llama_cpp.llama_model_default_params()
        params.n_gpu_layers = 0
        self._model = llama_cpp.llama_model_load_from_file(str(path).encode(), params)
        assert self._model
        self._vocab = llama_cpp.llama_model_get_vocab(self._model)
        settings = mtmd_cpp.mtmd_context_params_default()
        settings.use_gpu = settings.warmup = settings.print_timings = False
        settings.n_threads = 1
        self._mtmd = mtmd_cpp.mtmd_init_from_file(str(mmproj).encode(), self._model, settings)
        assert self._mtmd

    def close(self) -> None:
        mtmd_cpp.mtmd_free(self._mtmd)
        llama_cpp.llama_model_free(self._model)

    @property
    def is_mrope(self) -> bool:
        return bool(mtmd_cpp.mtmd_decode_use_mrope(self._mtmd))

    def chunks(self, parts: Sequence[Part]) -> tuple[Chunk, ...]:
        """The prompt with BOS where the model has one."""
        with self._tokenized(parts) as chunks:
            return tuple(_read(mtmd_cpp.mtmd_input_chunks_get(chunks, n)) for n in range(_size(chunks)))

    def is_causal(self, parts: Sequence[Part]) -> bool:
        """Whether no chunk of the prompt is decoded with attention to what comes behind."""
        with self._tokenized(parts) as chunks:
            each = [mtmd_cpp.mtmd_input_chunks_get(chunks, n) for n in range(_size(chunks))]
            images = [chunk for chunk in each if mtmd_cpp.mtmd_input_chunk_get_type(chunk) == IMAGE_CHUNK]
            return not any(mtmd_cpp.mtmd_decode_use_non_causal(self._mtmd, chunk) for chunk in images)

    def logprobs(self, parts: Sequence[Part], answer: Sequence[int]) -> NDArray[np.float64]:
        """Of the token behind the prompt, and behind each of the answer's but the last. Shape (answer, vocabulary)."""
        with self._context() as context, self._tokenized(parts) as chunks:
            end = llama_cpp.llama_pos(0)
            code = mtmd_cpp.mtmd_helper_eval_chunks(
                self._mtmd, context, chunks, 0, 0, self._batch, True, ctypes.byref(end)
            )
            assert code == 0, code
            rows = [self._log_softmax(context)]
            for position, token in enumerate(answer[:-1], start=end.value):
                _decode(context, token, position)
                rows.append(self._log_softmax(context))
        return np.array(rows)

    def _log_softmax(self, context: object) -> NDArray[np.float64]:
        size = llama_cpp.llama_vocab_n_tokens(self._vocab)
        logits = np.ctypeslib.as_array(llama_cpp.llama_get_logits_ith(context, -1), shape=(size,)).astype(np.float64)
        logits -= logits.max()
        return logits - np.log(np.exp(logits).sum())

    @contextmanager
    def _context(self) -> Iterator[object]:
        params = llama_cpp.llama_context_default_params()
        params.n_ctx = self._context_length
        params.n_batch = params.n_ubatch = self._batch
        params.n_threads = params.n_threads_batch = 1
        params.type_k = params.type_v = F32
        params.flash_attn_type = NO_FLASH_ATTENTION
        params.swa_full = True
        context = llama_cpp.llama_init_from_model(self._model, params)
        assert context
        try:
            yield context
        finally:
            llama_cpp.llama_free(context)

    @contextmanager
    def _tokenized(self, parts: Sequence[Part]) -> Iterator[object]:
        marker = mtmd_cpp.mtmd_get_marker(self._mtmd).decode()
        text = "".join(part if isinstance(part, str) else marker for part in parts).encode()
        bitmaps = [_bitmap(part) for part in parts if not isinstance(part, str)]
        chunks = mtmd_cpp.mtmd_input_chunks_init()
        asked = mtmd_cpp.mtmd_input_text(text, len(text), True, False)
        array = (mtmd_cpp.mtmd_bitmap_p_ctypes * max(1, len(bitmaps)))(*bitmaps)
        try:
            code = mtmd_cpp.mtmd_tokenize(self._mtmd, chunks, ctypes.byref(asked), array, len(bitmaps))
            assert code == 0, code
            yield chunks
        finally:
            mtmd_cpp.mtmd_input_chunks_free(chunks)
            for bitmap in bitmaps:
                mtmd_cpp.mtmd_bitmap_free(bitmap)


def _size(chunks: object) -> int:
    return int(mtmd_cpp.mtmd_input_chunks_size(chunks))


def _bitmap(picture: Image.Image) -> object:
    assert picture.mode == "RGB"
    data = picture.tobytes()
    return mtmd_cpp.mtmd_bitmap_init(*picture.size, (ctypes.c_ubyte * len(data)).from_buffer_copy(data))


def _read(chunk: object) -> Chunk:
    count = ctypes.c_size_t(0)
    is_image = mtmd_cpp.mtmd_input_chunk_get_type(chunk) == IMAGE_CHUNK
    tokens = None if is_image else mtmd_cpp.mtmd_input_chunk_get_tokens_text(chunk, ctypes.byref(count))
    return Chunk(
        is_image,
        int(mtmd_cpp.mtmd_input_chunk_get_n_tokens(chunk)),
        int(mtmd_cpp.mtmd_input_chunk_get_n_pos(chunk)),
        tuple(tokens[: count.value]) if tokens else (),
    )


def _decode(context: object, token: int, position: int) -> None:
    batch = llama_cpp.llama_batch_init(1, 0, 1)
    batch.n_tokens = 1
    batch.token[0], batch.pos[0] = token, position
    batch.n_seq_id[0], batch.seq_id[0][0], batch.logits[0] = 1, 0, 1
    code = llama_cpp.llama_decode(context, batch)
    llama_cpp.llama_batch_free(batch)
    assert code == 0, code
