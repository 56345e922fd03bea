"""The server around the model."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator

from octavo.config.option import option

SERVER = "Server"


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


class ServerSettings(BaseModel):
    host: str = option("127.0.0.1", "Address to listen on.", panel=SERVER, metavar="HOST", min_length=1)
    port: int = option(8080, "Port to listen on; 0 is any free one.", panel=SERVER, metavar="PORT", ge=0, le=65535)
    strict: bool = option(False, "Refuse unknown request fields instead of naming them in a header.", panel=SERVER)
    content_filter: tuple[str, ...] = option(
        (),
        "Regular expression that ends an answer before its match; may be given several times.",
        panel=SERVER,
        metavar="PATTERN",
    )
    isolate_users: bool = option(
        False, "Share computed tokens only between requests that name the same user.", panel=SERVER
    )
    allow_image_hosts: tuple[str, ...] = option(
        (),
        "A host from which images may be fetched, or *.example.com for all below one; may be given several times.",
        panel=SERVER,
        metavar="HOST",
    )
    request_timeout: float | None = option(
        None,
        "Time that a request gets, waiting included; then it ends with its text so far.",
        panel=SERVER,
        metavar="SECONDS",
        gt=0,
        allow_inf_nan=False,
    )
    drain_timeout: float = option(
        30.0,
        "Time that running requests get when the server is told to stop; then they end with their text so far.",
        panel=SERVER,
        metavar="SECONDS",
        ge=0,
        allow_inf_nan=False,
    )
    max_connections: int = option(
        1000, "Connections at the same time; more are closed with 503.", panel=SERVER, metavar="N", ge=1
    )
    step_timeout: float = option(
        120.0,
        "Time that a step of the engine may take; then its process is replaced.",
        panel=SERVER,
        metavar="SECONDS",
        gt=0,
        allow_inf_nan=False,
    )
    log_level: Annotated[Literal["debug", "info", "warning", "error"], BeforeValidator(_lower)] = option(
        "info", "Least level that is logged: debug, info, warning, error.", panel=SERVER, metavar="LEVEL"
    )
    log_json: bool = option(False, "Log a JSON object a line, and show no start-up screen.", panel=SERVER)
    config: Path | None = option(
        None, "Settings file to read in place of octavo.toml in the current folder.", panel=SERVER, metavar="FILE"
    )
