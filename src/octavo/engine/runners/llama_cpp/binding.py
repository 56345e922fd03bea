"""llama.cpp's C API as Python objects; but for `mtmd_binding`, the only file that touches ctypes of llama_cpp.

Each C handle has one owner with `close`. Return codes and sizes are passed on as they are: what they mean is said in
`context` and `model`.
"""

import ctypes
import hashlib
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from octavo.engine.runners.llama_cpp.bare_package import bare_package

with bare_package("llama_cpp"):
    from llama_cpp import llama_cpp as lib

log = logging.getLogger("octavo.llama_cpp")

GGML_TYPES = {"f32": 0, "f16": 1, "q4_0": 2, "q8_0": 8, "bf16": 30}
FLASH_ATTENTION_OFF = 0
FLASH_ATTENTION_ON = 1
MAX_SEQUENCES = 256
NO_TOKEN = -1
ATTR_UNKNOWN = 1 << 0
ATTR_CONTROL = 1 << 3
ATTR_USER_DEFINED = 1 << 4
ATTR_STRIPS_LEFT = 1 << 7
ATTR_STRIPS_RIGHT = 1 << 8
_LOG_LEVELS = {3: logging.WARNING, 4: logging.ERROR}


_HARMLESS = "cannot use buft"
"""Said of an adapter's matrices, one by one, where the model's own are kept in another order of their numbers."""


def _write_log(level: int, text: bytes, _user_data: object) -> None:
    if level in _LOG_LEVELS and (line := text.decode(errors="replace").strip()) and _HARMLESS not in line:
        log.log(_LOG_LEVELS[level], line)


log_callback = lib.llama_log_callback(_write_log)  # llama.cpp keeps the pointer for the life of the process


# Of ggml, on which libllama depends; no part of its interface, but the version is pinned.
_soft_max = lib._lib.ggml_vec_soft_max_f32
_soft_max.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_float)
_soft_max.restype = ctypes.c_double

# Of native/; a library that was built without it reads each copy.
_use_tile_ids: Callable[..., object] = getattr(lib._lib, "octavo_use_tile_ids", lambda *_: None)


def initialize() -> None:
    """Once per process, before anything else here."""
    lib.llama_log_set(log_callback, ctypes.c_void_p(0))
    lib.llama_backend_init()


def version() -> str:
    return f"{lib.llama_version().decode()}"


def system_info() -> str:
    """What the library was built to use of the processor, as llama.cpp says it."""
    return str(lib.llama_print_system_info().decode())


def build_digest() -> bytes:
    """Of the library's files: another compiler, processor or kernel is another build of the same version."""
    folder = Path(lib._lib._name).parent
    digest = hashlib.blake2b(digest_size=8)
    for file in sorted(folder.glob("lib*")):
        if file.suffix in (".so", ".dylib"):  # the names that end in a version are copies
            digest.update(file.read_bytes())
    return digest.digest()


