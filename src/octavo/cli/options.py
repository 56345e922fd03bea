"""Command-line options made from the fields of `Settings`."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any, Concatenate

import typer

from octavo.cli.errors import reported_errors
from octavo.config import Option, Settings, load_settings, options

Command = Callable[Concatenate[Settings, ...], None]


def takes_settings(*names: str) -> Callable[[Command], Callable[..., None]]:
    """A decorator that makes a command of a function of settings, with flags for the named options (for all, if none).

    What else the function takes are the command's own arguments and flags. Values of options stay text until
    `load_settings` parses them, whichever source they come from.
    """
    chosen = [option for option in options() if not names or option.name in names]

    def decorate(command: Command) -> Callable[..., None]:
        _, *own = inspect.signature(command).parameters.values()

        @wraps(command)
        def run(**flags: Any) -> None:
            given = {parameter.name: flags.pop(parameter.name) for parameter in own}
            with reported_errors():
                settings = load_settings({name: value for name, value in flags.items() if value not in (None, [])})
                command(settings, **given)

        run.__signature__ = inspect.Signature([*own, *map(_parameter, chosen)])  # type: ignore[attr-defined]
        return run

    return decorate


def _parameter(option: Option) -> inspect.Parameter:
    """As typer reads it; the default None means: not given."""
    annotation: Any
    if option.is_argument:
        annotation = Annotated[list[str] | None, typer.Argument(help=option.help, metavar=option.metavar)]
    elif option.is_switch:
        off = option.flag.replace("--", "--no-", 1)
        shown = typer.Option(f"{option.flag}/{off}", help=option.help, rich_help_panel=option.panel)
        annotation = Annotated[bool | None, shown]
    elif option.is_list:
        annotation = Annotated[list[str] | None, _valued(option)]
    else:
        annotation = Annotated[str | None, _valued(option)]
    return inspect.Parameter(option.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _valued(option: Option) -> Any:
    return typer.Option(
        option.flag,
        help=option.help if option.default is None else f"{option.help} Default: {option.default}",
        metavar=option.metavar,
        rich_help_panel=option.panel,
    )
