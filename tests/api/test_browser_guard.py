"""What web pages may let a browser do."""

import asyncio
import json
from collections.abc import Sequence

import httpx
import pytest

from octavo.core.browser_access import AllowedHosts, AllowedOrigins
from octavo.core.keyring import ClosedKeyring
from octavo.engine.specs import ScriptedSpec
from support.bad_inputs import CHAT, COMPLETIONS
from support.checks import check_error

from .server import MODEL, OPEN, App, WatchedEngine, build, listening

KEY = "octv_key"
BODY = {"model": MODEL, "prompt": "hi"}
PATHS = ("/ready", "/v1/models", "/", "/docs", "/openapi.json", "/metrics", "/nothing", CHAT)
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
PAGE = "https://page.example"


def guarded(*, hosts: Sequence[str] = (), origins: Sequence[str] = (), key: str = "") -> App:
    return build(
        WatchedEngine(ScriptedSpec()),
        keyring=ClosedKeyring([key]) if key else OPEN,
        hosts=AllowedHosts(hosts),
        origins=AllowedOrigins(origins),
    )


def client_of(app: App, base: str = "http://localhost:8080") -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app.asgi), base_url=base)


def shared_headers(response: httpx.Response) -> dict[str, str]:
    return {name: value for name, value in response.headers.items() if name.startswith("access-control-")}


@pytest.mark.parametrize("host", ["127.0.0.1", "10.0.0.7:8080", "[::1]:8080", "localhost", "a.localhost:1", "my.host"])
async def test_addresses_localhost_and_listed_names_are_answered(host: str) -> None:
    async with client_of(guarded(hosts=["my.host"])) as client:
        assert (await client.get("/health", headers={"host": host})).status_code == 200
        assert (await client.post(COMPLETIONS, json=BODY, headers={"host": host})).status_code == 200


@pytest.mark.parametrize("path", PATHS)
async def test_a_name_that_is_not_listed_is_refused_whatever_is_asked(path: str) -> None:
    app = guarded(hosts=["my.host"])
    async with client_of(app) as client:
        for method in METHODS:
            response = await client.request(method, path, headers={"host": "evil.example"})
            assert response.status_code == 403
            if method != "HEAD":
                assert check_error(response, 403, None)["code"] == "host_not_allowed"
    assert not app.engine.requests


@pytest.mark.parametrize("host", ["", "a b", "a/b", "user@localhost", "localhost:x", "[::1", "0x7f.1", "é", "*"])
async def test_a_host_that_is_none_is_refused(host: str) -> None:
    async with client_of(guarded(hosts=["*"])) as client:
        response = await client.get("/ready", headers=[("host", host.encode())])
        assert check_error(response, 400, None)["code"] == "invalid_host"


async def test_no_host_and_two_hosts_are_refused() -> None:
    app = guarded(hosts=["*"])
    async with listening(app) as client:
        assert (await client.get("/health")).status_code == 200
        port = client.base_url.port
        assert port is not None
        for lines in ("", "host: localhost\r\nhost: localhost\r\n", "host: localhost\r\nHost: evil.example\r\n"):
            answer = await raw_answer(port, f"GET /ready HTTP/1.1\r\n{lines}connection: close\r\n\r\n")
            assert answer.startswith("HTTP/1.1 400 ")
            assert json.loads(answer.partition("\r\n\r\n")[2])["code"] == "invalid_host"


@pytest.mark.parametrize("path", ["/health", "/ready"])
async def test_probes_may_ask_for_no_body(path: str) -> None:
    async with listening(guarded()) as client:
        response = await client.head(path)

    assert (response.status_code, response.content) == (200, b"")


@pytest.mark.parametrize(
    "lines", ["", "Host: octavo:8080\r\n", "Host: a b\r\n", f"Host: localhost\r\nOrigin: {PAGE}\r\n"]
)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_whoever_asks_whether_the_server_lives_is_told(method: str, lines: str) -> None:
    async with listening(guarded()) as client:
        assert (await client.get("/health")).status_code == 200
        assert client.base_url.port is not None
        answer = await raw_answer(client.base_url.port, f"{method} /health HTTP/1.0\r\n{lines}\r\n")

    assert answer.startswith("HTTP/1.1 200 ")
    assert answer.partition("\r\n\r\n")[2] == ('{"status":"ok"}' if method == "GET" else "")
    assert "access-control-allow" not in answer


async def raw_answer(port: int, request: str) -> str:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request.encode())
    try:
        return (await reader.read()).decode()
    finally:
        writer.close()
        await writer.wait_closed()


