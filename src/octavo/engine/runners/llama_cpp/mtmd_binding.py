"""libmtmd's C API as Python objects; beside `binding` the only file that touches ctypes of llama_cpp."""

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from octavo.engine.runners.llama_cpp.bare_package import bare_package
from octavo.engine.runners.llama_cpp.binding import Model, log_callback

with bare_package("llama_cpp"):
    from llama_cpp import llama_cpp as lib
    from llama_cpp import mtmd_cpp as mtmd

OnNode = Callable[[bool], bool]
"""Called for each node of an encoder's graph before it is computed, with True: whether to stop behind it. Where that
was so, called again with False: whether to go on."""


class Chunk:
    """A part of a prepared picture, or tokens of text around one. Valid as long as its `Chunks`."""

    def __init__(self, owner: "Chunks", handle: int, *, is_non_causal: bool) -> None:
        self._owner = owner  # which frees it
        self.handle = handle
        self.is_non_causal = is_non_causal

    @property
    def is_text(self) -> bool:
        return bool(mtmd.mtmd_input_chunk_get_type(self.handle) == mtmd.MTMD_INPUT_CHUNK_TYPE_TEXT)

    @property
    def num_tokens(self) -> int:
        return int(mtmd.mtmd_input_chunk_get_n_tokens(self.handle))

    @property
    def num_positions(self) -> int:
        return int(mtmd.mtmd_input_chunk_get_n_pos(self.handle))

    @property
    def text_tokens(self) -> tuple[int, ...]:
        count = ctypes.c_size_t()
        tokens = mtmd.mtmd_input_chunk_get_tokens_text(self.handle, ctypes.byref(count))
        return tuple(tokens[: count.value])

    def places(self) -> NDArray[np.int32]:
        """Time, row and column of each token of a picture, from its first position on; shape (3, num_tokens)."""
        image = mtmd.mtmd_input_chunk_get_tokens_image(self.handle)
        positions = (mtmd.mtmd_image_tokens_get_decoder_pos(image, 0, i) for i in range(self.num_tokens))
        return np.array([(each.t, each.y, each.x) for each in positions], np.int32).T


class Chunks:
    """What libmtmd makes of a picture."""

    def __init__(self) -> None:
        self.handle = mtmd.mtmd_input_chunks_init()

    def __del__(self) -> None:
        mtmd.mtmd_input_chunks_free(self.handle)

    def handles(self) -> list[int]:
        return [
            int(mtmd.mtmd_input_chunks_get(self.handle, index) or 0)
            for index in range(mtmd.mtmd_input_chunks_size(self.handle))
        ]


