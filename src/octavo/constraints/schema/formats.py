"""Formats that are enforced: a part of what each allows, and none that a strict reader would refuse.

RFC 3339 (dates and times), 5321 (mail), 1123 (hosts), 2673 and 4291 (addresses), 4122 (UUID), 3986 (URI), 6901.
February has 28 days here, and minutes 60 seconds.
"""

_YEAR = "(?:000[1-9]|00[1-9][0-9]|0[1-9][0-9]{2}|[1-9][0-9]{3})"
_DATE = (
    rf"(?:{_YEAR}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    r"|02-(?:0[1-9]|1[0-9]|2[0-8])))"
)
_TIME = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,6})?(?:Z|[+\-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
_LABEL = "[a-zA-Z0-9](?:-?[a-zA-Z0-9]){0,30}"
_HOST = rf"{_LABEL}(?:\.{_LABEL}){{0,3}}\.[a-zA-Z]{{2,12}}"
_BYTE = r"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_IPV4 = rf"{_BYTE}(?:\.{_BYTE}){{3}}"
_GROUP = "[0-9a-fA-F]{1,4}"
_PATH = r"(?:[a-zA-Z0-9\-._~!$&'()*+,;=:@]|%[0-9a-fA-F]{2})"
_TAIL = rf"(?:\?(?:{_PATH}|[/?])*)?(?:#(?:{_PATH}|[/?])*)?"
_NUMBER = "[0-9]{1,6}"
_DAYS = rf"(?:{_NUMBER}Y(?:{_NUMBER}M(?:{_NUMBER}D)?)?|{_NUMBER}M(?:{_NUMBER}D)?|{_NUMBER}D)"
_HOURS = rf"T(?:{_NUMBER}H(?:{_NUMBER}M(?:{_NUMBER}S)?)?|{_NUMBER}M(?:{_NUMBER}S)?|{_NUMBER}S)"
_URI = (
    rf"(?:https?|ftp|wss?)://{_HOST}(?::[1-9][0-9]{{1,3}})?(?:/{_PATH}*)*{_TAIL}"
    rf"|(?:urn:[a-z]{{2,8}}:{_PATH}+|mailto:[a-z0-9.]{{1,32}}@{_HOST}|file:///{_PATH}+(?:/{_PATH}+)*)"
)

FORMATS = {
    "date": _DATE,
    "time": _TIME,
    "date-time": rf"{_DATE}T{_TIME}",
    "duration": rf"P(?:{_NUMBER}W|{_DAYS}(?:{_HOURS})?|{_HOURS})",
    "email": rf"[a-zA-Z0-9_+\-]{{1,32}}(?:\.[a-zA-Z0-9_+\-]{{1,16}}){{0,1}}@{_HOST}",
    "hostname": _HOST,
    "ipv4": _IPV4,
    "ipv6": rf"(?:{_GROUP}:){{7}}{_GROUP}|{_GROUP}(?::{_GROUP}){{0,2}}::{_GROUP}(?::{_GROUP}){{0,2}}|::1?",
    "uuid": "[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}",
    "uri": _URI,
    "uri-reference": rf"{_URI}|(?:/{_PATH}+)+{_TAIL}",
    "iri": _URI,
    "iri-reference": rf"{_URI}|(?:/{_PATH}+)+{_TAIL}",
    "idn-email": rf"[a-zA-Z0-9_+\-]{{1,32}}@{_HOST}",
    "idn-hostname": _HOST,
    "uri-template": rf"(?:/(?:[a-zA-Z0-9\-._]+|\{{[a-z]+\}}))+|{_URI}",
    "json-pointer": r"(?:/(?:[^/~]|~[01])*)*",
    "relative-json-pointer": r"(?:0|[1-9][0-9]{0,3})(?:#|(?:/(?:[^/~]|~[01])*)*)",
    "regex": r"[a-zA-Z0-9 _.\-]{0,64}",
}
"""Regular expressions for the whole string. Any other format is an annotation."""