class Model:
    """A loaded GGUF file: weights and vocabulary. The vocabulary may be read from any thread."""

    def __init__(self, path: Path, *, use_extra_buffers: bool, on_progress: Callable[[float], None]) -> None:
        """Raises OSError where llama.cpp cannot load the file."""

        def report(progress: float, _user_data: object) -> bool:
            on_progress(progress)
            return True  # go on loading

        callback = lib.llama_progress_callback(report)
        params = lib.llama_model_default_params()
        params.use_extra_bufts = use_extra_buffers
        params.n_gpu_layers = 0  # what is chosen and measured here is chosen and measured for processors
        params.progress_callback = callback
        self._model = lib.llama_model_load_from_file(str(path).encode(), params)
        if not self._model:
            raise OSError("llama.cpp cannot load the file")
        self._vocab = lib.llama_model_get_vocab(self._model)

    def close(self) -> None:
        if self._model:
            lib.llama_model_free(self._model)
            self._model = None

    @property
    def handle(self) -> object:
        return self._model

    @property
    def has_decoder(self) -> bool:
        return bool(lib.llama_model_has_decoder(self._model)) and not lib.llama_model_has_encoder(self._model)

    @property
    def has_attention_only(self) -> bool:
        """Whether its memory is keys and values by position: other states cannot be cut back to a part of a text."""
        return not lib.llama_model_is_recurrent(self._model) and not lib.llama_model_is_hybrid(self._model)

    @property
    def description(self) -> str:
        buffer = ctypes.create_string_buffer(256)
        lib.llama_model_desc(self._model, buffer, len(buffer))
        return buffer.value.decode(errors="replace")

    @property
    def chat_template(self) -> str | None:
        source = lib.llama_model_chat_template(self._model, None)
        return source.decode(errors="replace") if source else None

    @property
    def trained_context_length(self) -> int:
        return int(lib.llama_model_n_ctx_train(self._model))

    @property
    def cache_width(self) -> int:
        """Numbers that the KV cache holds per token, keys and values together; 0 where the first layer has none."""
        heads = lib.llama_model_n_layer(self._model) * lib.llama_model_n_head_kv(self._model)
        return int(2 * heads * self._head_size)

    @property
    def _head_size(self) -> int:
        architecture = self._metadata("general.architecture") or ""
        if (length := self._metadata(f"{architecture}.attention.key_length")) is not None:
            return int(length)
        return int(lib.llama_model_n_embd(self._model) // max(lib.llama_model_n_head(self._model), 1))

    def _metadata(self, key: str) -> str | None:
        buffer = ctypes.create_string_buffer(256)
        length = lib.llama_model_meta_val_str(self._model, key.encode(), buffer, len(buffer))
        return buffer.value.decode(errors="replace") if length >= 0 else None

    @property
    def vocabulary_size(self) -> int:
        return int(lib.llama_vocab_n_tokens(self._vocab))

    @property
    def bos_token(self) -> int | None:
        return _token_or_none(lib.llama_vocab_bos(self._vocab))

    @property
    def eos_token(self) -> int | None:
        return _token_or_none(lib.llama_vocab_eos(self._vocab))

    @property
    def adds_bos(self) -> bool:
        return bool(lib.llama_vocab_get_add_bos(self._vocab))

    @property
    def adds_space_prefix(self) -> bool:
        is_sentence_piece = lib.llama_vocab_type(self._vocab) == lib.LLAMA_VOCAB_TYPE_SPM
        return is_sentence_piece and self._metadata("tokenizer.ggml.add_space_prefix") != "false"

    @property
    def infill_tokens(self) -> tuple[int | None, int | None, int | None]:
        """Before what precedes a gap, before what follows it, and before what fills it."""
        vocab = self._vocab
        tokens = lib.llama_vocab_fim_pre(vocab), lib.llama_vocab_fim_suf(vocab), lib.llama_vocab_fim_mid(vocab)
        prefix, suffix, middle = map(_token_or_none, tokens)
        return prefix, suffix, middle

    def end_of_generation(self) -> Sequence[bool]:
        """For each token, whether it ends an answer."""
        return list(map(lib.llama_vocab_is_eog, repeat(self._vocab), range(self.vocabulary_size)))

    def token_attributes(self) -> Sequence[int]:
        """Of each token: the sum of its ATTR_ constants."""
        return list(map(lib.llama_vocab_get_attr, repeat(self._vocab), range(self.vocabulary_size)))

    def pieces(self, tokens: Iterable[int], *, as_special: bool) -> Iterator[bytes]:
        """Bytes of the tokens' texts; those of control tokens only with as_special."""
        size = 256
        buffer = ctypes.create_string_buffer(size)
        for token in tokens:
            while (length := lib.llama_token_to_piece(self._vocab, token, buffer, size, 0, as_special)) < 0:
                size = -length
                buffer = ctypes.create_string_buffer(size)
            yield buffer.raw[:length]

    def tokenize(self, text: str) -> NDArray[np.int32]:
        """Tokens of plain text: no special token is added, none is looked for but user-defined ones."""
        data = text.encode()
        capacity = len(data) + 8
        while True:
            tokens = np.empty(capacity, dtype=np.int32)
            pointer = tokens.ctypes.data_as(ctypes.POINTER(lib.llama_token))
            count = lib.llama_tokenize(self._vocab, data, len(data), pointer, capacity, False, False)
            if count >= 0:
                return tokens[:count]
            capacity = -count


class Adapter:
    """A loaded LoRA adapter of a model. To be closed before the model, and when no context uses it."""

    def __init__(self, model: Model, path: Path) -> None:
        """Raises OSError where llama.cpp cannot load the file for this model; the log says why."""
        self._adapter = lib.llama_adapter_lora_init(model.handle, str(path).encode())
        if not self._adapter:
            raise OSError("llama.cpp cannot load the adapter")

    def close(self) -> None:
        if self._adapter:
            lib.llama_adapter_lora_free(self._adapter)
            self._adapter = None

    @property
    def handle(self) -> object:
        return self._adapter

    @property
    def is_activated(self) -> bool:
        """Whether it is to be used only behind certain tokens (aLoRA, arXiv 2504.12397)."""
        return int(lib.llama_adapter_get_alora_n_invocation_tokens(self._adapter)) > 0


class Batch:
    """Storage for the tokens of one llama_decode call, filled from arrays."""

    def __init__(self, capacity: int) -> None:
        self._tokens = np.zeros(capacity, np.int32)
        self._positions = np.zeros(capacity, np.int32)
        self._sequences = np.zeros(capacity, np.int32)
        self._wants_logits = np.zeros(capacity, np.int8)
        self._ones = np.ones(capacity, np.int32)
        address = self._sequences.ctypes.data
        self._sequence_lists = np.arange(address, address + 4 * capacity, 4, dtype=np.uintp)

    def fill(
        self,
        tokens: NDArray[np.int32],
        positions: NDArray[np.int32],
        sequences: NDArray[np.int32],
        wants_logits: NDArray[np.bool_],
    ) -> lib.llama_batch:
        """The batch as llama.cpp takes it; valid until the next fill. All arrays have shape (n_tokens,)."""
        count = len(tokens)
        self._tokens[:count] = tokens
        self._positions[:count] = positions
        self._sequences[:count] = sequences
        self._wants_logits[:count] = wants_logits
        batch = lib.llama_batch()
        batch.n_tokens = count
        batch.token = self._tokens.ctypes.data_as(ctypes.POINTER(lib.llama_token))
        batch.embd = None
        batch.pos = self._positions.ctypes.data_as(ctypes.POINTER(lib.llama_pos))
        batch.n_seq_id = self._ones.ctypes.data_as(ctypes.POINTER(ctypes.c_int32))
        batch.seq_id = self._sequence_lists.ctypes.data_as(ctypes.POINTER(ctypes.POINTER(lib.llama_seq_id)))
        batch.logits = self._wants_logits.ctypes.data_as(ctypes.POINTER(ctypes.c_int8))
        return batch

    def fill_embeddings(
        self,
        embeddings: NDArray[np.float32],
        positions: NDArray[np.int32],
        sequences: NDArray[np.int32],
        wants_logits: NDArray[np.bool_],
    ) -> lib.llama_batch:
        """The same with what a model sees in place of tokens; valid as long as the arrays, too.

        embeddings: shape (n_tokens, width). positions: shape (n_tokens,), or (4, n_tokens) for a model with M-RoPE.
        """
        batch = self.fill(sequences, sequences, sequences, wants_logits)  # neither tokens nor positions are read
        batch.token = None
        batch.embd = embeddings.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
        batch.pos = positions.ctypes.data_as(ctypes.POINTER(lib.llama_pos))
        return batch


@dataclass(frozen=True, slots=True)
class ContextSettings:
    """context_length: tokens per slot. cache_type_k, cache_type_v: names of GGML_TYPES."""

    context_length: int
    num_slots: int
    num_threads: int
    max_batch_tokens: int
    cache_type_k: str
    cache_type_v: str


class Context:
    """A KV cache and the computation over it: one stream per sequence (`kv_unified = false`)."""

    def __init__(self, model: Model, settings: ContextSettings) -> None:
        """Raises OSError where llama.cpp cannot allocate it."""
        params = lib.llama_context_default_params()
        params.n_ctx = settings.context_length * settings.num_slots
        params.n_seq_max = settings.num_slots
        params.n_batch = params.n_ubatch = settings.max_batch_tokens
        params.n_threads = params.n_threads_batch = settings.num_threads
        params.type_k = GGML_TYPES[settings.cache_type_k]
        params.type_v = GGML_TYPES[settings.cache_type_v]
        # Flash attention rounds 32-bit keys and values to 16 bits; who chooses those wants their digits.
        is_exact = settings.cache_type_k == settings.cache_type_v == "f32"
        params.flash_attn_type = FLASH_ATTENTION_OFF if is_exact else FLASH_ATTENTION_ON
        params.kv_unified = False
        params.swa_full = True  # a cache of the last tokens alone could not be cut back to a prefix
        params.no_perf = True
        self._vocabulary_size = model.vocabulary_size
        self._batch = Batch(settings.max_batch_tokens)
        self._context = lib.llama_init_from_model(model.handle, params)
        if not self._context:
            raise OSError("llama.cpp cannot create a context of this size")
        self._memory = lib.llama_get_memory(self._context)

    def close(self) -> None:
        if self._context:
            lib.llama_free(self._context)
            self._context = None

    @property
    def context_length(self) -> int:
        """Tokens per sequence, as llama.cpp rounded them."""
        return int(lib.llama_n_ctx_seq(self._context))

    def use_threads(self, num_threads: int) -> None:
        lib.llama_set_n_threads(self._context, num_threads, num_threads)

    def decode(
        self,
        tokens: NDArray[np.int32],
        positions: NDArray[np.int32],
        sequences: NDArray[np.int32],
        wants_logits: NDArray[np.bool_],
    ) -> int:
        """Compute; the return code is llama_decode's."""
        return int(lib.llama_decode(self._context, self._batch.fill(tokens, positions, sequences, wants_logits)))

    def decode_embeddings(
        self,
        embeddings: NDArray[np.float32],
        positions: NDArray[np.int32],
        sequences: NDArray[np.int32],
        wants_logits: NDArray[np.bool_],
        *,
        is_causal: bool,
    ) -> int:
        """As `decode`, with what a model sees. Both arrays of numbers are contiguous; see Batch.fill_embeddings."""
        batch = self._batch.fill_embeddings(embeddings, positions, sequences, wants_logits)
        lib.llama_set_causal_attn(self._context, is_causal)
        try:
            return int(lib.llama_decode(self._context, batch))
        finally:
            lib.llama_set_causal_attn(self._context, True)

    def use_adapter(self, adapter: "Adapter | None", scale: float) -> None:
        """From now on compute with the adapter, or with the model as it is."""
        if adapter is None:
            lib.llama_set_adapters_lora(self._context, None, 0, None)
        else:
            adapters = (lib.llama_adapter_lora_p_ctypes * 1)(adapter.handle)
            lib.llama_set_adapters_lora(self._context, adapters, 1, (ctypes.c_float * 1)(scale))

    def logits(self, num_rows: int) -> NDArray[np.float32]:
        """Shape (num_rows, vocabulary): a view into llama.cpp's buffer, valid until the next decode."""
        pointer = lib.llama_get_logits(self._context)
        address = ctypes.cast(pointer, ctypes.c_void_p).value
        if address is None:
            raise OSError("llama.cpp returned no logits")
        buffer = (ctypes.c_float * (num_rows * self._vocabulary_size)).from_address(address)
        return np.ctypeslib.as_array(buffer).reshape(num_rows, self._vocabulary_size)

    def save(self, sequence: int) -> NDArray[np.uint8]:
        """All that the sequence holds. Much faster than llama_memory_seq_cp, which copies a stream with its free cells,
        unless nearly all of those are used."""
        size = lib.llama_state_seq_get_size(self._context, sequence)
        data = np.empty(size, np.uint8)
        written = lib.llama_state_seq_get_data(self._context, _bytes_pointer(data), size, sequence)
        return data[:written]

    def restore(self, sequence: int, data: NDArray[np.uint8]) -> bool:
        """Make the sequence hold what was saved; False where the memory cannot take it."""
        pointer = _bytes_pointer(data)
        # The state of an empty sequence would be read without clearing this one.
        return self.remove(sequence, 0) and bool(
            lib.llama_state_seq_set_data(self._context, pointer, len(data), sequence)
        )

    def remove(self, sequence: int, start: int) -> bool:
        """Forget a sequence's tokens from position `start` on; False where the memory cannot do it."""
        return bool(lib.llama_memory_seq_rm(self._memory, sequence, start, -1))


def _token_or_none(token: int) -> int | None:
    return None if token == NO_TOKEN else int(token)


def exponentials(row: NDArray[np.float32], highest: float) -> float:
    """Replaces each x of a contiguous row by exp(x - highest) and returns the sum of them all, in vector instructions
    that numpy has on few processors."""
    return float(_soft_max(len(row), row.ctypes.data, row.ctypes.data, highest))


def use_tile_ids(ids: NDArray[np.int64]) -> None:
    """Says for all attentions that are computed from now on which tiles of their KV cache are the same: those with one
    number. ids: shape (sequences, tiles of a sequence); to be kept until others are given."""
    num_sequences, num_tiles = ids.shape
    _use_tile_ids(ctypes.c_void_p(ids.ctypes.data), ctypes.c_int64(num_sequences), ctypes.c_int64(num_tiles))


def _bytes_pointer(data: NDArray[np.uint8]) -> object:
    return data.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8))
