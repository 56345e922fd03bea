"""From settings to the prompt log."""

from pathlib import Path

from octavo.config import Settings, flag_of, state_folder
from octavo.errors import ConfigError
from octavo.store.prompt_log import PromptLog, Retention

_NO_LOG = "none"


def build_prompt_log(settings: Settings) -> PromptLog | None:
    """None where nothing is to be logged. Makes no file. Raises ConfigError."""
    if settings.log_db == _NO_LOG:
        return None
    url = settings.log_db or f"sqlite:///{state_folder() / 'prompt-log.db'}"
    spool = Path(settings.log_spool).expanduser().absolute() if settings.log_spool else state_folder() / "spool"
    size = settings.max_log_size
    retention = Retention(settings.log_days, None if size is None else int(size))
    try:
        return PromptLog(url, spool, int(settings.max_log_spool), retention)
    except ConfigError as error:
        raise ConfigError(f"{flag_of('log_db')}: {error.message}") from error