class VisionContext:
    """A vision encoder beside its text model. Only `prepare` may be called from other threads than the owner's."""

    def __init__(
        self, path: Path, model: Model, *, num_threads: int, on_node: OnNode, max_tokens: int | None = None
    ) -> None:
        """max_tokens: of a picture, where their number depends on its size; None is the model's own bound.

        Raises OSError where libmtmd cannot load the file, or it belongs to another model.
        """

        def report(_tensor: object, asks: bool, _user_data: object) -> bool:
            return on_node(asks)

        mtmd.mtmd_log_set(log_callback, None)
        self._callback = lib.ggml_backend_sched_eval_callback(report)
        params = mtmd.mtmd_context_params_default()
        params.use_gpu = False
        params.print_timings = False
        params.warmup = False
        params.n_threads = num_threads
        params.cb_eval = self._callback
        if max_tokens is not None:
            params.image_max_tokens = max_tokens
        self._context = mtmd.mtmd_init_from_file(str(path).encode(), model.handle, params)
        if not self._context:
            raise OSError("libmtmd cannot load the file, or it is for another model")
        self._width = int(lib.llama_model_n_embd_inp(model.handle))

    def close(self) -> None:
        if self._context:
            mtmd.mtmd_free(self._context)
            self._context = None

    @property
    def has_vision(self) -> bool:
        return bool(mtmd.mtmd_support_vision(self._context))

    @property
    def is_non_causal(self) -> bool:
        """Whether each token of a picture attends to all the others."""
        return bool(mtmd.mtmd_decode_use_non_causal(self._context, None))

    @property
    def uses_places(self) -> bool:
        return bool(mtmd.mtmd_decode_use_mrope(self._context))

    def prepare(self, width: int, height: int, rgb: bytes) -> list[Chunk]:
        """A picture in the model's size and parts. Raises OSError where that fails."""
        data = np.frombuffer(rgb, np.uint8).ctypes.data_as(ctypes.POINTER(ctypes.c_ubyte))
        bitmap = mtmd.mtmd_bitmap_init(width, height, data)  # which copies it
        part = mtmd.mtmd_input_part(text=None, bitmap=bitmap)
        chunks = Chunks()
        try:
            parts = (ctypes.POINTER(mtmd.mtmd_input_part) * 1)(ctypes.pointer(part))
            code = mtmd.mtmd_tokenize_from_parts(self._context, chunks.handle, parts, 1, False)
        finally:
            mtmd.mtmd_bitmap_free(bitmap)
        if code != 0:
            raise OSError(f"libmtmd cannot prepare the picture (code {code})")
        return [self._chunk(chunks, handle) for handle in chunks.handles()]

    def encode(self, chunk: Chunk) -> NDArray[np.float32]:
        """Shape (num_tokens, width of the text model). Raises OSError where that fails."""
        code = mtmd.mtmd_encode_chunk(self._context, chunk.handle)
        if code != 0:
            raise OSError(f"libmtmd cannot encode the picture (code {code})")
        shape = (chunk.num_tokens, self._width)
        values = np.ctypeslib.as_array(mtmd.mtmd_get_output_embd(self._context), shape)
        return np.array(values)  # a copy: the buffer is the context's

    def _chunk(self, owner: Chunks, handle: int) -> Chunk:
        return Chunk(owner, handle, is_non_causal=bool(mtmd.mtmd_decode_use_non_causal(self._context, handle)))


UINT32 = 4
STRING = 8
"""Types of GGUF's metadata."""


class _GgufParams(ctypes.Structure):
    _fields_ = (("no_alloc", ctypes.c_bool), ("context", ctypes.c_void_p))


# Of ggml, on which libllama depends.
_open = lib._lib.gguf_init_from_file
_open.argtypes, _open.restype = (ctypes.c_char_p, _GgufParams), ctypes.c_void_p
_free = lib._lib.gguf_free
_free.argtypes, _free.restype = (ctypes.c_void_p,), None
_find_key = lib._lib.gguf_find_key
_find_key.argtypes, _find_key.restype = (ctypes.c_void_p, ctypes.c_char_p), ctypes.c_int64
_type = lib._lib.gguf_get_kv_type
_type.argtypes, _type.restype = (ctypes.c_void_p, ctypes.c_int64), ctypes.c_int
_number = lib._lib.gguf_get_val_u32
_number.argtypes, _number.restype = (ctypes.c_void_p, ctypes.c_int64), ctypes.c_uint32
_text = lib._lib.gguf_get_val_str
_text.argtypes, _text.restype = (ctypes.c_void_p, ctypes.c_int64), ctypes.c_char_p


class VisionMetadata:
    """What a vision encoder's file says of itself. For a `with` block."""

    def __init__(self, path: Path) -> None:
        """Raises OSError where it is no GGUF file."""
        self._file = _open(str(path).encode(), _GgufParams(no_alloc=True, context=None))
        if not self._file:
            raise OSError("not a GGUF file that can be read")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        _free(self._file)

    @property
    def image_side(self) -> int | None:
        """Pixels of a picture's side, or of a tile's, for which the encoder was made."""
        key = self._find("clip.vision.image_size", UINT32)
        return None if key is None else int(_number(self._file, key))

    @property
    def projector(self) -> str:
        """The kind of the encoder's last part; empty where the file does not say."""
        for name in ("clip.vision.projector_type", "clip.projector_type"):
            if (key := self._find(name, STRING)) is not None:
                return bytes(_text(self._file, key)).decode(errors="replace")
        return ""

    def _find(self, name: str, type: int) -> int | None:
        """Where a value of that type is; asking for another one's would end the process."""
        key = int(_find_key(self._file, name.encode()))
        return key if key >= 0 and _type(self._file, key) == type else None
