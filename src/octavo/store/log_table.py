"""The prompt log as a table."""

import json
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from sqlalchemy import BigInteger, Column, Double, Index, Integer, MetaData, RowMapping, Table, Text

from octavo.core.log_entry import LogEntry

SCHEMA_VERSION = 1
_LISTS = ("prompts", "finish_reasons")
_TEXTS = {"request": "", "prompts": "[]", "answer": ""}
"""The columns that may be large, and what is as good as nothing in them."""

Place = tuple[float, str]
"""Of a row in the order of time: when it was created, and its id."""

METADATA = MetaData()

PROMPT_LOG = Table(
    "prompt_log",
    METADATA,
    # Compared by its bytes: the order of a language changes with the libraries of the database's machine.
    Column("id", Text().with_variant(Text(collation="C"), "postgresql"), primary_key=True),
    Column("created", Double, nullable=False),
    Column("size", BigInteger, nullable=False, comment="Bytes of the whole row"),
    Column("request_id", Text, nullable=False),
    Column("key_id", Text, nullable=False),
    Column("user", Text, nullable=False),
    Column("endpoint", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("status", BigInteger, nullable=False),
    Column("prompt_tokens", BigInteger, nullable=False),
    Column("completion_tokens", BigInteger, nullable=False),
    Column("cached_tokens", BigInteger, nullable=False),
    Column("seconds", Double, nullable=False),
    Column("seconds_to_first_token", Double),
    Column("finish_reasons", Text, nullable=False, comment="A JSON list"),
    Column("prompts", Text, nullable=False, comment="A JSON list"),
    Column("request", Text, nullable=False),
    Column("answer", Text, nullable=False),
)
# Pages, and what is too old or too much, are found in it alone, without the rows.
BY_TIME = (PROMPT_LOG.c.created, PROMPT_LOG.c.id)
WITHOUT_TEXTS = [column for column in PROMPT_LOG.c if column.name not in _TEXTS]
Index("prompt_log_by_time", *BY_TIME, PROMPT_LOG.c.size)

SCHEMA = Table("prompt_log_schema", METADATA, Column("version", Integer, primary_key=True, autoincrement=False))


def to_values(entry: LogEntry, size: int) -> Mapping[str, Any]:
    """What the columns have. U+0000, which PostgreSQL cannot store, is spelled out; in JSON it always is."""
    values = {name: getattr(entry, name) for name in LogEntry.__struct_fields__}
    lists = {name: json.dumps(values[name], ensure_ascii=False) for name in _LISTS}
    texts = {name: storable(value) for name, value in values.items() if isinstance(value, str)}
    return values | texts | lists | {"size": size}


def to_summary(row: RowMapping) -> LogEntry:
    """Of a row without its texts."""
    return to_entry(dict(row) | _TEXTS)


def to_entry(row: Mapping[str, Any] | RowMapping) -> LogEntry:
    values = {name: row[name] for name in LogEntry.__struct_fields__}
    return LogEntry(**values | {name: tuple(json.loads(values[name])) for name in _LISTS})


def place_in(row: RowMapping) -> Place:
    return row["created"], row["id"]


def first_of(rows: Sequence[RowMapping], max_bytes: int) -> Sequence[RowMapping]:
    """So many of those with a size that they have no more bytes together; one, whatever its size."""
    sums = accumulate(row["size"] for row in rows)
    num_fitting = sum(total <= max_bytes for total in sums)
    return rows[: max(1, num_fitting)]


def storable(text: str) -> str:
    return text.replace("\0", "\\u0000")
