"""Grammars, followed token by token."""

import threading
from collections import OrderedDict
from collections.abc import Sequence as Sequence_
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
from llguidance import LLExecutor, LLMatcher, LLTokenizer
from numpy.typing import NDArray

from octavo.constraints.library import EncodeText, library_tokenizer
from octavo.core.grammar import Grammar
from octavo.core.vocabulary import Vocabulary
from octavo.errors import EngineError

MAX_CACHED = 64
"""Compiled grammars that are kept. The largest that limits allow take some megabytes each."""

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
    """Compiles grammars for a model's vocabulary, and keeps what it compiled last. Any thread may call it."""

    def __init__(self, vocabulary: Vocabulary, encode: EncodeText) -> None:
        self._vocabulary = vocabulary
        self._encode = encode
        self._lock = threading.Lock()
        self._tokenizer: LLTokenizer | None = None
        self._compiled: OrderedDict[Grammar, GrammarState] = OrderedDict()

    def begin(self, grammar: Grammar) -> GrammarState:
        """The state before the first token. Raises EngineError where the grammar cannot be compiled."""
        with self._lock:
            known = self._compiled.get(grammar)
            if known is not None:
                self._compiled.move_to_end(grammar)
                return known.copy()
        compiled = self._compile(grammar)
        with self._lock:
            self._compiled[grammar] = compiled
            if len(self._compiled) > MAX_CACHED:
                self._compiled.popitem(last=False)
            return compiled.copy()

    def _compile(self, grammar: Grammar) -> GrammarState:
        state = GrammarState(LLMatcher(self._library_tokenizer(), grammar.definition, log_level=0))
        if state.failure:
            raise EngineError(f"The grammar cannot be followed with this model: {_first_line(state.failure)}")
        return state

    def _library_tokenizer(self) -> LLTokenizer:
        with self._lock:
            if self._tokenizer is None:
                self._tokenizer = library_tokenizer(self._vocabulary, self._encode)
            return self._tokenizer


class MaskComputer:
    """Computes what grammars allow next beside the model, which needs no token's mask before its logits are there."""

    def __init__(self, vocabulary_size: int) -> None:
        self._size = vocabulary_size
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="masks")
        self._executor: LLExecutor | None = None

    def begin(self, states: Sequence_[GrammarState]) -> "Future[Sequence_[Allowed]]":
        """The states must not be touched before the result is there, one for each, in order."""
        if not states:
            done: Future[Sequence_[Allowed]] = Future()
            done.set_result(())
            return done
        return self._thread.submit(self._compute, states)

    def close(self) -> None:
        self._thread.shutdown()

    def _compute(self, states: Sequence_[GrammarState]) -> Sequence_[Allowed]:
        if self._executor is None:
            self._executor = LLExecutor()
        words = np.zeros((len(states), (self._size + 31) // 32), np.int32)
        matchers = [(state.matcher, row) for row, state in enumerate(states)]
        self._executor.unsafe_compute_mask_ptr(
            matchers, words.ctypes.data, words.shape[1] * words.itemsize, len(states)
        )
        return list(np.unpackbits(words.view(np.uint8), axis=1, count=self._size, bitorder="little").view(np.bool_))


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0][:200]
