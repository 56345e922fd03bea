"""How the prompt log is doing."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LogStatus:
    """is_degraded: rows cannot be written, moved or deleted now; `message` says which, without an address or a path.

    num_waiting, waiting_bytes: rows that are durable and not yet in the database, and their size.
    Since the start of this process: num_stored, rows that went into the database; num_deleted, rows that were too old
    or too many; num_set_aside, rows that are damaged, gone or refused by the database one by one; num_failures, what
    failed, whether it worked later or not.
    """

    is_degraded: bool
    message: str
    num_waiting: int
    waiting_bytes: int
    num_stored: int
    num_deleted: int
    num_set_aside: int
    num_failures: int
