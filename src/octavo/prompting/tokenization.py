"""Prompts as tokens."""

import asyncio
from collections.abc import Sequence
from typing import Protocol

from octavo.core.messages import Message
from octavo.core.vocabulary import Vocabulary
from octavo.errors import ContextLengthExceeded, InvalidRequest, TemplateError
from octavo.prompting.chat_template import ChatTemplate
from octavo.prompting.markers import Fragment, choose_sentinel, markers_of, protect, split_special


class TextEncoder(Protocol):
    """What tokenization needs of an engine's tokenizer."""

    @property
    def vocabulary(self) -> Vocabulary: ...

    async def encode(self, fragments: Sequence[Fragment]) -> tuple[int, ...]:
        """Tokens of the fragments, joined; nothing is added."""
        ...


async def tokenize(encoder: TextEncoder, text: str, *, add_special_tokens: bool = True) -> tuple[int, ...]:
    """Tokens of a text of any length in which special tokens are meant.

    add_special_tokens: with BOS in front where the model expects one.
    """
    tokens = await encoder.encode(await asyncio.to_thread(split_special, text, encoder.vocabulary))
    return _with_bos(tokens, encoder.vocabulary) if add_special_tokens else tokens


async def encode_text(encoder: TextEncoder, text: str, *, context_length: int) -> tuple[int, ...]:
    """A prompt of a text in which special tokens are meant, with BOS in front where the model expects one.

    An empty text is BOS alone, also where the model does not expect one.
    Raises ContextLengthExceeded, and InvalidRequest for an empty text where the model has no BOS.
    """
    vocabulary = encoder.vocabulary
    fragments = await asyncio.to_thread(split_special, text, vocabulary)
    if tokens := await _encode(encoder, fragments, context_length, param="prompt"):
        return _checked(_with_bos(tokens, vocabulary), context_length, param="prompt")
    if vocabulary.bos_token is None:
        raise InvalidRequest("The prompt is empty, and the model has no token to begin a text with.", param="prompt")
    return (vocabulary.bos_token,)


async def encode_chat(
    encoder: TextEncoder, template: ChatTemplate, messages: Sequence[Message], *, context_length: int
) -> tuple[int, ...]:
    """Tokens of a conversation, ready for the assistant's answer. Text of a message never becomes a control token.

    Raises TemplateError, ContextLengthExceeded, and InvalidRequest where the messages use up all noncharacters.
    """
    vocabulary = encoder.vocabulary
    fragments = await asyncio.to_thread(_chat_fragments, vocabulary, template, messages)
    tokens = _with_bos(await _encode(encoder, fragments, context_length, param="messages"), vocabulary)
    if not tokens:
        raise TemplateError("the model's chat template makes no text of the messages", param="messages")
    return _checked(tokens, context_length, param="messages")


def _chat_fragments(vocabulary: Vocabulary, template: ChatTemplate, messages: Sequence[Message]) -> list[Fragment]:
    markers = markers_of(vocabulary, template.source)
    sentinel = choose_sentinel(messages)
    text = template.render(
        protect(messages, markers, sentinel),
        bos_token=_text_of(vocabulary.bos_token, vocabulary),
        eos_token=_text_of(vocabulary.eos_token, vocabulary),
    )
    return markers.split(text, sentinel)


async def _encode(
    encoder: TextEncoder, fragments: Sequence[Fragment], context_length: int, *, param: str
) -> tuple[int, ...]:
    """Tokens of the fragments, which are not even looked for where the text is too long for the context."""
    least = _min_num_tokens(fragments, encoder.vocabulary)
    if least > context_length:
        raise _too_long(f"at least {least}", context_length, param)
    return _checked(await encoder.encode(fragments), context_length, param=param)


def _min_num_tokens(fragments: Sequence[Fragment], vocabulary: Vocabulary) -> int:
    plain = [fragment for fragment in fragments if isinstance(fragment, str)]
    num_bytes = sum(len(text.encode(errors="replace")) for text in plain)
    return len(fragments) - len(plain) + -(-num_bytes // vocabulary.longest_piece)


def _checked(tokens: tuple[int, ...], context_length: int, *, param: str) -> tuple[int, ...]:
    if len(tokens) > context_length:
        raise _too_long(str(len(tokens)), context_length, param)
    return tokens


def _too_long(num_tokens: str, context_length: int, param: str) -> ContextLengthExceeded:
    return ContextLengthExceeded(
        f"The prompt has {num_tokens} tokens; the model's context is {context_length}.", param=param
    )


def _with_bos(tokens: tuple[int, ...], vocabulary: Vocabulary) -> tuple[int, ...]:
    bos = vocabulary.bos_token
    if bos is None or not vocabulary.adds_bos or tokens[:1] == (bos,):
        return tokens
    return (bos, *tokens)


def _text_of(token_id: int | None, vocabulary: Vocabulary) -> str:
    return next((token.text for token in vocabulary.special_tokens if token.id == token_id), "")
