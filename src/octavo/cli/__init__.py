"""The `octavo` command. What a command needs is imported when it runs, so that `octavo --help` answers at once."""

from typing import Annotated

import typer

from octavo.cli.call_flags import (
    DEFAULT_URL,
    ApiKeyFlag,
    ModelFlag,
    SeedFlag,
    StopFlag,
    TemperatureFlag,
    TopPFlag,
    UrlFlag,
)
from octavo.cli.errors import reported_errors
from octavo.cli.hidden import hide_secrets
from octavo.cli.options import takes_settings
from octavo.config import Settings
from octavo.core.caller import MAX_LIMIT, KeyLimits, Scope

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
    context: typer.Context,
    show_version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    hide_secrets(context.invoked_subcommand or "")


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
    api_key: ApiKeyFlag = None,
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
        complete(text, url=url, key=api_key, model=model, sampling=sampling, echoes_prompt=echo_prompt)


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
    api_key: ApiKeyFlag = None,
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
        chat(text, image or [], url=url, key=api_key, options=ChatOptions(model, system, peft, sampling))


_keys = typer.Typer(name="keys", help="The keys of a server, in a file that it watches.", no_args_is_help=True)
app.add_typer(_keys)
_takes_keys_file = takes_settings("keys_file", "config")


@_keys.command("create")
@_takes_keys_file
def _create_key(
    settings: Settings,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Whose key it is, for people.")],
    scope: Annotated[
        list[Scope] | None,
        typer.Option(help="What it is good for; generate otherwise. admin is everything. May be given several times."),
    ] = None,
    expires: Annotated[float | None, typer.Option(metavar="DAYS", help="Days after which it is refused.")] = None,
    requests: Annotated[int | None, typer.Option(min=1, max=MAX_LIMIT, help="Requests in a minute.")] = None,
    tokens: Annotated[
        int | None, typer.Option(min=1, max=MAX_LIMIT, help="Tokens, of prompts and answers, in a minute.")
    ] = None,
    concurrent: Annotated[
        int | None, typer.Option(min=1, max=MAX_LIMIT, help="Requests that may run at the same time.")
    ] = None,
) -> None:
    """Make a key and show it, this once.

    It goes to standard output, alone. Limits that are not given are those of the server, --key-requests and its like.
    """
    from octavo.cli.keys import create_key

    create_key(settings, name, scope or [], expires, KeyLimits(requests, tokens, concurrent))


@_keys.command("list")
@_takes_keys_file
def _list_keys(settings: Settings) -> None:
    """Show all keys, revoked and expired ones too."""
    from octavo.cli.keys import list_keys

    list_keys(settings)


@_keys.command("revoke")
@_takes_keys_file
def _revoke_key(settings: Settings, id: Annotated[str, typer.Argument(metavar="ID")]) -> None:
    """Let running servers refuse a key from now on; what it has begun may end."""
    from octavo.cli.keys import revoke_key

    revoke_key(settings, id)


_logs = typer.Typer(name="logs", help="The prompt log, out of its database.", no_args_is_help=True)
app.add_typer(_logs)
_takes_log_settings = takes_settings("log_db", "log_spool", "config")
_SinceFlag = Annotated[
    str | None, typer.Option("--since", metavar="TIME", help="Rows from then on: Unix seconds or a date.")
]
_UntilFlag = Annotated[str | None, typer.Option("--until", metavar="TIME", help="Rows before then.")]


@_logs.command("list")
@_takes_log_settings
def _list_logs(
    settings: Settings,
    limit: Annotated[int, typer.Option(help="Most rows to show.", min=1, max=100_000)] = 50,
    before: Annotated[str, typer.Option(metavar="ID", help="Only rows older than this one.")] = "",
    key: Annotated[str, typer.Option(metavar="ID", help="Only of requests with this key.")] = "",
    user: Annotated[str, typer.Option(help="Only of requests that name this user.")] = "",
    model: Annotated[str, typer.Option(help="Only of this model or adapter.")] = "",
    since: _SinceFlag = None,
    until: _UntilFlag = None,
) -> None:
    """Show the newest rows in a table."""
    from octavo.cli.logs import list_logs, unix_time
    from octavo.store.prompt_log import LogQuery

    first, last = unix_time(since, flag="--since"), unix_time(until, flag="--until")
    list_logs(settings, LogQuery(limit, before, key, user, model, first, last))


@_logs.command("show")
@_takes_log_settings
def _show_log(settings: Settings, entry_id: Annotated[str, typer.Argument(metavar="ID")]) -> None:
    """Show all of a row, request and answer included."""
    from octavo.cli.logs import show_log

    show_log(settings, entry_id)


@_logs.command("export")
@_takes_log_settings
def _export_logs(settings: Settings, since: _SinceFlag = None, until: _UntilFlag = None) -> None:
    """Write all rows to standard output, a JSON object a line, the oldest first."""
    from octavo.cli.logs import export_logs, unix_time

    export_logs(settings, unix_time(since, flag="--since"), unix_time(until, flag="--until"))


@app.command("top")
def _top(
    url: UrlFlag = DEFAULT_URL,
    is_once: Annotated[bool, typer.Option("--once", help="Show the numbers since its start, and end.")] = False,
) -> None:
    """Watch a running server: requests, tokens, times, errors, memory."""
    from octavo.cli.top import top

    with reported_errors():
        top(url=url, is_once=is_once)


@app.command("ready")
def _ready(url: UrlFlag = DEFAULT_URL) -> None:
    """Ask a running server whether it can serve; the exit status is 0 when it can."""
    from octavo.cli.ready import ready

    with reported_errors():
        ready(url=url)


_adapters = typer.Typer(name="adapters", help="The LoRA adapters of a running server.", no_args_is_help=True)
app.add_typer(_adapters)


@_adapters.command("list")
def _list_adapters(url: UrlFlag = DEFAULT_URL, api_key: ApiKeyFlag = None) -> None:
    """Show the adapters, and how many requests use each now."""
    from octavo.cli.adapters import list_adapters

    with reported_errors():
        list_adapters(url=url, key=api_key)


@_adapters.command("load")
def _load_adapter(
    adapter_id: Annotated[str, typer.Argument(metavar="ID", help="Name by which requests choose it.")],
    path: Annotated[
        str,
        typer.Argument(metavar="PATH|hf:OWNER/REPO", help="A .gguf file in the server's --adapter-dir, or a download."),
    ],
    url: UrlFlag = DEFAULT_URL,
    api_key: ApiKeyFlag = None,
    scale: Annotated[
        float | None, typer.Option(help="How strongly it applies, beside its own alpha; 1 otherwise.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="The model that it is for; the first one otherwise.")] = None,
) -> None:
    """Load an adapter into the server."""
    from octavo.cli.adapters import load_adapter

    with reported_errors():
        load_adapter(adapter_id, path, url=url, key=api_key, scale=scale, model=model)


@_adapters.command("unload")
def _unload_adapter(
    adapter_id: Annotated[str, typer.Argument(metavar="ID")],
    url: UrlFlag = DEFAULT_URL,
    api_key: ApiKeyFlag = None,
) -> None:
    """Remove an adapter from the server, when the requests that use it are over."""
    from octavo.cli.adapters import unload_adapter

    with reported_errors():
        unload_adapter(adapter_id, url=url, key=api_key)
