"""Who may ask for what."""

import logging
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

import httpx
import pytest

from octavo.core.api_key import ApiKey, digest_of
from octavo.core.caller import Caller, KeyLimits, Scope
from octavo.core.keyring import ClosedKeyring
from octavo.engine.specs import ScriptedSpec
from support.bad_inputs import CHAT, COMPLETIONS, JSON
from support.checks import check_error

from .server import MODEL, App, WatchedEngine, build, listening, scripted

ADMIN, GENERATE, EXPIRED = "octv_admin", "octv_generate", "octv_expired"
KEYS = (ADMIN, GENERATE, EXPIRED)
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND")
LIVENESS = "/health"
ADMINS = {
    ("GET", "/metrics"),
    ("GET", "/v1/logs"),
    ("GET", "/v1/logs/{id}"),
    ("POST", "/v1/adapters"),
    ("DELETE", "/v1/adapters/{id:path}"),
}
"""What only a key with the scope admin is good for, by the routes."""


async def stored() -> Mapping[bytes, ApiKey]:
    generate = frozenset({Scope.GENERATE})
    keys = (
        ApiKey(digest_of(GENERATE), Caller("key-g", generate, KeyLimits())),
        ApiKey(digest_of(EXPIRED), Caller("key-e", generate), expires=1.0),
    )
    return {key.digest: key for key in keys}


def locked() -> App:
    return build(WatchedEngine(ScriptedSpec()), keyring=ClosedKeyring([ADMIN], stored))


@pytest.fixture(scope="module")
def app() -> App:
    """One for all: what is refused leaves nothing behind."""
    return locked()


@pytest.fixture
async def client(app: App) -> AsyncIterator[httpx.AsyncClient]:
    async with app.client() as client:
        yield client


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


def routes(app: App) -> list[tuple[str, str]]:
    """Method and template of each."""
    found = [(method, route.path) for route in app.asgi.routes for method in route.methods]  # type: ignore[attr-defined]
    assert len(found) >= 17
    return found


def filled(template: str) -> str:
    return template.replace("{model:path}", MODEL).replace("{id:path}", "x").replace("{id}", "x")


async def ask(client: httpx.AsyncClient, method: str, path: str, **options: Any) -> httpx.Response:
    """With the path as it is; a client takes what follows two slashes for a host."""
    return await client.request(method, f"http://octavo{path}", **options)


def spellings(path: str) -> Iterator[str]:
    """Of one path, as somebody would write it who looks for a hole."""
    yield path
    yield f"{path}/"
    yield f"/{path}"
    yield f"/v1/..{path}"
    yield f"/v1/..%2f{path.lstrip('/')}"
    yield f"/v{path}"
    yield f"/v1{path}"
    yield f"/health/..{path}"
    yield f"/health/%2e%2e{path}"
    yield f"/health;{path}"
    yield path.upper()
    yield "/%" + f"{ord(path[1]):02x}{path[2:]}" if len(path) > 1 else "/%2f"
    yield f"{path}%00"
    yield f"{path}%0a"
    yield f"{path}?key={ADMIN}&api_key={ADMIN}&access_token={ADMIN}"


