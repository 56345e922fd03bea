"""A GGUF file's vocabulary and tokenizer."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from octavo.core.vocabulary import InfillTokens, SpecialToken, Vocabulary
from octavo.engine.base import Fragment
from octavo.engine.runners.llama_cpp import binding
from octavo.errors import ModelLoadError

MAX_SHORT = 1024
"""Characters that are tokenized at once, in less than half a millisecond. Where the processors are busy, a thread waits
longer for its turn."""
CONTROL = binding.ATTR_CONTROL | binding.ATTR_UNKNOWN


def load_model(path: Path, *, use_extra_buffers: bool, on_progress: Callable[[float], None]) -> binding.Model:
    """Raises ModelLoadError, saying what is wrong with the file as far as it can be told."""
    check_file(path)
    try:
        model = binding.Model(path, use_extra_buffers=use_extra_buffers, on_progress=on_progress)
    except OSError as error:
        raise ModelLoadError(f"{path.name}: {error}.") from error
    if not model.has_decoder:
        raise ModelLoadError(f"{path.name}: a text-generation model is needed, this one has no plain decoder.")
    return model


def check_file(path: Path) -> None:
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        raise ModelLoadError(f"{path.name}: cannot be read ({error.strerror}).") from error
    if magic != b"GGUF":
        raise ModelLoadError(f"{path.name}: not a GGUF file.")


class LlamaTokenizer:
    """llama.cpp's tokenizer of a model."""

    def __init__(self, model: binding.Model) -> None:
        self._model = model
        self._vocabulary = read_vocabulary(model)

    @property
    def vocabulary(self) -> Vocabulary:
        return self._vocabulary

    async def encode(self, fragments: Sequence[Fragment]) -> tuple[int, ...]:
        if len(fragments) <= MAX_SHORT and sum(map(_size, fragments)) <= MAX_SHORT:
            return tuple(self._encode(fragments))
        # A thread, because a long text takes long and C code does not hold Python's lock meanwhile.
        return await asyncio.to_thread(lambda: tuple(self._encode(fragments)))

    def encode_text(self, text: str) -> Sequence[int]:
        tokens: list[int] = self._model.tokenize(text).tolist()
        return tokens

    def _encode(self, fragments: Sequence[Fragment]) -> Iterator[int]:
        for fragment in fragments:
            if isinstance(fragment, int):
                yield fragment
            else:
                yield from self.encode_text(fragment)


def _size(fragment: Fragment) -> int:
    return len(fragment) if isinstance(fragment, str) else 1


def read_vocabulary(model: binding.Model) -> Vocabulary:
    """May run in any thread, beside what others do with the model."""
    ends = model.end_of_generation()
    special_tokens = tuple(_special_tokens(model, ends))
    silent = {token.id for token in special_tokens if token.is_control}
    pieces = list(model.pieces(range(model.vocabulary_size), as_special=False))
    for token in silent:
        pieces[token] = b""
    return Vocabulary(
        pieces=tuple(pieces),
        special_tokens=special_tokens,
        eog_tokens=frozenset(token for token, is_end in enumerate(ends) if is_end),
        bos_token=model.bos_token,
        adds_bos=model.adds_bos,
        eos_token=model.eos_token,
        adds_space_prefix=model.adds_space_prefix,
        infill=_infill(model),
    )


def _infill(model: binding.Model) -> InfillTokens | None:
    """None also where llama.cpp found only some of the tokens."""
    prefix, suffix, middle = model.infill_tokens
    return None if prefix is None or suffix is None or middle is None else InfillTokens(prefix, suffix, middle)


def _special_tokens(model: binding.Model, ends: Sequence[bool]) -> Iterator[SpecialToken]:
    """Files have been seen in which an end token is not marked as a control token; it is one all the same."""
    attributes = model.token_attributes()
    marks = CONTROL | binding.ATTR_USER_DEFINED
    marked = [token for token in range(model.vocabulary_size) if attributes[token] & marks or ends[token]]
    for token, piece in zip(marked, model.pieces(marked, as_special=True), strict=True):
        yield SpecialToken(
            id=token,
            text=piece.decode(errors="replace"),
            is_control=ends[token] or bool(attributes[token] & CONTROL),
            strips_left=bool(attributes[token] & binding.ATTR_STRIPS_LEFT),
            strips_right=bool(attributes[token] & binding.ATTR_STRIPS_RIGHT),
        )
