"""What an answer is allowed to be."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Grammar:
    """The texts that a sequence may become; every token that leads to no such text is excluded.

    definition: grammars in the JSON notation of llguidance, `{"grammars": [{"lark_grammar": …}, {"json_schema": …}]}`,
        of which the first one is the whole; empty where any text will do.
    """

    definition: str = ""

    @property
    def is_free(self) -> bool:
        return not self.definition


ANY_TEXT = Grammar()
