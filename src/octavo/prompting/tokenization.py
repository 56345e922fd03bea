"""Prompts as tokens."""

import asyncio
from collections.abc import Sequence
from typing import Protocol

from octavo.core.images import Image, ImageTokens
from octavo.core.vocabulary import Vocabulary
from octavo.errors import ContextLengthExceeded, InvalidRequest
from octavo.prompting.markers import Fragment, split_special

MAX_SHORT = 4 * 2**10
"""Characters that are looked through at once, in some microseconds. A thread takes many milliseconds to do it where the
processors are busy."""


class TextEncoder(Protocol):
    """What tokenization needs of an engine's tokenizer."""

    @property
    def vocabulary(self) -> Vocabulary: ...

    async def encode(self, fragments: Sequence[Fragment]) -> tuple[int, ...]:
        """Tokens of the fragments, joined; nothing is added."""
        ...

    async def encode_image(self, image: Image) -> ImageTokens:
        """The image as it stands in a prompt."""
        ...


async def tokenize(encoder: TextEncoder, text: str, *, add_special_tokens: bool = True) -> tuple[int, ...]:
    """Tokens of a text of any length in which special tokens are meant.

    add_special_tokens: with BOS in front where the model expects one.
    """
    tokens = await encoder.encode(await fragments_of(text, encoder.vocabulary))
    return with_bos(tokens, encoder.vocabulary) if add_special_tokens else tokens


async def encode_text(encoder: TextEncoder, text: str, *, context_length: int) -> tuple[int, ...]:
    """A prompt of a text in which special tokens are meant, with BOS in front where the model expects one.

    An empty text is BOS alone, also where the model does not expect one.
    Raises ContextLengthExceeded, and InvalidRequest for an empty text where the model has no BOS.
    """
    vocabulary = encoder.vocabulary
    fragments = await fragments_of(text, vocabulary)
    check_can_fit(fragments, vocabulary, context_length, param="prompt")
    if tokens := await encoder.encode(fragments):
        return check_fits(with_bos(tokens, vocabulary), context_length, param="prompt")
    if vocabulary.bos_token is None:
        raise InvalidRequest("The prompt is empty, and the model has no token to begin a text with.", param="prompt")
    return (vocabulary.bos_token,)


async def fragments_of(text: str, vocabulary: Vocabulary) -> list[Fragment]:
    """The fragments of a text in which special tokens are meant, found without holding up the event loop."""
    if len(text) <= MAX_SHORT:
        return split_special(text, vocabulary)
    return await asyncio.to_thread(split_special, text, vocabulary)


def check_can_fit(fragments: Sequence[Fragment], vocabulary: Vocabulary, context_length: int, *, param: str) -> None:
    """Raises ContextLengthExceeded for what is too long however it is tokenized, so that it need not be."""
    least = _min_num_tokens(fragments, vocabulary)
    if least > context_length:
        raise _too_long(f"at least {least}", context_length, param)


def check_fits(tokens: tuple[int, ...], context_length: int, *, param: str) -> tuple[int, ...]:
    """The tokens. Raises ContextLengthExceeded, with both numbers, where they do not fit."""
    if len(tokens) > context_length:
        raise _too_long(str(len(tokens)), context_length, param)
    return tokens


def with_bos(tokens: tuple[int, ...], vocabulary: Vocabulary) -> tuple[int, ...]:
    """The tokens with BOS in front, once, where the model expects one."""
    bos = vocabulary.bos_token
    if bos is None or not vocabulary.adds_bos or tokens[:1] == (bos,):
        return tokens
    return (bos, *tokens)


def _min_num_tokens(fragments: Sequence[Fragment], vocabulary: Vocabulary) -> int:
    plain = [fragment for fragment in fragments if isinstance(fragment, str)]
    num_bytes = sum(len(text.encode(errors="replace")) for text in plain)
    return len(fragments) - len(plain) + -(-num_bytes // vocabulary.longest_piece)


def _too_long(num_tokens: str, context_length: int, param: str) -> ContextLengthExceeded:
    return ContextLengthExceeded(
        f"The prompt has {num_tokens} tokens; the model's context is {context_length}.", param=param
    )
