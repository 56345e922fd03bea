"""The `octavo` command. What a command needs is imported when it runs, so that `octavo --help` answers at once."""

from typing import Annotated

import typer

from octavo.cli.call_flags import DEFAULT_URL, ModelFlag, SeedFlag, StopFlag, TemperatureFlag, TopPFlag, UrlFlag
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
    "mmproj",
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
    url: UrlFlag = DEFAULT_URL,
    model: ModelFlag = None,
    max_tokens: Annotated[int, typer.Option(help="Most tokens to generate.")] = 256,
    temperature: TemperatureFlag = None,
    top_p: TopPFlag = None,
    seed: SeedFlag = None,
    stop: StopFlag = None,
    echo_prompt: Annotated[bool, typer.Option(help="Show the prompt before its completion.")] = False,
) -> None:
    """Let a running server complete a text; the answer is shown as it comes."""
    from octavo.cli.complete import complete
    from octavo.cli.sampling import Sampling
    from octavo.cli.terminal import read_text

    with reported_errors():
        text = read_text(prompt, noun="prompt")
        sampling = Sampling(max_tokens, temperature, top_p, seed, tuple(stop or ()))
        complete(text, url=url, model=model, sampling=sampling, echoes_prompt=echo_prompt)


@app.command("chat")
def _chat(
    text: Annotated[
        str | None, typer.Argument(help="A message; standard input otherwise, or a conversation on a terminal.")
    ] = None,
    image: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE|URL", help="Image before the message; may be given several times."),
    ] = None,
    system: Annotated[str | None, typer.Option(help="System message: how to answer.")] = None,
    url: UrlFlag = DEFAULT_URL,
    model: ModelFlag = None,
    peft: Annotated[str | None, typer.Option(metavar="ID", help="A LoRA adapter of the model.")] = None,
    max_tokens: Annotated[
        int | None, typer.Option(help="Most tokens to generate; the server's limit otherwise.")
    ] = None,
    temperature: TemperatureFlag = None,
    top_p: TopPFlag = None,
    seed: SeedFlag = None,
    stop: StopFlag = None,
) -> None:
    """Talk with a model of a running server; its answers are shown as they come."""
    from octavo.cli.chat import ChatOptions, chat
    from octavo.cli.sampling import Sampling

    with reported_errors():
        sampling = Sampling(max_tokens, temperature, top_p, seed, tuple(stop or ()))
        chat(text, image or [], url=url, options=ChatOptions(model, system, peft, sampling))


_adapters = typer.Typer(name="adapters", help="The LoRA adapters of a running server.", no_args_is_help=True)
app.add_typer(_adapters)


@_adapters.command("list")
def _list_adapters(url: UrlFlag = DEFAULT_URL) -> None:
    """Show the adapters, and how many requests use each now."""
    from octavo.cli.adapters import list_adapters

    with reported_errors():
        list_adapters(url=url)


@_adapters.command("load")
def _load_adapter(
    adapter_id: Annotated[str, typer.Argument(metavar="ID", help="Name by which requests choose it.")],
    path: Annotated[
        str,
        typer.Argument(metavar="PATH|hf:OWNER/REPO", help="A .gguf file in the server's --adapter-dir, or a download."),
    ],
    url: UrlFlag = DEFAULT_URL,
    scale: Annotated[
        float | None, typer.Option(help="How strongly it applies, beside its own alpha; 1 otherwise.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="The model that it is for; the first one otherwise.")] = None,
) -> None:
    """Load an adapter into the server."""
    from octavo.cli.adapters import load_adapter

    with reported_errors():
        load_adapter(adapter_id, path, url=url, scale=scale, model=model)


@_adapters.command("unload")
def _unload_adapter(
    adapter_id: Annotated[str, typer.Argument(metavar="ID")],
    url: UrlFlag = DEFAULT_URL,
) -> None:
    """Remove an adapter from the server, when the requests that use it are over."""
    from octavo.cli.adapters import unload_adapter

    with reported_errors():
        unload_adapter(adapter_id, url=url)