@pytest.mark.parametrize(
    ("base", "origin"),
    [
        ("http://localhost:8080", "http://localhost:8080"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("http://[::1]:8080", "http://[::1]:8080"),
        ("http://localhost", "http://localhost"),
    ],
)
async def test_pages_of_the_server_itself_may_ask(base: str, origin: str) -> None:
    async with client_of(guarded(), base) as client:
        response = await client.post(COMPLETIONS, json=BODY, headers={"origin": origin})
        assert response.status_code == 200
        assert not shared_headers(response)


OTHERS = [
    *("http://evil.example", "https://localhost:8080", "http://localhost:8081", "http://localhost"),
    *("http://127.0.0.1:8080", "null", "", "localhost:8080", "http://localhost:8080.evil.example"),
    *("http://localhost:8080/x", "http://user@localhost:8080", "file://", "é"),
]


@pytest.mark.parametrize("origin", OTHERS)
@pytest.mark.parametrize("key", ["", KEY])
async def test_other_pages_may_do_nothing(origin: str, key: str) -> None:
    app = guarded(origins=[PAGE], key=key)
    headers = [("origin", origin.encode()), ("authorization", f"Bearer {KEY}".encode())]
    async with client_of(app) as client:
        for path in PATHS:
            for method in METHODS:
                response = await client.request(method, path, headers=headers)
                assert response.status_code == 403, (method, path)
                assert not shared_headers(response)
                if method != "HEAD":
                    assert check_error(response, 403, None)["code"] == "origin_not_allowed"
        refused = await client.options(CHAT, headers=[*headers, ("access-control-request-method", b"POST")])
        assert refused.status_code == 403
        assert not shared_headers(refused)
    assert not app.engine.requests


async def test_two_origins_are_refused() -> None:
    async with client_of(guarded(origins=[PAGE])) as client:
        for others in ([PAGE, PAGE], ["http://localhost:8080", "http://localhost:8080"]):
            response = await client.get("/ready", headers=[("origin", origin.encode()) for origin in others])
            assert check_error(response, 403, None)["code"] == "origin_not_allowed"


@pytest.mark.parametrize("origin", [PAGE, "http://localhost:3000"])
async def test_listed_pages_may_ask_and_see_what_an_answer_tells(origin: str) -> None:
    async with client_of(guarded(origins=[PAGE, "http://localhost:3000"])) as client:
        response = await client.post(COMPLETIONS, json=BODY, headers={"origin": origin})

    assert response.status_code == 200
    assert response.headers["access-control-allow-origin"] == origin
    assert response.headers["vary"] == "origin"
    exposed = response.headers["access-control-expose-headers"].split(", ")
    assert {"x-request-id", "x-octavo-ignored", "retry-after", "x-ratelimit-remaining-requests"} <= set(exposed)
    assert "access-control-allow-credentials" not in response.headers


@pytest.mark.parametrize("path", [CHAT, "/v1/models", "/nothing"])
async def test_a_browser_is_told_without_a_key_what_listed_pages_may_send(path: str) -> None:
    async with client_of(guarded(origins=[PAGE], key=KEY)) as client:
        asked = {
            "access-control-request-method": "POST",
            "access-control-request-headers": "authorization,x-stainless-os",
        }
        response = await client.options(path, headers={"origin": PAGE, **asked})

    assert response.status_code == 204
    assert response.content == b""
    assert shared_headers(response) == {
        "access-control-allow-origin": PAGE,
        "access-control-allow-methods": "GET, POST, DELETE",
        "access-control-allow-headers": "authorization, content-type, x-request-id, *",
        "access-control-max-age": "600",
    }
    assert response.headers["vary"] == "origin"


async def test_listed_pages_are_told_what_is_wrong_with_their_requests() -> None:
    async with client_of(guarded(origins=[PAGE], key=KEY)) as client:
        no_key = await client.get("/v1/models", headers={"origin": PAGE})
        plain = await client.options("/v1/models", headers={"origin": PAGE})
        right = await client.get("/v1/models", headers={"origin": PAGE, "authorization": f"Bearer {KEY}"})

    assert [response.status_code for response in (no_key, plain, right)] == [401, 401, 200]
    assert {response.headers["access-control-allow-origin"] for response in (no_key, plain, right)} == {PAGE}


@pytest.mark.parametrize("origin", ["http://evil.example", "null"])
async def test_a_star_lets_any_page_ask(origin: str) -> None:
    async with client_of(guarded(origins=["*"])) as client:
        response = await client.post(COMPLETIONS, json=BODY, headers={"origin": origin})

    assert response.status_code == 200
    assert response.headers["access-control-allow-origin"] == origin


async def test_a_page_cannot_send_a_body_without_being_asked_about() -> None:
    """These types are all that a page may send to anywhere without a preflight."""
    app = guarded()
    async with client_of(app) as client:
        for content_type in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
            response = await client.post(COMPLETIONS, content=json.dumps(BODY), headers={"content-type": content_type})
            check_error(response, 415, None)
    assert not app.engine.requests
