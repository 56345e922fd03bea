"""Texts to tokens and back, for who asks for nothing else, and for who wants to read what a model was given."""

from collections.abc import Sequence

from octavo.api.sampling import check_token_ids
from octavo.api.schemas.tokenize import TokenizeRequest
from octavo.core.request import GenerationRequest
from octavo.core.vocabulary import Vocabulary
from octavo.prompting import tokenize
from octavo.service import GenerationJob, ServedModel

IMAGE = "<image>"
"""Stands in a text for what a model sees."""


async def text_tokens(wire: TokenizeRequest, model: ServedModel) -> tuple[int, ...]:
    return await tokenize(model.tokenizer, wire.text, add_special_tokens=wire.add_special_tokens is not False)


def detokenize(tokens: Sequence[int], vocabulary: Vocabulary) -> str:
    """The text of the tokens; bytes that are no UTF-8 become U+FFFD. Raises InvalidRequest for unknown ids."""
    check_token_ids("tokens", tokens, vocabulary)
    return _text(tokens, vocabulary)


def prompt_texts(job: GenerationJob) -> tuple[str, ...]:
    """What the model is given, a text for each prompt: control tokens by their names, and IMAGE for each part of an
    image."""
    vocabulary = job.model.tokenizer.vocabulary
    return tuple(_prompt_text(choice.request, vocabulary) for choice in job.choices[:: job.best_of])


def _prompt_text(request: GenerationRequest, vocabulary: Vocabulary) -> str:
    parts = []
    place = 0
    for span in request.images:
        parts += [_text(request.prompt_tokens[place : span.start], vocabulary), IMAGE]
        place = span.end
    return "".join((*parts, _text(request.prompt_tokens[place:], vocabulary)))


def _text(tokens: Sequence[int], vocabulary: Vocabulary) -> str:
    special = {token.id: token.text.encode() for token in vocabulary.special_tokens}
    return b"".join(special.get(token, vocabulary.pieces[token]) for token in tokens).decode(errors="replace")
