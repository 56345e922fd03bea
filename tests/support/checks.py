"""What every error must look like."""

import json
import re
from typing import Any

import httpx

FIELDS = {"message", "type", "param", "code"}
SECRETS = re.compile(r"Traceback|0x[0-9a-f]{6}|site-packages|\.py\b|/(root|home|usr)|line \d+, in |<class|octavo\.api")


def strict_json(text: str) -> Any:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


def check_error(response: httpx.Response, status: int, param: str | None) -> dict[str, Any]:
    """The body of an error in the one shape, with this status and this field."""
    assert response.status_code == status, response.text[:500]
    assert response.headers["content-type"] == "application/json"
    assert response.headers["x-request-id"]
    body = check_error_body(strict_json(response.text), status)
    assert body["request_id"] == response.headers["x-request-id"]
    assert body["param"] == param
    assert status != 503 or int(response.headers["retry-after"]) >= 1
    assert status != 405 or response.headers["allow"]
    return body


def check_error_body(body: Any, status: int) -> dict[str, Any]:
    """What fails before it is known as a request has no request_id."""
    assert set(body) - {"request_id"} == {"error", "object", *FIELDS} | ({"detail"} if status == 422 else set())
    assert set(body["error"]) == FIELDS
    assert body["object"] == "error"
    assert body["error"] == {name: body[name] for name in FIELDS}
    assert body["message"]
    assert body["type"]
    assert body["code"]
    assert len(json.dumps(body)) < 10_000
    assert not SECRETS.search(body["message"])
    for problem in body.get("detail", ()):
        assert set(problem) == {"loc", "msg", "type"}
        assert problem["loc"][0] in ("body", "query")
        assert problem["msg"]
    if status == 422:
        assert body["detail"]
        assert body["param"] is None or body["detail"][0]["loc"][1] == body["param"]
    return dict(body)
