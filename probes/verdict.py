"""The one judge of every answer that is no success."""

import re
import traceback
from collections.abc import Sequence

import httpx

from probes.answer import Answer
from support.checks import check_error, check_error_body, strict_json

LEAKS = re.compile(r"Traceback|0x[0-9a-fA-F]{6,}|site-packages|\.py\b|<class '|octavo\.api|/(root|home|usr|tmp)/")


def fault_of(answer: Answer, sent: bytes = b"", secrets: Sequence[str] = ()) -> str:
    """Why it has not the shape that every error has; "" where it has.

    sent: a body that the answer may repeat parts of. secrets: what no answer may hold.
    """
    try:
        body = strict_json(answer.body.decode())
        if "x-request-id" in answer.headers:
            response = httpx.Response(answer.status, headers=answer.headers, content=answer.body)
            check_error(response, answer.status, body["error"]["param"])
        else:  # refused before it was known as a request, and so for the last time on its connection
            assert answer.headers["connection"] == "close"
            assert answer.headers["content-type"] == "application/json"
            assert "request_id" not in check_error_body(body, answer.status)
    except (AssertionError, LookupError, TypeError, ValueError) as error:
        line = traceback.extract_tb(error.__traceback__)[-1].line
        return f"{line or error!r} in {answer.body[:200]!r}"
    return leak_in(answer.body.decode(), sent.decode("utf-8", "replace"), secrets)


def leak_in(text: str, sent: str = "", secrets: Sequence[str] = ()) -> str:
    """What a text tells that nobody outside may know; "" where it tells nothing."""
    found = next((match[0] for match in LEAKS.finditer(text) if match[0] not in sent), "")
    secret = next((secret for secret in secrets if secret in text), "")
    return f"the answer holds {found or secret!r}" if found or secret else ""
