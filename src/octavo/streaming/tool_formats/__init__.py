"""How model families write their calls, told from their chat templates: one small file each."""

from octavo.streaming.tool_formats.base import ToolFormat
from octavo.streaming.tool_formats.hermes import HERMES

FORMATS = (HERMES,)
"""The first whose signs are found is a template's."""

BY_NAME = {format.name: format for format in FORMATS}


def format_of(template_source: str) -> ToolFormat:
    """The format of a chat template's model; Hermes' where it shows none that is known."""
    return next((each for each in FORMATS if all(sign in template_source for sign in each.signs)), HERMES)


__all__ = ["BY_NAME", "FORMATS", "ToolFormat", "format_of"]
