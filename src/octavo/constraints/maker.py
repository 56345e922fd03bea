"""Where grammars are made."""

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial

from octavo.constraints.budget import time_budget
from octavo.constraints.check import check_grammar
from octavo.core.grammar import ANY_TEXT, Grammar
from octavo.core.vocabulary import Vocabulary, VocabularyKey
from octavo.errors import Overloaded, UnsupportedGrammar

MAX_WAITING = 256
MAX_KEPT = 2**23
"""Characters of all grammars that are kept."""
STACK = 2**28
"""The library follows chains of rules as deep as they are; only what is used takes memory."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a grammar is made of what a client gave in a field of its request.

    key: equal for what makes equal grammars of one vocabulary. make: raises UnsupportedGrammar.
    """

    field: str
    key: Hashable
    make: Callable[[], Grammar]


class GrammarMaker:
    """Makes and checks grammars in a thread of its own, one after the other, and keeps the last ones.

    max_time: seconds of computing that one may take.
    """

    def __init__(self, max_time: float) -> None:
        self._max_time = max_time
        self._made: OrderedDict[_Key, Grammar] = OrderedDict()
        self._num_kept = 0
        self._num_waiting = 0

    async def made(self, recipe: Recipe | None, vocabulary: Vocabulary) -> Grammar:
        """What the recipe makes, or any text without one.

        Raises UnsupportedGrammar with the recipe's field, and Overloaded where too many wait.
        """
        if recipe is None:
            return ANY_TEXT
        key = VocabularyKey(vocabulary), recipe.key
        if (known := self._made.get(key)) is not None:
            return known
        if self._num_waiting >= MAX_WAITING:
            raise Overloaded("Too many grammars wait to be compiled; try again soon.")
        self._num_waiting += 1
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._thread, partial(self._make, key, recipe, vocabulary))
        finally:
            self._num_waiting -= 1

    @cached_property
    def _thread(self) -> ThreadPoolExecutor:
        return compiling_thread("grammar-maker")

    def _make(self, key: "_Key", recipe: Recipe, vocabulary: Vocabulary) -> Grammar:
        known = self._made.get(key)  # if it was made for another request while this one waited
        if known is not None:
            return known
        try:
            with time_budget(self._max_time):
                grammar = recipe.make()
                check_grammar(grammar, vocabulary)
        except UnsupportedGrammar as error:
            raise UnsupportedGrammar(f"{recipe.field}: {error.message}", param=recipe.field) from error
        self._keep(key, grammar)
        return grammar

    def _keep(self, key: "_Key", grammar: Grammar) -> None:
        self._made[key] = grammar
        self._num_kept += len(grammar.definition)
        while self._num_kept > MAX_KEPT and len(self._made) > 1:
            _, oldest = self._made.popitem(last=False)
            self._num_kept -= len(oldest.definition)


_Key = tuple[VocabularyKey, Hashable]


def compiling_thread(name: str) -> ThreadPoolExecutor:
    """A single thread with a stack for the deepest grammars."""
    usual = threading.stack_size(STACK)
    try:
        executor = ThreadPoolExecutor(1, thread_name_prefix=name)
        executor.submit(int).result()  # the thread begins with its first task
        return executor
    finally:
        threading.stack_size(usual)
