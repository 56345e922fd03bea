"""What is too old or too much is deleted, the oldest first, and nothing else."""

import time
from pathlib import Path

from octavo.store.prompt_log import PromptLog, Retention
from store.builders import entry_id, make_entry, running_log
from store.waiting import until, until_moved
from support.log_databases import AnyDatabase, SqliteDatabase

DAY = 86400.0
TEXT = "x" * 10_000


async def append_all(log: PromptLog, numbers: range) -> None:
    for number in numbers:
        await log.append(make_entry(number, answer=TEXT))
    await until_moved(log)


async def test_rows_that_are_too_old_are_deleted(database: AnyDatabase, tmp_path: Path) -> None:
    now = time.time()
    async with running_log(database.url, tmp_path / "spool") as log:
        for number in range(600):
            age = 3 * DAY if number < 500 else 1 * DAY
            await log.append(make_entry(number, created=now - age + number))
        await until_moved(log)

    async with running_log(database.url, tmp_path / "spool", retention=Retention(days=2)) as log:
        await until(lambda: log.status.num_deleted == 500)

    assert await database.ids() == [entry_id(number) for number in range(500, 600)]


async def test_the_oldest_rows_are_deleted_where_all_together_are_too_large(
    database: AnyDatabase, tmp_path: Path
) -> None:
    async with running_log(database.url, tmp_path / "spool") as log:
        await append_all(log, range(20))

    async with running_log(database.url, tmp_path / "spool", retention=Retention(max_bytes=105_000)) as log:
        await until(lambda: log.status.num_deleted == 10)

    assert await database.ids() == [entry_id(number) for number in range(10, 20)]


async def test_what_is_written_is_looked_at_while_it_is_written(database: AnyDatabase, tmp_path: Path) -> None:
    async with running_log(database.url, tmp_path / "spool", retention=Retention(max_bytes=105_000)) as log:
        await append_all(log, range(30))
        await until(lambda: log.status.num_deleted >= 20)

    assert (await database.ids())[-1] == entry_id(29)
    assert len(await database.ids()) == 10


async def test_two_servers_delete_no_more_than_one_would(database: AnyDatabase, tmp_path: Path) -> None:
    retention = Retention(max_bytes=105_000)
    async with running_log(database.url, tmp_path / "spool") as log:
        await append_all(log, range(50))

    async with (
        running_log(database.url, tmp_path / "spool", retention=retention) as one,
        running_log(database.url, tmp_path / "spool", retention=retention) as other,
    ):
        await until(lambda: one.status.num_deleted + other.status.num_deleted >= 40)

    assert await database.ids() == [entry_id(number) for number in range(40, 50)]


async def test_the_space_of_deleted_rows_is_given_back_to_the_disk(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path)
    async with running_log(database.url, tmp_path / "spool") as log:
        await append_all(log, range(300))
    size = database.size

    async with running_log(database.url, tmp_path / "spool", retention=Retention(max_bytes=105_000)) as log:
        await until(lambda: database.size < 200_000)

        assert log.status.num_deleted == 290
    assert size > 3_000_000
    await database.check()


async def test_a_database_that_is_locked_is_swept_later(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path)
    async with running_log(database.url, tmp_path / "spool") as log:
        await append_all(log, range(20))

    async with running_log(database.url, tmp_path / "spool", retention=Retention(max_bytes=105_000)) as log:
        await until(lambda: log.status.num_deleted == 10)
        async with database.locked():
            await log.append(make_entry(30, answer=TEXT))
            await until(lambda: log.status.is_degraded)
        await append_all(log, range(31, 33))
        await until(lambda: log.status.num_deleted == 13)
