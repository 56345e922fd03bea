"""Token sequences by their beginnings."""

from collections.abc import Iterator
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

Tokens = NDArray[np.int32]
"""Shape (n,)."""

T = TypeVar("T")


class RadixTree(Generic[T]):
    """Values by token sequences, any number for each; finds those whose sequences begin like another one."""

    def __init__(self) -> None:
        self._root: _Node[T] = _Node(np.empty(0, np.int32))

    @property
    def is_empty(self) -> bool:
        return not (self._root.values or self._root.children)

    def insert(self, tokens: Tokens, value: T) -> None:
        node, rest = self._root, tokens
        while len(rest):
            child = node.child_for(rest) or node.add(rest)
            common = num_common(child.label, rest)
            if common < len(child.label):
                child.split(common)
            node, rest = child, rest[common:]
        node.values.append(value)

    def remove(self, tokens: Tokens, value: T) -> None:
        """Take out a value that was inserted with these tokens."""
        path, rest = [self._root], tokens
        while len(rest):
            child = path[-1].children[int(rest[0])]
            path.append(child)
            rest = rest[len(child.label) :]
        path[-1].values.remove(value)
        for parent, node in zip(path[-2::-1], path[:0:-1], strict=True):
            parent.prune(node)

    def matches(self, tokens: Tokens) -> Iterator[tuple[int, T]]:
        """All values, each with how many tokens its sequence has in common with these; the longest come first."""
        path, depth = [(self._root, 0)], 0
        while (child := path[-1][0].child_for(tokens[depth:])) is not None:
            common = num_common(child.label, tokens[depth:])
            depth += common
            path.append((child, depth))
            if common < len(child.label):
                break
        seen = None
        for node, depth in reversed(path):
            for value in node.all_values(besides=seen):
                yield depth, value
            seen = node


class _Node(Generic[T]):
    """label: the tokens that lead here from the parent."""

    __slots__ = ("children", "label", "values")

    def __init__(self, label: Tokens) -> None:
        self.label = label
        self.children: dict[int, _Node[T]] = {}
        self.values: list[T] = []

    def child_for(self, tokens: Tokens) -> "_Node[T] | None":
        return self.children.get(int(tokens[0])) if len(tokens) else None

    def add(self, label: Tokens) -> "_Node[T]":
        node = self.children[int(label[0])] = _Node(label)
        return node

    def split(self, length: int) -> None:
        """Keep the first `length` tokens of the label; the rest, and all that hangs there, goes to a new child."""
        lower: _Node[T] = _Node(self.label[length:])
        lower.children, lower.values = self.children, self.values
        self.label, self.values = self.label[:length], []
        self.children = {int(lower.label[0]): lower}

    def prune(self, child: "_Node[T]") -> None:
        """Drop a child that holds nothing any more, or join it with its only child."""
        if child.values or len(child.children) > 1:
            return
        if not child.children:
            del self.children[int(child.label[0])]
            return
        [lower] = child.children.values()
        child.label = np.concatenate([child.label, lower.label])
        child.children, child.values = lower.children, lower.values

    def all_values(self, besides: "_Node[T] | None" = None) -> Iterator[T]:
        """Those here and below, but for one branch."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield from node.values
            waiting.extend(child for child in node.children.values() if child is not besides)


def num_common(a: Tokens, b: Tokens) -> int:
    """How many tokens two sequences begin with alike."""
    length = min(len(a), len(b))
    differs = a[:length] != b[:length]
    return int(differs.argmax()) if differs.any() else length
