"""Prompts for the text that belongs between two others."""

from collections.abc import Sequence

from octavo.core.vocabulary import InfillTokens, Vocabulary
from octavo.errors import InfillUnsupported
from octavo.prompting.markers import SENTINELS, Fragment
from octavo.prompting.tokenization import TextEncoder, check_can_fit, check_fits, fragments_of, with_bos

_ANCHOR = SENTINELS[0]
"""No piece of a vocabulary joins it with what follows it."""


async def encode_infill(
    encoder: TextEncoder, prefix: str | tuple[int, ...], suffix: str, *, context_length: int
) -> tuple[int, ...]:
    """Tokens of a prefix, a suffix and the gap between them, each behind its own infill token, in that order
    (arXiv 2207.14255, "PSM"), with BOS in front where the model expects one.

    Special tokens are meant in both texts; a prefix of token ids is taken as it is.
    Raises InfillUnsupported and ContextLengthExceeded.
    """
    vocabulary = encoder.vocabulary
    infill = _infill_of(vocabulary)
    given = await fragments_of(prefix, vocabulary) if isinstance(prefix, str) else prefix
    before: list[Fragment] = [infill.prefix, *given, infill.suffix]
    after = await fragments_of(suffix, vocabulary)
    check_can_fit([*before, *after, infill.middle], vocabulary, context_length, param="prompt")
    tokens = (*await encoder.encode(before), *await _encode_inner(encoder, after), infill.middle)
    return check_fits(with_bos(tokens, vocabulary), context_length, param="prompt")


def _infill_of(vocabulary: Vocabulary) -> InfillTokens:
    if vocabulary.infill is None:
        raise InfillUnsupported("The model has no fill-in-the-middle tokens, so it takes no suffix.", param="suffix")
    return vocabulary.infill


async def _encode_inner(encoder: TextEncoder, fragments: Sequence[Fragment]) -> tuple[int, ...]:
    """Tokens of what does not begin a text, and so has no space put before it.

    As in Code Llama's own encoding: behind other characters no space is put, and their tokens are known.
    """
    if not encoder.vocabulary.adds_space_prefix or not fragments or not isinstance(fragments[0], str):
        return await encoder.encode(fragments)
    anchor = await encoder.encode([_ANCHOR])
    tokens = await encoder.encode([_ANCHOR + fragments[0], *fragments[1:]])
    return tokens[len(anchor) :]
