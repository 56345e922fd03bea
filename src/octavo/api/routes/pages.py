"""GET / and /docs."""

from collections.abc import Mapping
from importlib.metadata import version
from importlib.resources import files

from fastapi import FastAPI
from starlette.responses import HTMLResponse

_LINKS = {"docs": "/docs", "openapi": "/openapi.json", "models": "/v1/models", "metrics": "/metrics"}
_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'"


def add_pages(app: FastAPI) -> None:
    """The page of the documentation fetches /openapi.json and nothing from elsewhere."""
    page = files("octavo.api").joinpath("docs.html").read_text(encoding="utf-8")
    index: Mapping[str, str | Mapping[str, str]] = {"name": "octavo", "version": version("octavo"), "links": _LINKS}

    @app.get("/", include_in_schema=False)
    async def get_index() -> Mapping[str, str | Mapping[str, str]]:
        return index

    @app.get("/docs", include_in_schema=False)
    async def get_docs() -> HTMLResponse:
        return HTMLResponse(page, headers={"content-security-policy": _POLICY})
