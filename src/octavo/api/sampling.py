"""How tokens are drawn, and which end an answer, from a wire request."""

from collections.abc import Sequence
from dataclasses import replace

from octavo.api.schemas.generation import GenerationFields
from octavo.api.shown import shown
from octavo.core.sampling import BAN_BIAS, FORCE_BIAS, SamplingParams
from octavo.core.vocabulary import Vocabulary
from octavo.errors import InvalidRequest

_NUMBERS = ("temperature", "top_p", "min_p", "frequency_penalty", "presence_penalty", "repetition_penalty")
"""Settings with the same name and meaning on the wire and inside."""


def sampling_params(wire: GenerationFields, vocabulary: Vocabulary) -> SamplingParams:
    """Without a seed, which belongs to each sample. Raises InvalidRequest."""
    defaults = SamplingParams(top_k=max(wire.top_k or 0, 0), logit_bias=_logit_bias(wire, vocabulary))
    given = {name: getattr(wire, name) for name in _NUMBERS}
    return replace(defaults, **{name: value for name, value in given.items() if value is not None})


def stop_tokens(wire: GenerationFields, vocabulary: Vocabulary) -> frozenset[int]:
    """Raises InvalidRequest for ids outside the vocabulary."""
    tokens = wire.stop_token_ids or ()
    check_token_ids("stop_token_ids", tokens, vocabulary)
    return frozenset(tokens)


def check_token_ids(field: str, tokens: Sequence[int], vocabulary: Vocabulary) -> None:
    """Raises InvalidRequest for the first id outside the vocabulary."""
    if tokens and not (min(tokens) >= 0 and max(tokens) < vocabulary.size):
        wrong = next(token for token in tokens if not 0 <= token < vocabulary.size)
        message = f"{field}: Input should be token ids from 0 to {vocabulary.size - 1} (given {shown(wrong)})."
        raise InvalidRequest(message, param=field)


def _logit_bias(wire: GenerationFields, vocabulary: Vocabulary) -> tuple[tuple[int, float], ...]:
    biases = wire.logit_bias or ()
    check_token_ids("logit_bias", [token for token, _ in biases], vocabulary)
    _check_possible(biases, frozenset(), vocabulary, "that is not banned")
    if wire.min_tokens:
        ending = stop_tokens(wire, vocabulary) | (frozenset() if wire.ignore_eos else vocabulary.eog_tokens)
        _check_possible(biases, ending, vocabulary, "that does not end the answer, because of min_tokens")
    return biases


def _check_possible(
    biases: Sequence[tuple[int, float]], barred: frozenset[int], vocabulary: Vocabulary, which: str
) -> None:
    """Raises InvalidRequest where biases and barred tokens leave nothing to draw."""
    forced = {token for token, bias in biases if bias >= FORCE_BIAS}
    banned = {token for token, bias in biases if bias <= BAN_BIAS}
    num_possible = len(forced - barred) if forced else vocabulary.size - len(banned | barred)
    if num_possible == 0:
        raise InvalidRequest(f"logit_bias: Input should leave at least 1 token {which}.", param="logit_bias")
