"""Regular expressions of decimal numbers between bounds."""


def between(low: int, high: int, places: int) -> str:
    """Of numbers from low to high, both in units of 10**-places, with at most that many decimals.

    Nothing but -0 has two spellings beside zeros at the end of a fraction; -0 is not matched.
    """
    parts = []
    if low < 0:
        parts.append("-" + _positive(max(1, -high), -low, places))
    if high >= 0:
        parts.append(_positive(max(0, low), high, places))
    return f"(?:{'|'.join(parts)})"


def _positive(low: int, high: int, places: int) -> str:
    unit = 10**places
    (first, low_part), (last, high_part) = divmod(low, unit), divmod(high, unit)
    if first == last:
        return f"(?:{first}{_fraction(low_part, high_part, places)})"
    parts = [f"{first}{_fraction(low_part, unit - 1, places)}", f"{last}{_fraction(0, high_part, places)}"]
    if first + 1 < last:
        parts.append(f"{_whole(first + 1, last - 1)}{_fraction(0, unit - 1, places)}")
    return f"(?:{'|'.join(parts)})"


def _fraction(low: int, high: int, places: int) -> str:
    if places == 0 or high == 0:
        return ""
    body = _digits(f"{low:0{places}d}", f"{high:0{places}d}")
    return rf"(?:\.{body})?" if low == 0 else rf"\.{body}"


def _digits(low: str, high: str) -> str:
    """Of one digit or more that, with zeros behind them, are from low to high."""
    rest = len(low) - 1
    if not low.strip("0") and not high.strip("9"):
        return f"[0-9]{{1,{rest + 1}}}"
    first, last = int(low[0]), int(high[0])
    if first == last:
        return low[0] + _more(low[1:], high[1:])
    parts = [f"{first}{_more(low[1:], '9' * rest)}", f"{last}{_more('0' * rest, high[1:])}"]
    if first + 1 < last:
        parts.append(f"[{first + 1}-{last - 1}][0-9]{{0,{rest}}}")
    return f"(?:{'|'.join(parts)})"


def _more(low: str, high: str) -> str:
    if not low:
        return ""
    body = _digits(low, high)
    return body if low.strip("0") else f"(?:{body})?"


def _whole(low: int, high: int) -> str:
    """Of whole numbers that are not negative."""
    parts = []
    while low <= high:
        end = min(high, 10 ** len(str(low)) - 1)
        parts.append(_same_length(str(low), str(end)))
        low = end + 1
    return f"(?:{'|'.join(parts)})"


def _same_length(low: str, high: str) -> str:
    rest = len(low) - 1
    if low == high:
        return low
    if not low.strip("0") and not high.strip("9"):
        return f"[0-9]{{{len(low)}}}"
    first, last = int(low[0]), int(high[0])
    if not rest:
        return f"[{first}-{last}]"
    if first == last:
        return low[0] + _same_length(low[1:], high[1:])
    parts = [f"{first}{_same_length(low[1:], '9' * rest)}", f"{last}{_same_length('0' * rest, high[1:])}"]
    if first + 1 < last:
        parts.append(f"[{first + 1}-{last - 1}][0-9]{{{rest}}}")
    return f"(?:{'|'.join(parts)})"
