"""The fake engine's switches."""

from pydantic import BaseModel

from octavo.config.option import option

SCRIPTED = "Scripted engine"


class ScriptedSettings(BaseModel):
    scripted_text: str = option(
        "The quick brown fox jumps over the lazy dog.", "What it answers.", panel=SCRIPTED, metavar="TEXT"
    )
    scripted_piece_bytes: int = option(4, "Bytes of text per token.", panel=SCRIPTED, metavar="N", ge=1)
    scripted_delay: float = option(
        0.0, "Time between tokens.", panel=SCRIPTED, metavar="SECONDS", ge=0, allow_inf_nan=False
    )
    scripted_load_delay: float = option(
        0.0, "Time until it is ready.", panel=SCRIPTED, metavar="SECONDS", ge=0, allow_inf_nan=False
    )
    scripted_raise_at: int | None = option(
        None, "Fail the request at this token.", panel=SCRIPTED, metavar="INDEX", ge=0
    )
    scripted_hang_at: int | None = option(None, "Stop answering at this token.", panel=SCRIPTED, metavar="INDEX", ge=0)
    scripted_exit_at: int | None = option(
        None, "End the engine's process at this token; -1: while it loads.", panel=SCRIPTED, metavar="INDEX", ge=-1
    )
