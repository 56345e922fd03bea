"""Whether a text is JSON that is valid under a schema, by `jsonschema`, with formats that count."""

import json
import re
from datetime import date
from math import isfinite
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema_specifications import REGISTRY

_TIME = re.compile(r"([01]\d|2[0-3]):([0-5]\d):([0-5]\d|60)(\.\d+)?([zZ]|([+-])([01]\d|2[0-3]):([0-5]\d))", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_DURATION = re.compile(
    r"P(?!$)(\d+W|(?=\d|T\d)(\d+Y(\d+M(\d+D)?)?|\d+M(\d+D)?|\d+D)?(T(\d+H(\d+M(\d+S)?)?|\d+M(\d+S)?|\d+S))?)", re.ASCII
)
_LABEL = r"(?!..--)[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_HOSTNAME = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_ATOM = r"[\w!#$%&'*+/=?^`{|}~-]+"
_MAILBOX = re.compile(rf'({_ATOM}(\.{_ATOM})*|"([^"\\]|\\.)*")@(\[[^\[\]\\]+\]|[^\[\]@]+)', re.ASCII)
_URI = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:([\w:/?#\[\]@!$&'()*+,;=.~-]|%[0-9a-fA-F]{2})*", re.ASCII)

FORMATS = FormatChecker(("ipv4", "ipv6", "uuid", "regex"))
"""RFC 3339 for dates, times and durations; RFC 1123 for host names; RFC 5321 for addresses; RFC 3986's characters."""


@FORMATS.checks("date")
def is_date(value: object) -> bool:
    if not isinstance(value, str):
        return True
    try:
        # RFC 3339 has the year 0, a leap year, and Python has not.
        return bool(_DATE.fullmatch(value) and date.fromisoformat(re.sub("^0000", "2000", value)))
    except ValueError:
        return False


@FORMATS.checks("time")
def is_time(value: object) -> bool:
    """With a leap second at the end of a day in UTC alone."""
    if not isinstance(value, str):
        return True
    found = _TIME.fullmatch(value)
    if not found:
        return False
    hour, minute, second, _, _, sign, offset_hour, offset_minute = found.groups()
    ahead = int(sign + "1") * (int(offset_hour) * 60 + int(offset_minute)) if sign else 0
    return int(second) < 60 or (int(hour) * 60 + int(minute) - ahead) % 1440 == 1439


@FORMATS.checks("date-time")
def is_date_time(value: object) -> bool:
    if not isinstance(value, str):
        return True
    return value[10:11] in ("T", "t") and is_date(value[:10]) and is_time(value[11:])


@FORMATS.checks("duration")
def is_duration(value: object) -> bool:
    return not isinstance(value, str) or bool(_DURATION.fullmatch(value))


@FORMATS.checks("hostname")
def is_hostname(value: object) -> bool:
    return not isinstance(value, str) or (len(value) <= 253 and bool(_HOSTNAME.fullmatch(value)))


@FORMATS.checks("email")
def is_email(value: object) -> bool:
    found = not isinstance(value, str) or _MAILBOX.fullmatch(value)
    if not found or found is True:
        return bool(found)
    domain = found[4]
    if not domain.startswith("["):
        return is_hostname(domain)
    literal = domain[1:-1]
    return FORMATS.conforms(literal, "ipv4") or FORMATS.conforms(literal.removeprefix("IPv6:"), "ipv6")


@FORMATS.checks("uri")
def is_uri(value: object) -> bool:
    return not isinstance(value, str) or bool(_URI.fullmatch(value))


def validator(schema: Any) -> Draft202012Validator:
    """One that fetches nothing."""
    return Draft202012Validator(schema, registry=REGISTRY, format_checker=FORMATS)


def problem(text: bytes, judge: Draft202012Validator) -> str:
    """What is wrong with a text; empty where it is valid."""
    try:
        value = strictly_parsed(text)
    except ValueError as error:
        return f"{text[:300]!r} is not JSON: {error}"
    found = next(judge.iter_errors(value), None)
    return f"{text[:300]!r}: {found.message[:200]} at {found.json_path}" if found else ""


def strictly_parsed(text: bytes) -> Any:
    """A value that every JSON parser reads alike: of whole characters, and of numbers that a double can hold.

    Raises ValueError.
    """
    value = json.loads(text.decode(), parse_float=_finite, parse_constant=_finite)
    json.dumps(value, ensure_ascii=False).encode()
    return value


def _finite(number: str) -> float:
    if not isfinite(value := float(number)):
        raise ValueError(f"{number[:50]} is no finite number")
    return value
