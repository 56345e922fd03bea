"""What the tokens of a choice are in its text, where that is not what the vocabulary says."""

from collections.abc import Iterator, Sequence

from octavo.core.request import Choice
from octavo.core.vocabulary import Vocabulary
from octavo.streaming.tool_formats import BY_NAME


def marker_parts(choice: Choice, vocabulary: Vocabulary) -> dict[int, str]:
    """The control tokens whose names are, or are part of, the choice's channel markers."""
    return _control_tokens_in([marker for marker, _ in choice.channels.markers], choice, vocabulary)


def own_pieces(choice: Choice, vocabulary: Vocabulary) -> dict[int, bytes]:
    """The bytes of control tokens that mark channels or calls, and otherwise are silent, and of stop tokens that are to
    be left out."""
    call_texts = BY_NAME[choice.tools.format].texts if choice.tools.tools else ()
    spoken = marker_parts(choice, vocabulary) | _control_tokens_in(call_texts, choice, vocabulary)
    silent = () if choice.includes_stop else choice.request.stop_tokens
    return {token: name.encode() for token, name in spoken.items()} | dict.fromkeys(silent, b"")


def _control_tokens_in(texts: Sequence[str], choice: Choice, vocabulary: Vocabulary) -> dict[int, str]:
    """The token that ends a generation is never one, for it has an entry of its own."""
    ends = frozenset[int]() if choice.request.ignore_eos else vocabulary.eog_tokens
    return {
        token: name
        for token, name in (vocabulary.control_texts.items() if texts else ())
        if name and token not in ends and any(name in text for text in texts)
    }


def prompt_pieces(choice: Choice, vocabulary: Vocabulary) -> Iterator[tuple[int, bytes]]:
    """The prompt's tokens with their bytes in its text, where control tokens have their names and images are nothing.

    The token and the space that a tokenizer puts before a text are no part of it, nor is the token that stands for an
    empty one.
    """
    names, tokens = vocabulary.control_texts, choice.request.prompt_tokens
    has_space = vocabulary.adds_space_prefix
    silent = vocabulary.bos_token if vocabulary.adds_bos or len(tokens) == 1 else None
    for place, token in enumerate(tokens):
        if token < 0:  # part of an image, which has no text
            continue
        piece = vocabulary.pieces[token]
        if has_space and piece:
            piece, has_space = piece.removeprefix(b" "), False
        is_silent = place == 0 and token == silent
        yield token, piece if piece or is_silent else names.get(token, "").encode()
