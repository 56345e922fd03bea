"""How large a result will be, told from its operands: upper bounds (up to the escapes of a repr), so that it can be
refused before it is made."""

import re

from octavo.prompting.guard import MAX_INT_BITS, RenderGuard

INTERCEPTED_OPERATORS = frozenset({"+", "*", "**", "%"})
_TOO_LARGE = 2**63
_DIGITS = re.compile(r"\d+")


def operation_size(guard: RenderGuard, operator: str, left: object, right: object) -> int:
    """Characters, items or bits of `left operator right`; 0 where nothing can grow."""
    match left, operator, right:
        case (int(), _, int()):
            return _integer_size(operator, left, right)
        case (str() | list() | tuple(), "+", str() | list() | tuple()):
            return _size(guard, left) + _size(guard, right)
        case (str() | list() | tuple(), "*", int()):
            return _size(guard, left) * max(right, 0)
        case (int(), "*", str() | list() | tuple()):
            return _size(guard, right) * max(left, 0)
        case (str(), "%", _):
            return printf_size(guard, left, right)
    return 0


def printf_size(guard: RenderGuard, template: str, values: object) -> int:
    """Every number in the template may be a width; every `*` may take its width from the values."""
    widest = max((abs(item) for item in _flat(values) if isinstance(item, int)), default=0)
    paddings = widths(template) + template.count("*") * widest
    return len(template) + paddings + template.count("%") * guard.weigh(values)


def replace_size(text: str, old: str, new: str) -> int:
    return len(text) + text.count(old) * len(new)


def widths(text: str) -> int:
    """The sum of all numbers in a format."""
    return sum(int(digits) if len(digits) < 10 else _TOO_LARGE for digits in _DIGITS.findall(text))


def _size(guard: RenderGuard, value: str | list[object] | tuple[object, ...]) -> int:
    # A tuple can be the key of a dict, which hashes all that is in it, however deep.
    return guard.weigh(value) if isinstance(value, tuple) else len(value)


def _integer_size(operator: str, left: int, right: int) -> int:
    match operator:
        case "*":
            bits = left.bit_length() + right.bit_length()
        case "**":
            bits = left.bit_length() * max(right, 1)
        case _:
            bits = 0
    return _TOO_LARGE if bits > MAX_INT_BITS else 0


def _flat(values: object) -> tuple[object, ...]:
    return values if isinstance(values, tuple) else (values,)
