"""What the tokens of a choice are in its text, where that is not what the vocabulary says."""

from collections.abc import Iterator, Mapping

from octavo.core.request import Choice
from octavo.core.vocabulary import Vocabulary


def marker_parts(choice: Choice, vocabulary: Vocabulary) -> dict[int, str]:
    """The control tokens whose names are, or are part of, the choice's channel markers.

    The token that ends a generation is never one, for it has an entry of its own.
    """
    markers = [marker for marker, _ in choice.channels.markers]
    ends = frozenset[int]() if choice.request.ignore_eos else vocabulary.eog_tokens
    return {
        token: name
        for token, name in (vocabulary.control_texts.items() if markers else ())
        if name and token not in ends and any(name in marker for marker in markers)
    }


def own_pieces(choice: Choice, marker_parts: Mapping[int, str]) -> dict[int, bytes]:
    """The bytes of marker parts, which otherwise are silent, and of stop tokens that are to be left out."""
    spoken = {token: name.encode() for token, name in marker_parts.items()}
    silent = () if choice.includes_stop else choice.request.stop_tokens
    return spoken | dict.fromkeys(silent, b"")


def prompt_pieces(choice: Choice, vocabulary: Vocabulary) -> Iterator[tuple[int, bytes]]:
    """The prompt's tokens with their bytes in its text, where control tokens have their names.

    The token and the space that a tokenizer puts before a text are no part of it, nor is the token that stands for an
    empty one.
    """
    names, tokens = vocabulary.control_texts, choice.request.prompt_tokens
    has_space = vocabulary.adds_space_prefix
    silent = vocabulary.bos_token if vocabulary.adds_bos or len(tokens) == 1 else None
    for place, token in enumerate(tokens):
        piece = vocabulary.pieces[token]
        if has_space and piece:
            piece, has_space = piece.removeprefix(b" "), False
        is_silent = place == 0 and token == silent
        yield token, piece if piece or is_silent else names.get(token, "").encode()
