"""One value, as the different texts that stand for it."""

import json
import re
from collections.abc import Iterator, Mapping
from itertools import islice, permutations, product
from typing import Any

MAX_ORDERS = 60
_STRING_OR_NUMBER = re.compile(r'"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*')


def spellings(value: Any) -> Mapping[str, bytes]:
    """Texts in UTF-8, by what is special about each."""
    plain = json.dumps(value, ensure_ascii=False)
    texts = {
        "spaced": plain,
        "compact": json.dumps(value, ensure_ascii=False, separators=(",", ":")),
        "ASCII": json.dumps(value),
        "escaped": _STRING_OR_NUMBER.sub(_escaped, plain),
        "with a point": _STRING_OR_NUMBER.sub(_with_point, plain),
        "with an exponent": _STRING_OR_NUMBER.sub(_with_exponent, plain),
    }
    return {name: text.encode("utf-8", "surrogatepass") for name, text in texts.items()}


def orders(value: Any) -> Iterator[Any]:
    """The value with the names of its objects in every order, as far as there are few."""
    return islice(_orders(value), MAX_ORDERS)


def _orders(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        yield from map(list, product(*map(orders, value)))
    elif isinstance(value, dict):
        for names in permutations(value):
            yield from (
                dict(zip(names, each, strict=True)) for each in product(*(orders(value[name]) for name in names))
            )
    else:
        yield value


def escaped(text: str) -> str:
    """Every character of it as an escape of JSON's."""
    units = text.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def _escaped(found: re.Match[str]) -> str:
    text = found[0]
    return f'"{escaped(json.loads(text))}"' if text.startswith('"') else text


def _with_point(found: re.Match[str]) -> str:
    text = found[0]
    return text if re.search('["eE.]', text) else f"{text}.0"


def _with_exponent(found: re.Match[str]) -> str:
    text = found[0]
    return text if re.search('["eE]', text) else f"{text}e0"
