"""Grammars, followed token by token."""

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property

import numpy as np
from llguidance import LLExecutor, LLMatcher, LLTokenizer
from numpy.typing import NDArray

from octavo.constraints import compiling_thread
from octavo.constraints.library import PARSER_LIMITS, EncodeText, library_tokenizer
from octavo.constraints.wording import reason_of
from octavo.core.grammar import Grammar
from octavo.core.vocabulary import Vocabulary
from octavo.errors import UnsupportedGrammar

MAX_KEPT = 2**22
"""Characters of all grammars that are kept compiled; each takes some 64 bytes of memory then."""

Allowed = NDArray[np.bool_]
"""Marks the tokens that a grammar allows next, shape (vocabulary,)."""


class GrammarState:
    """How far an answer has come in its grammar. Used by one thread at a time."""

    def __init__(self, matcher: LLMatcher) -> None:
        self.matcher = matcher

    def copy(self) -> "GrammarState":
        return GrammarState(self.matcher.deep_copy())

    def accept(self, token: int) -> None:
        """A token was drawn. One that is not allowed is a failure."""
        self.matcher.consume_token(token)

    @property
    def is_finished(self) -> bool:
        """Whether nothing more may come; also after a failure."""
        return self.matcher.is_stopped()

    @property
    def failure(self) -> str:
        """Why the grammar can be followed no longer; empty where it can."""
        return self.matcher.get_error()


class GrammarCompiler:
    """Compiles grammars for a model's vocabulary in a thread of its own, and keeps what it compiled last."""

    def __init__(self, vocabulary: Vocabulary, encode: EncodeText) -> None:
        self._vocabulary = vocabulary
        self._encode = encode
        self._compiled: OrderedDict[Grammar, GrammarState] = OrderedDict()
        self._num_kept = 0

    def warm_up(self) -> None:
        """Read the vocabulary in the background: done for the first grammar, it would make every stream wait."""
        self._thread.submit(lambda: self._tokenizer)

    def close(self) -> None:
        """Wait for what is being compiled: it reads the tokenizer, which may be gone afterwards."""
        self._thread.shutdown()

    async def begin(self, grammar: Grammar) -> GrammarState:
        """The state before the first token. Raises UnsupportedGrammar where it cannot be followed with this model."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._begin, grammar)

    @cached_property
    def _thread(self) -> ThreadPoolExecutor:
        return compiling_thread("grammars")

    @cached_property
    def _tokenizer(self) -> LLTokenizer:
        return library_tokenizer(self._vocabulary, self._encode)

    def _begin(self, grammar: Grammar) -> GrammarState:
        if grammar in self._compiled:
            self._compiled.move_to_end(grammar)
        else:
            self._keep(grammar, self._compile(grammar))
        return self._compiled[grammar].copy()

    def _compile(self, grammar: Grammar) -> GrammarState:
        state = GrammarState(LLMatcher(self._tokenizer, grammar.definition, log_level=0, limits=PARSER_LIMITS))
        if state.failure:
            reason = reason_of(state.failure)
            raise UnsupportedGrammar(f"The grammar cannot be followed with this model: {reason}.")
        return state

    def _keep(self, grammar: Grammar, state: GrammarState) -> None:
        self._compiled[grammar] = state
        self._num_kept += len(grammar.definition)
        while self._num_kept > MAX_KEPT and len(self._compiled) > 1:
            oldest, _ = self._compiled.popitem(last=False)
            self._num_kept -= len(oldest.definition)


class MaskComputer:
    """Computes what grammars allow next beside the model, which needs no token's mask before its logits are there."""

    def __init__(self, vocabulary_size: int) -> None:
        self._size = vocabulary_size
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="masks")
        self._executor: LLExecutor | None = None

    def begin(self, states: Mapping[str, GrammarState]) -> "Future[Mapping[str, Allowed]]":
        """By the ids of their sequences. The states must not be touched before the result is there."""
        if not states:
            done: Future[Mapping[str, Allowed]] = Future()
            done.set_result({})
            return done
        return self._thread.submit(self._compute, states)

    def close(self) -> None:
        self._thread.shutdown()

    def _compute(self, states: Mapping[str, GrammarState]) -> Mapping[str, Allowed]:
        if self._executor is None:
            self._executor = LLExecutor()
        words = np.zeros((len(states), (self._size + 31) // 32), np.int32)
        matchers = [(state.matcher, row) for row, state in enumerate(states.values())]
        self._executor.unsafe_compute_mask_ptr(
            matchers, words.ctypes.data, words.shape[1] * words.itemsize, len(states)
        )
        allowed = np.unpackbits(words.view(np.uint8), axis=1, count=self._size, bitorder="little").view(np.bool_)
        return dict(zip(states, allowed, strict=True))
