"""Flags that the commands which ask a running server have in common."""

from typing import Annotated

import typer

DEFAULT_URL = "http://127.0.0.1:8080"

UrlFlag = Annotated[str, typer.Option("--url", help="Where the server is.")]
ApiKeyFlag = Annotated[
    str | None, typer.Option("--api-key", metavar="KEY", help="The server's key; that of OCTAVO_API_KEY otherwise.")
]
ModelFlag = Annotated[str | None, typer.Option("--model", help="A served model; the first one otherwise.")]
TemperatureFlag = Annotated[float | None, typer.Option("--temperature", help="0 is greedy.")]
TopPFlag = Annotated[float | None, typer.Option("--top-p", help="Probability of the tokens to draw from.")]
SeedFlag = Annotated[int | None, typer.Option("--seed", help="The same seed gives the same answer.")]
StopFlag = Annotated[list[str] | None, typer.Option("--stop", help="Text to stop before; may be given several times.")]
