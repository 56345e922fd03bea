"""`octavo complete`: a text goes to a running server, its completion comes to the terminal."""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx

from octavo.errors import ConfigError, OctavoError

TIMEOUT = httpx.Timeout(None, connect=5.0)
"""An answer may take any time: it may wait in a queue, and its tokens come when they come."""


class CallFailed(OctavoError):
    """The server cannot be reached, refused the request or broke off."""

    code = "call_failed"


@dataclass(frozen=True, slots=True)
class Sampling:
    """None leaves the choice to the server."""

    max_tokens: int
    temperature: float | None
    top_p: float | None
    seed: int | None
    stop: tuple[str, ...]


def read_prompt(argument: str | None) -> str:
    """The argument, or standard input without the one newline that ends its last line. Raises ConfigError."""
    if argument is not None:
        return argument
    if sys.stdin.isatty():
        raise ConfigError("Give a prompt as an argument or on standard input.")
    try:
        return sys.stdin.buffer.read().decode().removesuffix("\n")
    except UnicodeDecodeError as error:
        raise ConfigError(f"The prompt on standard input is not UTF-8 (byte {error.start}).") from error


def complete(prompt: str, *, url: str, model: str | None, sampling: Sampling, echoes_prompt: bool) -> None:
    """Stream the completion to stdout. Raises CallFailed."""
    with _client(url) as client:
        try:
            body = _body(prompt, model or _first_model(client), sampling)
            _write(prompt if echoes_prompt else "")
            for text in _stream(client, body):
                _write(text)
        except httpx.ConnectError as error:
            raise CallFailed(f"No server answers at {url}. Start one with: octavo serve") from error
        except httpx.HTTPError as error:
            raise CallFailed(f"The connection to {url} failed: {error or type(error).__name__}") from error
    if sys.stdout.isatty():
        _write("\n")


def _client(url: str) -> httpx.Client:
    try:
        # The address is taken as it was given: no proxy from the environment stands between.
        return httpx.Client(base_url=url, timeout=TIMEOUT, trust_env=False)
    except httpx.InvalidURL as error:
        raise ConfigError(f"--url {url!r}: {error}.") from error


def _body(prompt: str, model: str, sampling: Sampling) -> dict[str, Any]:
    fields = {
        "model": model,
        "prompt": prompt,
        "stream": True,
        "max_tokens": sampling.max_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "seed": sampling.seed,
        "stop": list(sampling.stop) or None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _first_model(client: httpx.Client) -> str:
    response = client.get("/v1/models")
    _check(response)
    try:
        return str(response.json()["data"][0]["id"])
    except (ValueError, LookupError, TypeError) as error:
        raise CallFailed("The server does not say which models it has; name one with --model.") from error


def _stream(client: httpx.Client, body: dict[str, Any]) -> Iterator[str]:
    with client.stream("POST", "/v1/completions", json=body) as response:
        if response.is_error:
            response.read()
        _check(response)
        for data in _events(response):
            if data == "[DONE]":
                return
            event = json.loads(data)
            if "error" in event:
                raise CallFailed(_one_line(event["error"]["message"]))
            yield from (choice["text"] for choice in event["choices"])
    raise CallFailed("The server broke off before the end of its answer.")


def _events(response: httpx.Response) -> Iterator[str]:
    pending = b""
    for data in response.iter_bytes():  # not iter_lines: it takes some characters of a text for line ends
        *lines, pending = (pending + data).split(b"\n")
        for line in lines:
            if line.startswith(b"data: "):
                yield line.removeprefix(b"data: ").decode()


def _check(response: httpx.Response) -> None:
    if not response.is_error:
        return
    try:
        message = str(response.json()["error"]["message"])
    except (ValueError, LookupError, TypeError):
        message = response.text or response.reason_phrase
    raise CallFailed(f"The server answered {response.status_code}: {_one_line(message)}")


def _one_line(message: str) -> str:
    return " ".join(message.split())


def _write(text: str) -> None:
    sys.stdout.buffer.write(text.encode())
    sys.stdout.buffer.flush()
