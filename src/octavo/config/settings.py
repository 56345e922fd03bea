"""All settings together. Each option is described once, in the part that it belongs to."""

import json
from collections.abc import Iterator
from typing import Self

from pydantic import ConfigDict, field_validator, model_validator

from octavo.config.access import AccessSettings
from octavo.config.limits import LimitSettings
from octavo.config.model import ModelSettings
from octavo.config.option import Option, flag_of, options_of
from octavo.config.prompt_log import PromptLogSettings
from octavo.config.scripted import ScriptedSettings
from octavo.config.server import ServerSettings

LLAMA_ONLY = frozenset(
    {
        *("threads", "token_budget", "cache_type_k", "cache_type_v", "prefix_cache", "speculation", "draft", "mmproj"),
        "deterministic",
    }
)


# Fields of the last base come first.
class Settings(ScriptedSettings, LimitSettings, PromptLogSettings, AccessSettings, ServerSettings, ModelSettings):
    """What can be set. `load_settings` makes one."""

    model_config = ConfigDict(extra="forbid", frozen=True)

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

    @field_validator("api_key", "allow_hosts", "allow_origins", mode="before")
    @classmethod
    def _read_names(cls, value: object) -> object:
        """Text is from the environment."""
        return value.replace(",", " ").split() if isinstance(value, str) else value

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

    def _is_of_other_engine(self, name: str) -> bool:
        return name in LLAMA_ONLY if self.engine == "scripted" else name.startswith("scripted_")


def options() -> Iterator[Option]:
    """All options, in the order in which they are described."""
    return options_of(Settings)
