"""Defaults < octavo.toml < environment < flags."""

import os
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from octavo.config.option import flag_of, variable_of
from octavo.config.settings import Settings
from octavo.errors import ConfigError

DEFAULT_FILE = Path("octavo.toml")
KEYS = frozenset({"api_key", "keys_file"})


def load_settings(flags: Mapping[str, Any]) -> Settings:
    """Settings from the file, the environment and `flags` (by option name; only those given). Raises ConfigError."""
    environment = _read_environment()
    config = (environment | dict(flags)).get("config")
    path = Path(config) if config else DEFAULT_FILE
    file = _read_file(path) if config or path.exists() else {}
    try:
        return Settings(**(file | environment | dict(flags)))
    except ValidationError as error:
        origins = ((flags, flag_of), (environment, variable_of), (file, lambda name: f"{name} in {path}"))
        raise ConfigError(" ".join(_explain(problem, origins) for problem in error.errors())) from error


def key_for_calls() -> str:
    """The key with which commands ask a server: the first one of OCTAVO_API_KEY, empty where there is none."""
    keys = os.environ.get(variable_of("api_key"), "").replace(",", " ").split()
    return keys[0] if keys else ""


def _read_environment() -> dict[str, Any]:
    """An empty variable is an absent one, but for those that close the server: then nobody may find it open."""
    values = ((name, os.environ.get(variable_of(name))) for name in Settings.model_fields)
    return {name: value for name, value in values if value or (value is not None and name in KEYS)}


def _read_file(path: Path) -> dict[str, Any]:
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"The settings file {path} cannot be read: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"The settings file {path} is not TOML: {error}.") from error
    known = Settings.model_fields.keys() - {"config"}
    unknown = [key for key in data if key.replace("-", "_") not in known]
    if unknown:
        raise ConfigError(f"Unknown settings in {path}: {', '.join(unknown)}.")
    return {key.replace("-", "_"): value for key, value in data.items()}


def _explain(problem: Any, origins: Sequence[tuple[Mapping[str, Any], Any]]) -> str:
    """`--port 99999: must be less than or equal to 65535.`"""
    message = problem["msg"].removeprefix("Value error, ")
    if not problem["loc"]:
        return str(message)
    name = problem["loc"][0]
    label = next(label_of(name) for values, label_of in origins if name in values)
    shown = f" {_shown(problem['input'])}" if Settings.model_fields[name].repr else ""
    return f"{label}{shown}: {message.replace('Input should', 'must', 1)}."


def _shown(value: object) -> str:
    return " ".join(map(repr, value)) if isinstance(value, tuple | list) else repr(value)
