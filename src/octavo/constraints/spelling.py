"""Texts that a model writes, in the notation of a Lark grammar."""

import json
import re

from octavo.core.vocabulary import Vocabulary

ANY_TEXT = "/(?s:.*)/"
"""But for control tokens, which are no text to the grammar library."""


def spelled(text: str, vocabulary: Vocabulary) -> str:
    """The terms that stand for exactly this text, where the names of control tokens mean these tokens."""
    return " ".join(_terms(text, vocabulary))


def spelled_until(end: str, vocabulary: Vocabulary, *, rule: str) -> list[str]:
    """Rules of which the one named `rule` stands for any text without control tokens, up to the first `end`, and that.

    A term for any text takes all that comes, so it must end with a control token or a suffix of its own.
    """
    first, *rest = _terms(end, vocabulary)
    if not first.startswith('"'):
        return [f"{rule}: {ANY_TEXT} {' '.join([first, *rest])}"]
    return [f"{rule}: {rule}_text {' '.join(rest)}", f"{rule}_text[suffix={first}]: {ANY_TEXT}"]


def _terms(text: str, vocabulary: Vocabulary) -> list[str]:
    ids = {name: token for token, name in sorted(vocabulary.control_texts.items(), reverse=True) if name}
    names = "|".join(map(re.escape, sorted(ids, key=len, reverse=True))) or "(?!)"
    parts = re.split(f"({names})", text)
    return [f"<[{ids[part]}]>" if part in ids else json.dumps(part) for part in parts if part]
