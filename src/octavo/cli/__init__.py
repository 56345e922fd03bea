"""The `octavo` command. What a command needs is imported when it runs, so that `octavo --help` answers at once."""

from typing import Annotated

import typer

from octavo.cli.errors import reported_errors
from octavo.cli.options import takes_settings
from octavo.config import Settings

app = typer.Typer(
    name="octavo",
    help="A text-generation server with OctoAI's and OpenAI's API.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _show_version(is_asked: bool) -> None:
    if is_asked:
        from importlib.metadata import version

        print(f"octavo {version('octavo')}")
        raise typer.Exit


@app.callback()
def _octavo(
    show_version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    pass


@app.command("serve")
@takes_settings()
def _serve(settings: Settings) -> None:
    """Serve a model over HTTP.

    Every option can also stand in octavo.toml, or in the environment as OCTAVO_ and its name.
    """
    from octavo.cli.serve import serve

    raise typer.Exit(serve(settings))


@app.command("doctor")
@takes_settings(
    "models",
    "ctx",
    "slots",
    "threads",
    "cache_type_k",
    "cache_type_v",
    "prefix_cache",
    "draft",
    "deterministic",
    "config",
)
def _doctor(settings: Settings) -> None:
    """Say what this machine has, what was chosen for it and why, and whether the engine passes its self-test."""
    from octavo.cli.doctor import examine

    raise typer.Exit(examine(settings))


@app.command("complete")
def _complete(
    prompt: Annotated[
        str | None, typer.Argument(help="Text to go on with; standard input otherwise, less one newline at its end.")
    ] = None,
    url: Annotated[str, typer.Option(help="Where the server is.")] = "http://127.0.0.1:8080",
    model: Annotated[str | None, typer.Option(help="A served model; the first one otherwise.")] = None,
    max_tokens: Annotated[int, typer.Option(help="Most tokens to generate.")] = 256,
    temperature: Annotated[float | None, typer.Option(help="0 is greedy.")] = None,
    top_p: Annotated[float | None, typer.Option(help="Probability of the tokens to draw from.")] = None,
    seed: Annotated[int | None, typer.Option(help="The same seed gives the same answer.")] = None,
    stop: Annotated[list[str] | None, typer.Option(help="Text to stop before; may be given several times.")] = None,
    echo_prompt: Annotated[bool, typer.Option(help="Show the prompt before its completion.")] = False,
) -> None:
    """Let a running server complete a text; the answer is shown as it comes."""
    from octavo.cli.complete import Sampling, complete, read_prompt

    with reported_errors():
        text = read_prompt(prompt)
        sampling = Sampling(max_tokens, temperature, top_p, seed, tuple(stop or ()))
        complete(text, url=url, model=model, sampling=sampling, echoes_prompt=echo_prompt)
