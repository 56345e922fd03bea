"""From settings to what is filtered out of answers."""

from typing import TYPE_CHECKING

from octavo.config import Settings, flag_of
from octavo.errors import ConfigError

if TYPE_CHECKING:
    from octavo.streaming import ContentFilter


def build_content_filter(settings: Settings) -> "ContentFilter | None":
    """None where nothing is filtered. Raises ConfigError for a bad pattern."""
    if not settings.content_filter:
        return None
    from octavo.streaming import ContentFilter  # most servers have none, and start sooner without its imports

    try:
        return ContentFilter(settings.content_filter)
    except ValueError as error:
        raise ConfigError(f"{flag_of('content_filter')}: {error}") from error
