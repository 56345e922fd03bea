"""Log-probabilities in the wire's forms."""

from collections.abc import Callable, Sequence

from octavo.api.schemas.common import WireData
from octavo.core.output import Alternative, LogprobEntry

FLOOR = -9999.0
"""What a log-probability is at least; minus infinity is not JSON."""

LogprobsForm = Callable[[Sequence[LogprobEntry]], WireData | None]
"""Some tokens of a choice, in the form that its `logprobs` have."""


def no_logprobs(entries: Sequence[LogprobEntry]) -> None:
    """For who did not ask: entries may have been needed for the choice between candidates."""


def chat_logprobs(entries: Sequence[LogprobEntry]) -> WireData:
    """OpenAI's form, which OctoAI has too."""
    return {"content": _content(entries), "refusal": None}


def completion_logprobs(entries: Sequence[LogprobEntry]) -> WireData:
    """OctoAI's form (content), and OpenAI's four lists of the tokens that the choice's text is made of."""
    in_text = [entry for entry in entries if entry.offset is not None]
    return {
        "content": _content(entries),
        "tokens": [_name(entry) for entry in in_text],
        "token_logprobs": [None if entry.logprob is None else _floored(entry.logprob) for entry in in_text],
        "top_logprobs": [_by_name(entry) for entry in in_text],
        "text_offset": [entry.offset for entry in in_text],
    }


def _content(entries: Sequence[LogprobEntry]) -> list[WireData]:
    """Clients demand a number in each item, so the first token of a prompt has none."""
    return [
        {**_item(entry, entry.logprob), "top_logprobs": [_item(other, other.logprob) for other in entry.top]}
        for entry in entries
        if entry.logprob is not None
    ]


def _item(token: LogprobEntry | Alternative, logprob: float) -> WireData:
    data = None if token.bytes is None else list(token.bytes)
    return {"token": token.token, "logprob": _floored(logprob), "bytes": data}


def _by_name(entry: LogprobEntry) -> dict[str, float] | None:
    """Of tokens with the same name the most probable is told, unless the entry's own token is among them."""
    if entry.logprob is None:
        return None
    named: dict[str, float] = {}
    for other in entry.top:
        named.setdefault(_name(other), _floored(other.logprob))
    named[_name(entry)] = _floored(entry.logprob)
    return named


def _name(token: LogprobEntry | Alternative) -> str:
    """Bytes that are no text are marked as OpenAI marks them."""
    return token.token if token.bytes is None or _is_text(token.bytes) else f"bytes:{token.token}"


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _floored(logprob: float) -> float:
    return max(FLOOR, logprob)
