"""Prompts whose answers repeat much of them: the case for speculative decoding by looking back in the text."""

from __future__ import annotations

CODE = '''\
class Inventory:
    """Counts of the articles in a warehouse."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.counts: dict[str, int] = {}

    def total(self) -> int:
        """The number of all articles together."""
        return sum(self.counts.values())

    def add(self, name: str, amount: int) -> None:
        """Put articles into the warehouse. Raises ValueError where they do not fit."""
        if amount < 0:
            raise ValueError(f"amount must not be negative, got {amount}")
        if self.total() + amount > self.capacity:
            raise ValueError(f"there is no room for {amount} more of {name}")
        self.counts[name] = self.counts.get(name, 0) + amount

    def remove(self, name: str, amount: int) -> None:
        """Take articles out of the warehouse. Raises KeyError where there are not enough."""
        present = self.counts.get(name, 0)
        if amount > present:
            raise KeyError(f"only {present} of {name} are left")
        self.counts[name] = present - amount
        if self.counts[name] == 0:
            del self.counts[name]

    def report(self) -> str:
        """One line for each article, in alphabetical order."""
        lines = [f"{name}: {amount}" for name, amount in sorted(self.counts.items())]
        return "\\n".join(lines)
'''

ARTICLE = """\
The town of Lindau decided on Monday to keep its old harbour bridge. "The bridge is safe for another thirty years, \
and a new one would cost the town four times as much," said the mayor, Anna Keller. The council had asked two \
engineers for their opinion. "We found no crack in any of the main beams, only rust on the railings," wrote the first \
one in her report. The second one agreed, but asked for a new coat of paint: "Without paint the railings will not last \
for more than five winters." Shop owners near the harbour were relieved. "A closed bridge would have meant the end of \
my bakery, because most of my customers come from the other side," said Paul Brandt, who has sold bread there since \
1988. The work on the railings shall begin in April and end before the summer.
"""

NEW_NAMES = ("stock", "numbers", "amounts", "articles", "stored", "holdings", "goods", "quantities")


def repetitive_prompts() -> tuple[str, ...]:
    """Code edits and quotations in turn, each begun differently, so that they share no prefix."""
    pairs = [(code_edit(name), quotation(number)) for number, name in enumerate(NEW_NAMES, start=1)]
    return tuple(text for pair in pairs for text in pair)


def code_edit(name: str) -> str:
    return (
        f"# Rename counts to {name}. Repeat the whole file with this one name changed.\n\n"
        f"# File before:\n{CODE}\n# The whole file after, with {name} in place of counts:\n"
    )


def quotation(number: int) -> str:
    return (
        f"Article {number}:\n\n{ARTICLE}\nList every quotation of article {number} word for word, with who said it.\n\n"
        'Quotations:\n1. "The bridge is safe'
    )
