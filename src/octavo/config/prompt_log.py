"""Where requests that ask for it are stored."""

from pydantic import BaseModel, ByteSize

from octavo.config.option import option

PROMPT_LOG = "Prompt log"


class PromptLogSettings(BaseModel):
    log_db: str | None = option(
        None,
        "Database of requests with log_prompt: sqlite:///FILE, postgresql://USER@HOST/NAME, or none. "
        "Default: a SQLite file in the user's state folder.",
        panel=PROMPT_LOG,
        metavar="URL",
        min_length=1,
    )
    log_spool: str | None = option(
        None,
        "Folder for rows on their way to the database. Default: in the user's state folder.",
        panel=PROMPT_LOG,
        metavar="FOLDER",
        min_length=1,
    )
    max_log_spool: ByteSize = option(
        ByteSize(256 * 2**20),
        "Size of the rows that wait for the database; beyond it, requests with log_prompt are refused with 503.",
        panel=PROMPT_LOG,
        metavar="SIZE",
        ge=1,
    )
    log_days: float | None = option(
        None, "Days after which a row is deleted.", panel=PROMPT_LOG, metavar="DAYS", gt=0, allow_inf_nan=False
    )
    max_log_size: ByteSize | None = option(
        None,
        "Size of all rows together, beyond which the oldest are deleted.",
        panel=PROMPT_LOG,
        metavar="SIZE",
        ge=1,
    )
