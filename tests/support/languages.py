"""The texts that a grammar allows, without a model: what is one of them, and how one goes on."""

import json
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Self

from llguidance import LLMatcher, LLTokenizer, TokenizerWrapper

from octavo.constraints import schema_part
from octavo.constraints.library import PARSER_LIMITS
from octavo.core.grammar import Grammar

END = 256
"""The token that ends a text; the others are bytes."""
_NO_LOG = 0


class Bytes:
    """A vocabulary of bytes, as the grammar library asks for one."""

    eos_token_id = END
    bos_token_id = None
    tokens = (*(bytes([byte]) for byte in range(END)), b"<end>")
    special_token_ids = (END,)

    def __call__(self, text: bytes | str) -> list[int]:
        return list(text if isinstance(text, bytes) else text.encode())


class Language:
    """A compiled grammar over bytes. Raises ValueError where it is none."""

    def __init__(self, grammar: Grammar) -> None:
        self._start = LLMatcher(_tokenizer(), grammar.definition, log_level=_NO_LOG, limits=PARSER_LIMITS)
        if self._start.is_error():
            raise ValueError(self._start.get_error().partition("<state>")[0].strip())

    @classmethod
    def of_schema(cls, schema: object) -> Self:
        """Of JSON under a client's schema. Raises UnsupportedGrammar."""
        return cls(Grammar(json.dumps({"grammars": [schema_part(schema)]})))

    def __contains__(self, text: bytes) -> bool:
        matcher = self._start.deep_copy()
        return matcher.try_consume_tokens(list(text)) == len(text) and matcher.is_accepting()

    def begin(self) -> "Writing":
        return Writing(self._start.deep_copy())


class Writing:
    """A text of a language, as far as it is written."""

    def __init__(self, matcher: LLMatcher) -> None:
        self._matcher = matcher
        self.text = bytearray()

    @property
    def is_whole(self) -> bool:
        """Whether nothing can follow."""
        return self._matcher.is_stopped()

    def next(self) -> Sequence[int]:
        """What may follow, in order: bytes, and END where the text may end."""
        allowed = _members(self._matcher.compute_bitmask())
        assert not self._matcher.is_error(), f"{self._matcher.get_error()[:300]} after {bytes(self.text[-200:])!r}"
        return allowed

    def write(self, byte: int) -> None:
        assert self._matcher.consume_token(byte)
        self.text.append(byte)


@cache
def _tokenizer() -> LLTokenizer:
    return LLTokenizer(TokenizerWrapper(Bytes()))


@lru_cache(10_000)
def _members(mask: bytes) -> tuple[int, ...]:
    bits = int.from_bytes(mask, "little")
    return tuple(token for token in range(END + 1) if bits >> token & 1)
