"""Models whose logits are given, for the real scheduler and sampler: what must come out is then known exactly."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octavo.core.vocabulary import InfillTokens, SpecialToken, Vocabulary
from octavo.engine.base import Fragment
from octavo.engine.runners.scripted import NextLogits

CONTROL_TEXTS = ("<|end|>", "<|start|>", "<|im_start|>", "<|im_end|>", "<|fim_pre|>", "<|fim_suf|>", "<|fim_mid|>")
END, START, TURN_START, TURN_END, INFILL_PREFIX, INFILL_SUFFIX, INFILL_MIDDLE = range(256, 263)
FIRST_PIECE = 263
CUE = ord(":")
"""A saying model speaks after the last token of this id; its own pieces may have a colon in them."""
NOISE_WINDOW = 8
"""Last tokens on which the noise depends."""

PLAIN_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant:{% endif %}"
)
THINKING_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n"
    "{% if message.reasoning_content %}<think>\n{{ message.reasoning_content }}\n</think>\n\n{% endif %}"
    "{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant:{% endif %}"
)
"""As those of models that open and close their thinking themselves."""

Logits = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class GivenModel:
    """vocabulary: the 256 bytes, control tokens, then pieces. template: of conversations."""

    vocabulary: Vocabulary
    next_logits: NextLogits
    template: str = PLAIN_TEMPLATE
    context_length: int = 512
    num_slots: int = 8

    def logprobs(self, tokens: Sequence[int]) -> NDArray[np.float64]:
        """What the model thinks of each token that could follow these: the reference for every log-probability."""
        logits = self.next_logits(tuple(tokens)).astype(np.float64)
        shifted = logits - logits.max()
        return np.asarray(shifted - np.log(np.exp(shifted).sum()))

    def id_of(self, text: str) -> int:
        """The token that is this text."""
        return self.vocabulary.pieces.index(text.encode(), 0 if len(text.encode()) == 1 else FIRST_PIECE)


@dataclass(frozen=True, slots=True)
class GivenTokenizer:
    """A token for each byte of plain text; pieces are never made by encoding."""

    vocabulary: Vocabulary

    async def encode(self, fragments: Sequence[Fragment]) -> tuple[int, ...]:
        parts = ((part,) if isinstance(part, int) else self.encode_text(part) for part in fragments)
        return tuple(chain.from_iterable(parts))

    def encode_text(self, text: str) -> Sequence[int]:
        return tuple(text.encode())


def vocabulary_of(pieces: Sequence[bytes], *, infill: InfillTokens | None = None) -> Vocabulary:
    special = tuple(SpecialToken(END + i, text, is_control=True) for i, text in enumerate(CONTROL_TEXTS))
    single_bytes = tuple(bytes([value]) for value in range(256))
    return Vocabulary(
        pieces=(*single_bytes, *(b"" for _ in special), *pieces),
        special_tokens=special,
        eog_tokens=frozenset({END}),
        bos_token=START,
        adds_bos=False,
        eos_token=END,
        infill=infill,
    )


def saying(*pieces: str | bytes, **fields: Any) -> GivenModel:
    """A model that says these pieces, each of them one token, and then ends. fields: of GivenModel.

    It is not certain of them: every token has some probability. Where it cannot use a piece, it says the same text in
    smaller ones, down to bytes. A prompt without a colon makes it babble.
    """
    script = [piece.encode() if isinstance(piece, str) else piece for piece in pieces]
    own = sorted({piece for piece in script if len(piece) > 1})
    vocabulary = vocabulary_of(own)
    return replace(GivenModel(vocabulary, _Speaker(script, vocabulary).next_logits), **fields)


def babbling(seed: int = 0, **fields: Any) -> GivenModel:
    """A model without any sense, of printable characters, that does not end: another text after each prompt."""
    vocabulary = vocabulary_of(())
    printable = np.full(vocabulary.size, -20.0, np.float32)
    printable[32:127] = 0.0
    return replace(GivenModel(vocabulary, lambda tokens: _noise(tokens, seed, 2.0, printable)), **fields)


def constant(logits: dict[str, float], *, others: float = -30.0) -> GivenModel:
    """A model that thinks the same of these characters, and of all others, whatever came before."""
    vocabulary = vocabulary_of(())
    row = np.full(vocabulary.size, others, np.float32)
    for character, value in logits.items():
        row[ord(character)] = value
    return GivenModel(vocabulary, lambda tokens: row)


def filling(text: str) -> GivenModel:
    """A model with tokens for filling gaps, that says `text` and ends."""
    infill = InfillTokens(prefix=INFILL_PREFIX, suffix=INFILL_SUFFIX, middle=INFILL_MIDDLE)
    vocabulary = vocabulary_of((text.encode(),), infill=infill)
    row = np.zeros(vocabulary.size, np.float32)

    def next_logits(tokens: tuple[int, ...]) -> Logits:
        logits = row.copy()
        logits[FIRST_PIECE if tokens[-1] != FIRST_PIECE else END] = 10.0
        return logits

    return GivenModel(vocabulary, next_logits)


def _noise(tokens: Sequence[int], seed: int, scale: float, base: Logits) -> Logits:
    # Most tests ask for few rows; a hash of all tokens would take long for those that score a long prompt.
    generator = np.random.default_rng([seed, len(tokens), *tokens[-NOISE_WINDOW:]])
    return base + generator.normal(0, scale, len(base)).astype(np.float32)


class _Speaker:
    def __init__(self, script: Sequence[bytes], vocabulary: Vocabulary) -> None:
        self._text = b"".join(script)
        self._pieces = vocabulary.pieces
        self._intended = dict(zip(accumulate(map(len, script), initial=0), script, strict=False))

    def next_logits(self, tokens: tuple[int, ...]) -> Logits:
        base = np.zeros(len(self._pieces), np.float32)
        said = self._said(tokens)
        if said is not None and self._text.startswith(said):
            base += self._wishes(said)
        return _noise(tokens, 0, 1.0, base)

    def _said(self, tokens: tuple[int, ...]) -> bytes | None:
        """Since the last cue or end; None where there is none."""
        place = next((i for i in reversed(range(len(tokens))) if tokens[i] in (CUE, END)), None)
        return None if place is None else b"".join(self._pieces[token] for token in tokens[place + 1 :])

    def _wishes(self, said: bytes) -> Logits:
        wishes = np.zeros(len(self._pieces), np.float32)
        rest = self._text[len(said) :]
        if not rest:
            wishes[END] = 16.0
        for token, piece in enumerate(self._pieces):
            if piece and rest.startswith(piece):
                wishes[token] = 16.0 if piece == self._intended.get(len(said)) else 8.0
        return wishes
