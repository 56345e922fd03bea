"""A row on its way from the spool to the database."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from octavo.core.log_entry import LogEntry
from octavo.store.record import Damage, read_records, to_record

FEW_ROWS = 256
FEW_BYTES = 4 * 2**20
"""What is read from the database or written to it at once."""

_decode = msgspec.msgpack.Decoder(LogEntry).decode


@dataclass(frozen=True, slots=True)
class LogRow:
    """record: as in the spool."""

    record: bytes
    entry: LogEntry

    @property
    def size(self) -> int:
        return len(self.record)


@dataclass(frozen=True, slots=True)
class Batch:
    """What goes into the database together, and records that are none (any more)."""

    rows: tuple[LogRow, ...]
    damages: tuple[bytes, ...]

    @property
    def num_bytes(self) -> int:
        return size_of(self.rows)


class RowsRefused(Exception):
    """The database works, and does not take one of the rows."""


def encode_row(entry: LogEntry) -> bytes:
    """As it is in a record. A surrogate, which is no character, is spelled out."""
    try:
        return msgspec.msgpack.encode(entry)
    except UnicodeEncodeError:
        values = {name: _spelled_out(getattr(entry, name)) for name in entry.__struct_fields__}
        return msgspec.msgpack.encode(LogEntry(**values))


def read_batches(content: bytes) -> Iterator[Batch]:
    """All of a segment, in order, without what was not written to its end."""
    rows: list[LogRow] = []
    damages: list[bytes] = []
    num_bytes = 0
    for record in read_records(content):
        if isinstance(record, Damage):
            damages += [] if record.is_torn else [record.content]
            continue
        whole = to_record(record)
        try:
            rows.append(LogRow(whole, _decode(record)))
        except (msgspec.DecodeError, UnicodeError):  # what another version wrote
            damages.append(whole)
        num_bytes += len(whole)
        if len(rows) == FEW_ROWS or num_bytes >= FEW_BYTES:
            yield Batch(tuple(rows), tuple(damages))
            rows, damages, num_bytes = [], [], 0
    yield Batch(tuple(rows), tuple(damages))


def _spelled_out(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_spelled_out, value))
    return value.encode(errors="backslashreplace").decode() if isinstance(value, str) else value


def size_of(rows: Sequence[LogRow]) -> int:
    return sum(row.size for row in rows)
