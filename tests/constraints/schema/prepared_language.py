"""The texts of a schema's grammar."""

import json
from typing import Any

from octavo.constraints.schema import prepared
from octavo.core.grammar import Grammar
from support.languages import Language


def language(schema: Any, *, must_be_object: bool = False) -> Language:
    text = prepared(schema, must_be_object=must_be_object)
    return Language(Grammar(json.dumps({"grammars": [{"lark_grammar": text}]})))


def allows(schema: Any, value: Any) -> bool:
    return json.dumps(value, ensure_ascii=False).encode() in language(schema)
