"""Settings: defaults < octavo.toml < environment < flags. Each option is described once, in `Settings`.

The option `drain_timeout` is `drain-timeout = 10` (or `drain_timeout = 10`) in the file, OCTAVO_DRAIN_TIMEOUT in the
environment and `--drain-timeout 10` on the command line. The environment is read here and nowhere else.
"""

import json
import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ByteSize,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic.fields import FieldInfo

from octavo.errors import ConfigError

DEFAULT_FILE = Path("octavo.toml")
ENV_PREFIX = "OCTAVO_"
MAX_SLOTS = 256
"""llama.cpp's LLAMA_MAX_SEQ."""
MAX_CONTEXT = 2**22
"""Times MAX_SLOTS, this still fits llama.cpp's 32-bit cell count."""
LLAMA_ONLY = frozenset(
    {
        *("threads", "token_budget", "cache_type_k", "cache_type_v", "prefix_cache", "speculation", "draft", "mmproj"),
        "deterministic",
    }
)

SERVER = "Server"
MODEL = "Model"
LIMITS = "Limits of a request"
SCRIPTED = "Scripted engine"


def _option(default: Any, help: str, *, panel: str, metavar: str | None = None, **bounds: Any) -> Any:
    """A described option; without a metavar it is a switch."""
    return Field(default, description=help, json_schema_extra={"panel": panel, "metavar": metavar}, **bounds)


def _read_adapter(text: str) -> tuple[str, str]:
    """Id and path. Raises ValueError."""
    id, _, path = text.partition("=")
    if not (id and path):
        raise ValueError("must be ID=PATH")
    return id, path


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


