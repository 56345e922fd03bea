"""`octavo ready`: whether a running server can serve, for those who start it and need an exit status."""

import httpx

from octavo.cli.client import ServerClient
from octavo.cli.terminal import write_text

TIMEOUT = httpx.Timeout(10.0)


def ready(*, url: str) -> None:
    """Print the state. Raises CallFailed where the server cannot serve, and ConfigError."""
    with ServerClient(url, timeout=TIMEOUT) as client:
        write_text(client.call("GET", "/ready", lambda answer: f"{answer['status']}\n"))
