"""How an option is described, once, for the command line, the environment and the file."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ByteSize, Field
from pydantic.fields import FieldInfo

ENV_PREFIX = "OCTAVO_"


def option(default: Any, help: str, *, panel: str, metavar: str | None = None, **bounds: Any) -> Any:
    """A field of the settings; without a metavar it is a switch."""
    return Field(default, description=help, json_schema_extra={"panel": panel, "metavar": metavar}, **bounds)


@dataclass(frozen=True, slots=True)
class Option:
    """An option as the command line shows it. metavar: None for a switch. default: as text, or None.

    is_list: it has any number of values.
    """

    name: str
    help: str
    panel: str
    metavar: str | None
    default: str | None
    is_list: bool

    @property
    def flag(self) -> str:
        return flag_of(self.name)

    @property
    def is_switch(self) -> bool:
        return self.metavar is None

    @property
    def is_argument(self) -> bool:
        return self.name == "models"


def options_of(settings: type[BaseModel]) -> Iterator[Option]:
    """All options, in the order in which they are described."""
    for name, field in settings.model_fields.items():
        shown = field.json_schema_extra
        assert isinstance(shown, dict)
        yield Option(
            name,
            field.description or "",
            panel=str(shown["panel"]),
            metavar=_text(shown["metavar"]),
            default=_default_text(field),
            is_list=isinstance(field.default, tuple),
        )


def flag_of(name: str) -> str:
    return "MODEL" if name == "models" else f"--{name.replace('_', '-')}"


def variable_of(name: str) -> str:
    return f"{ENV_PREFIX}{name.upper()}"


def _default_text(field: FieldInfo) -> str | None:
    default = field.default
    if default is None or default == () or isinstance(default, bool):
        return None
    if isinstance(default, ByteSize):
        return default.human_readable()
    return f"{default:g}" if isinstance(default, float) else str(default)


def _text(value: object) -> str | None:
    return None if value is None else str(value)
