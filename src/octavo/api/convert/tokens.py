"""Texts to tokens and back, for who asks for nothing else."""

from collections.abc import Sequence

from octavo.api.sampling import check_token_ids
from octavo.api.schemas.tokenize import TokenizeRequest
from octavo.core.vocabulary import Vocabulary
from octavo.prompting import tokenize
from octavo.service import ServedModel


async def text_tokens(wire: TokenizeRequest, model: ServedModel) -> tuple[int, ...]:
    return await tokenize(model.tokenizer, wire.text, add_special_tokens=wire.add_special_tokens is not False)


def detokenize(tokens: Sequence[int], vocabulary: Vocabulary) -> str:
    """The text of the tokens; bytes that are no UTF-8 become U+FFFD. Raises InvalidRequest for unknown ids."""
    check_token_ids("tokens", tokens, vocabulary)
    special = {token.id: token.text.encode() for token in vocabulary.special_tokens}
    return b"".join(special.get(token, vocabulary.pieces[token]) for token in tokens).decode(errors="replace")