class Settings(BaseModel):
    """What can be set. `load_settings` makes one."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    models: tuple[str, ...] = _option((), "A .gguf file; nothing is the demo model.", panel=MODEL, metavar="MODEL")
    engine: Literal["llama", "scripted"] = _option(
        "llama", "llama, or scripted: a fake that says a given text.", panel=MODEL, metavar="NAME"
    )
    alias: str | None = _option(
        None,
        "Name under which the model is served; the file's name otherwise.",
        panel=MODEL,
        metavar="NAME",
        min_length=1,
        max_length=200,
    )
    ctx: int | None = _option(None, "Context of each sequence.", panel=MODEL, metavar="TOKENS", ge=2, le=MAX_CONTEXT)
    slots: int | None = _option(
        None, "Sequences computed at the same time; more wait in order.", panel=MODEL, metavar="N", ge=1, le=MAX_SLOTS
    )
    threads: int | None = _option(None, "Threads of the engine.", panel=MODEL, metavar="N", ge=1, le=512)
    token_budget: int = _option(
        512,
        "Tokens computed in a step: fewer for steadier streams beside long prompts, more for throughput.",
        panel=MODEL,
        metavar="TOKENS",
        ge=32,
        le=8192,
    )
    cache_type_k: str | None = _option(
        None, "Type of the KV cache's keys: f32, f16, bf16, q8_0, q4_0.", panel=MODEL, metavar="TYPE", min_length=1
    )
    cache_type_v: str | None = _option(
        None, "Type of the KV cache's values: the same names.", panel=MODEL, metavar="TYPE", min_length=1
    )
    prefix_cache: ByteSize | None = _option(
        None,
        "Memory for computed tokens of earlier requests, beside that of the slots: bytes, or as in 512MiB; 0 is none.",
        panel=MODEL,
        metavar="SIZE",
    )
    speculation: bool = _option(
        True, "Check several guessed tokens in a step where that is faster; each is drawn as without.", panel=MODEL
    )
    draft: str | None = _option(
        None,
        "A .gguf file of a smaller model with the same vocabulary: it guesses too, where that is faster.",
        panel=MODEL,
        metavar="GGUF",
        min_length=1,
    )
    mmproj: str | None = _option(
        None, "A .gguf file with which the model sees images (mmproj).", panel=MODEL, metavar="GGUF", min_length=1
    )
    adapter: tuple[str, ...] = _option(
        (),
        "A LoRA adapter to serve beside the model, a .gguf file; may be given several times.",
        panel=MODEL,
        metavar="ID=PATH",
    )
    adapter_dir: str | None = _option(
        None,
        "Folder from which clients may load adapters; without it they may load none.",
        panel=MODEL,
        metavar="FOLDER",
        min_length=1,
    )
    allow_adapter_downloads: bool = _option(
        False, "Let clients load adapters from Hugging Face (hf:owner/repo).", panel=MODEL
    )
    deterministic: bool = _option(
        False, "The same request gives the same bits, whatever else runs; costs throughput.", panel=MODEL
    )

    host: str = _option("127.0.0.1", "Address to listen on.", panel=SERVER, metavar="HOST", min_length=1)
    port: int = _option(8080, "Port to listen on; 0 is any free one.", panel=SERVER, metavar="PORT", ge=0, le=65535)
    strict: bool = _option(False, "Refuse unknown request fields instead of naming them in a header.", panel=SERVER)
    content_filter: tuple[str, ...] = _option(
        (),
        "Regular expression that ends an answer before its match; may be given several times.",
        panel=SERVER,
        metavar="PATTERN",
    )
    isolate_users: bool = _option(
        False, "Share computed tokens only between requests that name the same user.", panel=SERVER
    )
    allow_image_hosts: tuple[str, ...] = _option(
        (),
        "A host from which images may be fetched, or *.example.com for all below one; may be given several times.",
        panel=SERVER,
        metavar="HOST",
    )
    request_timeout: float | None = _option(
        None,
        "Time that a request gets, waiting included; then it ends with its text so far.",
        panel=SERVER,
        metavar="SECONDS",
        gt=0,
        allow_inf_nan=False,
    )
    drain_timeout: float = _option(
        30.0,
        "Time that running requests get when the server is told to stop; then they end with their text so far.",
        panel=SERVER,
        metavar="SECONDS",
        ge=0,
        allow_inf_nan=False,
    )
    log_level: Annotated[Literal["debug", "info", "warning", "error"], BeforeValidator(_lower)] = _option(
        "info", "Least level that is logged: debug, info, warning, error.", panel=SERVER, metavar="LEVEL"
    )
    log_json: bool = _option(False, "Log a JSON object a line, and show no start-up screen.", panel=SERVER)
    config: Path | None = _option(
        None, "Settings file to read in place of octavo.toml in the current folder.", panel=SERVER, metavar="FILE"
    )

    max_body: ByteSize | None = _option(
        None,
        "Size of a request's body: bytes, or as in 8MiB. Default: 8.0MiB, and 32.0MiB with --mmproj.",
        panel=LIMITS,
        metavar="SIZE",
        ge=1,
    )
    max_json_depth: int = _option(64, "Nesting of its JSON.", panel=LIMITS, metavar="N", ge=2, le=512)
    max_n: int = _option(128, "Samples of a prompt.", panel=LIMITS, metavar="N", ge=1)
    max_prompts: int = _option(256, "Prompts.", panel=LIMITS, metavar="N", ge=1)
    max_stop_strings: int = _option(16, "Stop strings.", panel=LIMITS, metavar="N", ge=1)
    max_stop_length: int = _option(256, "Characters of a stop string.", panel=LIMITS, metavar="N", ge=1)
    max_stop_tokens: int = _option(64, "Stop tokens.", panel=LIMITS, metavar="N", ge=1)
    max_top_logprobs: int = _option(20, "Most probable tokens told with each.", panel=LIMITS, metavar="N", ge=0)
    max_messages: int = _option(10_000, "Messages of a conversation.", panel=LIMITS, metavar="N", ge=1)
    max_images: int = _option(8, "Images of a conversation.", panel=LIMITS, metavar="N", ge=0)
    max_image_size: ByteSize = _option(
        ByteSize(10 * 2**20), "Size of an image's file.", panel=LIMITS, metavar="SIZE", ge=1
    )
    max_image_pixels: int = _option(50_000_000, "Pixels of an image.", panel=LIMITS, metavar="N", ge=1)
    max_fetch_time: float = _option(
        10.0, "Time in which an image must be fetched.", panel=LIMITS, metavar="SECONDS", gt=0, allow_inf_nan=False
    )
    max_adapters: int = _option(32, "Adapters that are served at a time.", panel=LIMITS, metavar="N", ge=0)
    max_adapter_size: ByteSize = _option(
        ByteSize(2 * 2**30), "Size of an adapter's file.", panel=LIMITS, metavar="SIZE", ge=1
    )
    max_tools: int = _option(128, "Functions that a model may call.", panel=LIMITS, metavar="N", ge=1)
    max_tools_size: ByteSize = _option(
        ByteSize(2**20), "Size of all their schemas together.", panel=LIMITS, metavar="SIZE", ge=1
    )
    max_schema: ByteSize = _option(
        ByteSize(64 * 2**10), "Size of a schema or grammar.", panel=LIMITS, metavar="SIZE", ge=1
    )
    max_schema_depth: int = _option(32, "Nesting of a schema.", panel=LIMITS, metavar="N", ge=1, le=512)
    max_compile_time: float = _option(
        2.0, "Time in which a grammar must be ready.", panel=LIMITS, metavar="SECONDS", gt=0, allow_inf_nan=False
    )
    max_queue_per_slot: int = _option(
        4, "Sequences that wait for each slot; more are refused with 503.", panel=LIMITS, metavar="N", ge=0
    )

    scripted_text: str = _option(
        "The quick brown fox jumps over the lazy dog.", "What it answers.", panel=SCRIPTED, metavar="TEXT"
    )
    scripted_piece_bytes: int = _option(4, "Bytes of text per token.", panel=SCRIPTED, metavar="N", ge=1)
    scripted_delay: float = _option(
        0.0, "Time between tokens.", panel=SCRIPTED, metavar="SECONDS", ge=0, allow_inf_nan=False
    )
    scripted_load_delay: float = _option(
        0.0, "Time until it is ready.", panel=SCRIPTED, metavar="SECONDS", ge=0, allow_inf_nan=False
    )
    scripted_raise_at: int | None = _option(
        None, "Fail the request at this token.", panel=SCRIPTED, metavar="INDEX", ge=0
    )
    scripted_hang_at: int | None = _option(None, "Stop answering at this token.", panel=SCRIPTED, metavar="INDEX", ge=0)
    scripted_exit_at: int | None = _option(
        None, "End the engine's process at this token; -1: while it loads.", panel=SCRIPTED, metavar="INDEX", ge=-1
    )

    @field_validator("models", mode="before")
    @classmethod
    def _accept_one_string(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value

    @field_validator("models")
    @classmethod
    def _refuse_later_models(cls, models: tuple[str, ...]) -> tuple[str, ...]:
        if len(models) > 1:
            raise ValueError("more than one model is not yet supported")
        if any(model.startswith("hf:") for model in models):
            raise ValueError("downloads from Hugging Face are not yet supported; give the path of a .gguf file")
        return models

    @field_validator("content_filter", "adapter", "allow_image_hosts", mode="before")
    @classmethod
    def _read_list(cls, value: object) -> object:
        """Text is from the environment; a pattern or path may hold any character, so there is none to split it at."""
        try:
            given = json.loads(value) if isinstance(value, str) else value
        except json.JSONDecodeError:
            given = None
        if not isinstance(given, list | tuple):
            raise ValueError("must be a list; in the environment, a JSON list")
        return given

    @field_validator("adapter")
    @classmethod
    def _check_adapters(cls, adapters: tuple[str, ...]) -> tuple[str, ...]:
        if len({_read_adapter(adapter)[0] for adapter in adapters}) < len(adapters):
            raise ValueError("two adapters have the same id")
        return adapters

    @field_validator("engine", mode="before")
    @classmethod
    def _refuse_later_engines(cls, engine: object) -> object:
        if engine == "vllm":
            raise ValueError("this engine is not yet supported; there are llama and scripted")
        return engine

    @model_validator(mode="after")
    def _refuse_what_would_be_ignored(self) -> Self:
        if self.engine == "scripted" and self.models:
            raise ValueError("The scripted engine takes no MODEL; --alias names it.")
        others = {name for name in self.model_fields_set if self._is_of_other_engine(name)}
        if others:
            names = ", ".join(sorted(map(flag_of, others)))
            raise ValueError(f"The {self.engine} engine has no {names}.")
        if self.draft is not None and not self.speculation:
            raise ValueError("A --draft model is of no use with --no-speculation; give only one of the two.")
        return self

    @property
    def adapters(self) -> Sequence[tuple[str, str]]:
        """Ids and paths of `adapter`."""
        return [_read_adapter(text) for text in self.adapter]

    def _is_of_other_engine(self, name: str) -> bool:
        return name in LLAMA_ONLY if self.engine == "scripted" else name.startswith("scripted_")


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


def options() -> Iterator[Option]:
    """All options, in the order in which they are described."""
    for name, field in Settings.model_fields.items():
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


def load_settings(flags: Mapping[str, Any]) -> Settings:
    """Settings from the file, the environment and `flags` (by option name; only those given). Raises ConfigError."""
    environment = _read_environment()
    config = (environment | dict(flags)).get("config")
    path = Path(config) if config else DEFAULT_FILE
    file = _read_file(path) if config or path.exists() else {}
    try:
        return Settings(**(file | environment | dict(flags)))
    except ValidationError as error:
        origins = ((flags, flag_of), (environment, _variable_of), (file, lambda name: f"{name} in {path}"))
        raise ConfigError(" ".join(_explain(problem, origins) for problem in error.errors())) from error


def _read_environment() -> dict[str, Any]:
    """An empty variable is an absent one."""
    values = ((name, os.environ.get(_variable_of(name))) for name in Settings.model_fields)
    return {name: value for name, value in values if value}


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
    return f"{label} {_shown(problem['input'])}: {message.replace('Input should', 'must', 1)}."


def _shown(value: object) -> str:
    return " ".join(map(repr, value)) if isinstance(value, tuple | list) else repr(value)


def _variable_of(name: str) -> str:
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