WRONG: dict[str, list[tuple[str, bytes]]] = {
    "none": [],
    "an empty header": [("authorization", b"")],
    "an empty key": [("authorization", b"Bearer ")],
    "no key": [("authorization", b"Bearer")],
    "an unknown key": [("authorization", b"Bearer octv_unknown")],
    "an expired key": [("authorization", f"Bearer {EXPIRED}".encode())],
    "a key in other case": [("authorization", f"Bearer {ADMIN.upper()}".encode())],
    "a beginning of a key": [("authorization", f"Bearer {ADMIN[:-1]}".encode())],
    "a key and more": [("authorization", f"Bearer {ADMIN} x".encode())],
    "two keys in one header": [("authorization", f"Bearer {ADMIN},{ADMIN}".encode())],
    "another scheme": [("authorization", f"Basic {ADMIN}".encode())],
    "no scheme": [("authorization", ADMIN.encode())],
    "a scheme without a space": [("authorization", f"Bearer{ADMIN}".encode())],
    "a scheme and a tab": [("authorization", f"Bearer\t{ADMIN}".encode())],
    "two headers": [("authorization", f"Bearer {ADMIN}".encode())] * 2,
    "two headers of which one is right": [
        ("authorization", b"Bearer no"),
        ("authorization", f"Bearer {ADMIN}".encode()),
    ],
    "another header": [("x-api-key", ADMIN.encode())],
    "a proxy's header": [("proxy-authorization", f"Bearer {ADMIN}".encode())],
    "a cookie": [("cookie", f"authorization=Bearer {ADMIN}; api_key={ADMIN}".encode())],
    "quotes": [("authorization", b"Bearer \"' OR '1'='1")],
    "SQL": [("authorization", b"Bearer x'; DROP TABLE keys; --")],
    "more than ASCII": [("authorization", "Bearer schlüssel🔑".encode())],
    "a NUL": [("authorization", b"Bearer \0")],
    "a megabyte": [("authorization", b"Bearer " + b"x" * 2**20)],
}


@pytest.mark.parametrize("headers", WRONG.values(), ids=WRONG.keys())
async def test_without_a_right_key_every_path_and_method_is_closed_but_that_of_liveness(
    app: App, client: httpx.AsyncClient, headers: list[tuple[str, bytes]]
) -> None:
    templates = {template for _, template in routes(app)} - {LIVENESS}
    paths = [path for template in templates for path in spellings(filled(template))]
    for path in (*paths, "/nothing/here", "/health/", "/health%0a", "//health", "/HEALTH", "/health/x"):
        for method in METHODS:
            response = await ask(client, method, path, headers=headers)
            assert response.status_code == 401, (method, path)
            assert response.headers["www-authenticate"] == "Bearer"
            if method != "HEAD":
                assert check_error(response, 401, None)["code"] == "invalid_api_key"
                assert "octv" not in response.text


async def test_liveness_needs_no_key(client: httpx.AsyncClient) -> None:
    for headers in WRONG.values():
        response = await client.get(LIVENESS, headers=headers)
        assert (response.status_code, response.json()) == (200, {"status": "ok"})


@pytest.mark.parametrize("root_path", ["/v", "/v1", "/health", "/metrics"])
async def test_a_place_where_the_application_is_mounted_opens_nothing(app: App, root_path: str) -> None:
    transport = httpx.ASGITransport(app.asgi, root_path=root_path)
    async with httpx.AsyncClient(transport=transport, base_url="http://octavo") as client:
        for method, template in routes(app):
            if template == LIVENESS:
                continue
            for path in (filled(template), root_path + filled(template)):
                assert (await client.request(method, path)).status_code == 401
                if (method, template) in ADMINS:
                    response = await client.request(method, path, headers=bearer(GENERATE))
                    assert response.status_code in (403, 404), path
        assert (await client.get(f"{root_path}/v1/models", headers=bearer(GENERATE))).status_code == 200


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER", "bEaReR"])
@pytest.mark.parametrize("space", [" ", "   "])
async def test_the_scheme_may_be_in_any_case_and_spaces_behind_it_any_number(
    client: httpx.AsyncClient, scheme: str, space: str
) -> None:
    response = await client.get("/v1/models", headers={"authorization": f"{scheme}{space}{GENERATE}"})
    assert response.status_code == 200


async def test_each_route_is_good_for_the_keys_that_have_its_scope(app: App, client: httpx.AsyncClient) -> None:
    assert {route for route in routes(app) if "logs" in route[1] or "metrics" in route[1]} <= ADMINS
    for method, template in routes(app):
        for_generating = await client.request(method, filled(template), headers=bearer(GENERATE))
        assert (for_generating.status_code == 403) == ((method, template) in ADMINS), (method, template)
        assert for_generating.status_code != 401
        for_admin = await client.request(method, filled(template), headers=bearer(ADMIN))
        assert for_admin.status_code not in (401, 403), (method, template)


