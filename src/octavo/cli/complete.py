"""`octavo complete`: a text goes to a running server, its completion comes to the terminal."""

import sys
from typing import Any

from octavo.cli.client import ServerClient
from octavo.cli.sampling import Sampling
from octavo.cli.terminal import write_text


def complete(
    prompt: str, *, url: str, key: str | None, model: str | None, sampling: Sampling, echoes_prompt: bool
) -> None:
    """Stream the completion to stdout. Raises CallFailed and ConfigError."""
    with ServerClient(url, key) as client:
        body = {"model": model or client.first_model(), "prompt": prompt, **sampling.to_wire()}
        write_text(prompt if echoes_prompt else "")
        for text in client.stream("/v1/completions", _text_of, body):
            write_text(text)
    if sys.stdout.isatty():
        write_text("\n")


def _text_of(event: Any) -> str:
    return "".join(choice["text"] for choice in event["choices"])
