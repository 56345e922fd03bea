"""What deletes rows in the prompt log's database."""

import asyncio
import math
import time
from collections.abc import AsyncIterator

from sqlalchemy import delete, func, select, tuple_

from octavo.store.log_database import LogDatabase
from octavo.store.log_row import FEW_ROWS
from octavo.store.log_sweeper import Retention
from octavo.store.log_table import BY_TIME, PROMPT_LOG, Place, first_of, place_in

SWEEP_TIME = 60.0
_MAX_BYTES = 16 * 2**20
_DAY = 86400

NOWHERE = (-math.inf, "")


async def newest_to_delete(database: LogDatabase, retention: Retention) -> Place:
    """It and all that are older are too old or too many. Raises what the database and its driver raise."""
    return max(_too_old(retention.days), await _too_much(database, retention.max_bytes))


async def delete_up_to(database: LogDatabase, newest: Place) -> AsyncIterator[int]:
    """All up to the newest, few at a time; how many. Raises what the database and its driver raise."""
    oldest_first = select(PROMPT_LOG.c.id, PROMPT_LOG.c.size).where(tuple_(*BY_TIME) <= newest).order_by(*BY_TIME)
    while True:
        async with asyncio.timeout(SWEEP_TIME), database.transaction() as connection:
            found = (await connection.execute(oldest_first.limit(FEW_ROWS))).mappings().all()
            ids = [row["id"] for row in first_of(found, _MAX_BYTES)]
            deleted = await connection.execute(delete(PROMPT_LOG).where(PROMPT_LOG.c.id.in_(ids)))
        if not ids:
            return
        yield deleted.rowcount


def _too_old(days: float | None) -> Place:
    return NOWHERE if days is None else (time.time() - days * _DAY, "")


async def _too_much(database: LogDatabase, max_bytes: int | None) -> Place:
    """The newest row that is one too many; those that come later change nothing about it."""
    if max_bytes is None:
        return NOWHERE
    total = func.sum(PROMPT_LOG.c.size).over(order_by=[column.desc() for column in BY_TIME]).label("total")
    sums = select(*BY_TIME, total).subquery()
    query = select(sums.c.created, sums.c.id).where(sums.c.total > max_bytes)
    newest_first = query.order_by(sums.c.created.desc(), sums.c.id.desc()).limit(1)
    async with asyncio.timeout(SWEEP_TIME), database.transaction() as connection:
        found = (await connection.execute(newest_first)).mappings().first()
    return NOWHERE if found is None else place_in(found)
