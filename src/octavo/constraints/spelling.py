"""Texts that a model writes, as terms of a Lark grammar."""

import json
import re

from octavo.core.vocabulary import Vocabulary


def spelled(text: str, vocabulary: Vocabulary) -> str:
    """The terms that stand for exactly this text, where the names of control tokens mean these tokens."""
    ids = {name: token for token, name in sorted(vocabulary.control_texts.items(), reverse=True) if name}
    if not ids:
        return _quoted(text)
    names = re.compile("(" + "|".join(map(re.escape, sorted(ids, key=len, reverse=True))) + ")")
    parts = names.split(text)
    return " ".join(f"<[{ids[part]}]>" if part in ids else _quoted(part) for part in parts if part)


def _quoted(text: str) -> str:
    return json.dumps(text) if text else ""
