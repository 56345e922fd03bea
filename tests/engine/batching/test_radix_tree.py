"""A tree must find what a look at every sequence would find."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from octavo.engine.batching.radix_tree import RadixTree, Tokens, num_common

few_tokens = st.lists(st.integers(0, 2), max_size=8).map(tuple)


def array(tokens: tuple[int, ...]) -> Tokens:
    return np.array(tokens, np.int32)


@given(st.lists(st.tuples(few_tokens, st.booleans())), few_tokens)
def test_all_that_was_inserted_and_not_removed_is_found_with_the_longest_beginnings_first(
    acts: list[tuple[tuple[int, ...], bool]], sought: tuple[int, ...]
) -> None:
    tree, held = RadixTree[int](), dict[int, tuple[int, ...]]()
    for value, (tokens, removes) in enumerate(acts):
        if removes and held:
            oldest = next(iter(held))
            tree.remove(array(held.pop(oldest)), oldest)
        tree.insert(array(tokens), value)
        held[value] = tokens
    found = list(tree.matches(array(sought)))
    assert sorted(value for _, value in found) == sorted(held)
    assert all(common == num_common(array(held[value]), array(sought)) for common, value in found)
    assert [common for common, _ in found] == sorted((common for common, _ in found), reverse=True)


@given(st.lists(few_tokens))
def test_a_tree_from_which_all_was_removed_holds_nothing(sequences: list[tuple[int, ...]]) -> None:
    tree = RadixTree[int]()
    for value, tokens in enumerate(sequences):
        tree.insert(array(tokens), value)
    for value, tokens in enumerate(sequences):
        tree.remove(array(tokens), value)
    assert not list(tree.matches(array((0, 1, 2))))
    assert not tree._root.children, "no empty nodes stay behind"


def test_a_long_sequence_is_no_deeper_than_its_forks() -> None:
    tree = RadixTree[str]()
    long = np.arange(100_000, dtype=np.int32)
    tree.insert(long, "long")
    tree.insert(long[:50_000], "half")
    assert list(tree.matches(np.append(long[:60_000], np.int32(7)))) == [(60_000, "long"), (50_000, "half")]
