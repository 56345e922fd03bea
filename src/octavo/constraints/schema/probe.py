"""Whether a terminal matches anything: llguidance's own answer."""

import json
from functools import cache, lru_cache

from llguidance import LLMatcher, LLTokenizer, TokenizerWrapper


class _Bytes:
    """A vocabulary of the bytes and an end."""

    eos_token_id = 256
    bos_token_id = None

    def __init__(self) -> None:
        self.tokens = [*(bytes([code]) for code in range(256)), b"<|end|>"]
        self.special_token_ids = [256]

    def __call__(self, text: str | bytes) -> list[int]:
        return list(text.encode() if isinstance(text, str) else text)


@cache
def _tokenizer() -> LLTokenizer:
    return LLTokenizer(TokenizerWrapper(_Bytes()))


@lru_cache(1024)
def is_empty(terminal: str) -> bool:
    """Whether nothing begins what the expression, in Lark's notation, matches. False where it is too large to tell."""
    grammar = json.dumps({"grammars": [{"lark_grammar": f"start: A\nA: {terminal}"}]})
    matcher = LLMatcher(_tokenizer(), grammar, log_level=0)
    return not matcher.is_error() and not any(matcher.compute_bitmask()[:32])