async def test_no_spelling_of_a_path_is_good_for_more(app: App, client: httpx.AsyncClient) -> None:
    for method, template in ADMINS:
        for path in spellings(filled(template)):
            response = await ask(client, method, path, headers=bearer(GENERATE))
            assert response.status_code in (403, 404, 405), (method, path)


async def test_a_key_that_is_not_good_for_it_is_told_so(client: httpx.AsyncClient) -> None:
    body = check_error(await client.get("/metrics", headers=bearer(GENERATE)), 403, None)
    assert (body["code"], body["type"]) == ("forbidden", "permission_error")
    assert "admin" in body["message"]


async def test_with_a_key_what_is_not_there_is_not_found(client: httpx.AsyncClient) -> None:
    for key in (ADMIN, GENERATE):
        check_error(await client.get("/v1/embeddings", headers=bearer(key)), 404, None)
        check_error(await client.put(COMPLETIONS, headers=bearer(key)), 405, None)


async def test_a_request_is_refused_before_its_body_is_read(app: App) -> None:
    async with app.client() as client:
        for headers in ({}, bearer("no")):
            wrong = {**headers, "content-type": "text/plain", "content-length": "9" * 100}
            check_error(await client.post(CHAT, content=b"{", headers=wrong), 401, None)
    assert not app.engine.requests


async def test_the_engine_and_the_log_know_whose_request_it_was(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "octavo.request")
    app = locked()
    async with app.client() as client:
        body = {"model": MODEL, "prompt": "hi", "user": "ann"}
        await client.post(COMPLETIONS, json=body, headers=bearer(GENERATE))
        await client.post(COMPLETIONS, json=body)

    [request] = app.engine.requests
    assert request.owner == ("key-g", "ann")
    lines: list[dict[str, Any]] = [vars(r)["fields"] for r in caplog.records if r.name == "octavo.request"]
    assert [(line["status"], line["key"]) for line in lines] == [(200, "key-g"), (401, "")]
    assert not any(key in caplog.text for key in KEYS)


@pytest.mark.parametrize("value", ["Bearer ", "Bearer any", "Basic x", "", "nonsense"])
async def test_a_server_without_keys_looks_at_none(value: str) -> None:
    async with scripted().client() as client:
        for path in ("/v1/models", "/metrics", "/openapi.json"):
            assert (await client.get(path, headers={"authorization": value})).status_code == 200


async def test_the_document_tells_how_a_key_is_sent_and_what_happens_without(client: httpx.AsyncClient) -> None:
    document = (await client.get("/openapi.json", headers=bearer(GENERATE))).json()
    [scheme] = document["components"]["securitySchemes"].items()
    assert scheme[1] == {"type": "http", "scheme": "bearer"}
    assert document["security"] == [{scheme[0]: []}]
    for path, operations in document["paths"].items():
        for operation in operations.values():
            assert ("401" in operation["responses"]) == (path != LIVENESS)
            assert "403" in operation["responses"]
            assert operation.get("security") == ([] if path == LIVENESS else None)


async def test_the_document_of_a_server_without_keys_asks_for_none() -> None:
    async with scripted().client() as client:
        assert "security" not in (await client.get("/openapi.json")).json()


async def test_a_real_server_refuses_them_too() -> None:
    async with listening(locked()) as client:
        for headers in WRONG.values():
            if any(b"\0" in value or len(value) > 2**16 or value.endswith(b" ") for _, value in headers):
                continue  # the client does not send the like, or the server takes it for no request
            check_error(await client.post(COMPLETIONS, content=b"{}", headers=[*JSON.items(), *headers]), 401, None)
        assert (await client.get("/v1/models", headers=bearer(GENERATE))).status_code == 200
