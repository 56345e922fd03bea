"""A database that fails changes nothing for requests: rows wait in the spool, and each arrives once."""

import asyncio
import random
import sqlite3
from pathlib import Path
from typing import Self

import pytest
from sqlalchemy import Engine, event

from octavo.errors import LogEntryTooLarge, PromptLogUnavailable
from octavo.store.prompt_log import LogQuery, PromptLog
from store.builders import entries, entry_id, make_entry, running_log
from store.waiting import until, until_degraded, until_moved
from support.log_databases import FULL_SIZE, AnyDatabase, PostgresDatabase, SqliteDatabase
from support.postgres import Cluster

ROW = 25_000
SLOW = """
CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.3); RETURN NULL; END';
CREATE TRIGGER slow BEFORE INSERT ON prompt_log FOR EACH STATEMENT EXECUTE FUNCTION wait();
"""

COMMIT_LAZILY = """
DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = off', current_database()); END $$
"""
NEVER_UNLESS_DURABLE = """
CREATE FUNCTION ask() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF current_setting('synchronous_commit') = 'off' THEN RAISE 'not durable'; END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER durable BEFORE INSERT ON prompt_log FOR EACH STATEMENT EXECUTE FUNCTION ask();
"""


async def append_all(log: PromptLog, numbers: range) -> None:
    await asyncio.gather(*(log.append(make_entry(number)) for number in numbers))


async def is_taken(log: PromptLog, number: int) -> bool:
    try:
        await log.append(make_entry(number))
    except PromptLogUnavailable as error:
        return error.retry_after <= 0
    return True


def noise(seed: int) -> str:
    """Text that no database can compress much."""
    return random.Random(seed).randbytes(ROW * 6 // 8).hex()[:ROW]


async def assert_all_arrive_once(log: PromptLog, database: AnyDatabase, num_rows: int) -> None:
    await until_moved(log)
    assert await database.ids() == [entry_id(number) for number in range(num_rows)]
    assert (log.status.num_stored, log.status.num_set_aside) == (num_rows, 0)
    assert not log.status.is_degraded
    await database.check()


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["locked", "gone"])
async def test_rows_wait_for_a_database_that_is_locked_or_gone(
    database: AnyDatabase, fault: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running_log(database.url, tmp_path / "spool") as log:
        await append_all(log, range(10))
        await until_moved(log)
        async with getattr(database, fault)():
            await append_all(log, range(10, 30))
            await until_degraded(log)
            await append_all(log, range(30, 40))

            assert (log.status.num_waiting, log.status.num_stored) == (30, 10)
            log.reserve(1).give_back()  # nobody is refused
        await assert_all_arrive_once(log, database, 40)
    assert "cannot be moved to its database" in caplog.text


async def test_nobody_waits_for_a_database_that_is_slow(cluster: Cluster, tmp_path: Path) -> None:
    database = PostgresDatabase(cluster, await cluster.new_database())
    async with running_log(database.url, tmp_path / "spool") as log:
        await log.append(make_entry(0))
        await until_moved(log)
        await database.execute(SLOW)
        await log.append(make_entry(1))
        await append_all(log, range(2, 10))

        assert log.status.num_waiting > 0
        await assert_all_arrive_once(log, database, 10)


async def test_a_file_that_is_deleted_is_made_again(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path)
    async with running_log(database.url, tmp_path / "spool") as log:
        await append_all(log, range(5))
        await until_moved(log)
        database.file.unlink()
        await append_all(log, range(5, 10))
        await until_moved(log)

        assert [entry.id for entry in await entries(log, LogQuery(10))] == [entry_id(n) for n in reversed(range(5, 10))]
        assert not log.status.is_degraded
    assert await database.ids() == [entry_id(number) for number in range(5, 10)]


async def test_reading_does_not_wait_long_for_rows_that_cannot_be_moved(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path)
    async with running_log(database.url, tmp_path / "spool") as log:
        await log.append(make_entry(0))
        await until_moved(log)
        async with database.locked():
            await log.append(make_entry(1))

            assert await entries(log, LogQuery(10)) == [make_entry(0)]
        await until_moved(log)
        assert await entries(log, LogQuery(10)) == [make_entry(1), make_entry(0)]


async def test_reading_says_that_the_database_does_not_answer(database: AnyDatabase, tmp_path: Path) -> None:
    async with running_log(database.url, tmp_path / "spool") as log:
        await log.append(make_entry(0))
        await until_moved(log)
        async with database.gone():
            with pytest.raises(PromptLogUnavailable):
                await entries(log, LogQuery(1))
            with pytest.raises(PromptLogUnavailable):
                await log.entry(entry_id(0))
            with pytest.raises(PromptLogUnavailable):
                await anext(log.export())

        assert await log.entry(entry_id(0)) == make_entry(0)


async def test_a_database_that_is_down_at_start_hinders_nobody(database: AnyDatabase, tmp_path: Path) -> None:
    async with running_log(database.url, tmp_path / "spool") as log:
        await append_all(log, range(5))
    async with database.gone(), running_log(database.url, tmp_path / "spool") as log:
        await append_all(log, range(5, 10))
    async with running_log(database.url, tmp_path / "spool") as log:
        await entries(log, LogQuery(1))

        assert log.status.num_stored == 5
    assert await database.ids() == [entry_id(number) for number in range(10)]


@pytest.mark.slow
async def test_closing_does_not_wait_for_a_database_that_is_locked(database: AnyDatabase, tmp_path: Path) -> None:
    async with running_log(database.url, tmp_path / "spool") as log:
        await append_all(log, range(5))
    async with database.locked(), running_log(database.url, tmp_path / "spool") as log:
        await append_all(log, range(5, 10))
    assert log.status.num_waiting == 5

    async with running_log(database.url, tmp_path / "spool") as log:
        await until(lambda: log.status.num_stored == 5)
    assert await database.ids() == [entry_id(number) for number in range(10)]


@pytest.mark.slow
async def test_rows_wait_for_a_disk_that_is_full(database: AnyDatabase, tmp_path: Path) -> None:
    async with running_log(database.url, tmp_path / "spool") as log:
        num_rows = FULL_SIZE // ROW - 10
        for number in range(num_rows):
            await log.append(make_entry(number, request=noise(number)))
        await until_moved(log)
        async with database.full():
            while not log.status.is_degraded:
                await log.append(make_entry(num_rows, request=noise(num_rows)))
                num_rows += 1
        await assert_all_arrive_once(log, database, num_rows)


async def test_a_full_spool_refuses_and_takes_rows_again_when_the_database_is_back(
    database: AnyDatabase, tmp_path: Path
) -> None:
    async with running_log(database.url, tmp_path / "spool", max_spool=10_000) as log:
        await log.append(make_entry(0))
        await until_moved(log)
        num_taken = 1
        async with database.gone():
            while await is_taken(log, num_taken):
                num_taken += 1

            assert 1 < num_taken < 50
            assert "full" in log.status.message
            assert log.status.waiting_bytes <= 10_000
        await until_moved(log)
        await log.append(make_entry(num_taken))
        await assert_all_arrive_once(log, database, num_taken + 1)


async def test_a_row_larger_than_the_spool_is_refused(tmp_path: Path) -> None:
    async with running_log(f"sqlite:///{tmp_path / 'log.db'}", tmp_path / "spool", max_spool=10_000) as log:
        with pytest.raises(LogEntryTooLarge):
            await log.append(make_entry(0, answer="x" * 20_000))
        with pytest.raises(LogEntryTooLarge):
            log.reserve(20_000)

        assert not log.status.is_degraded
        assert log.status.num_waiting == 0


async def test_bad_rows_do_not_hinder_the_good_ones(database: AnyDatabase, tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    storable = {
        100: make_entry(100, user="a\0b", prompts=("a\0b",), answer="\0"),
        101: make_entry(101, user="\ud800", prompts=("\udfff",)),
        102: make_entry(102, request="x" * 10_000_000, prompts=("y" * 10_000_000,)),
        103: make_entry(103, answer="👩‍👩‍👧‍👦 é 漢字 \U0010ffff"),
    }
    refused = [make_entry(number, prompt_tokens=2**63) for number in range(104, 107)]
    good = [make_entry(number) for number in range(100)]
    mixed = [*good, *storable.values(), *refused]
    random.Random(1).shuffle(mixed)

    async with running_log(database.url, spool) as log:
        await asyncio.gather(*map(log.append, mixed))
        await until_moved(log)

        assert (log.status.num_stored, log.status.num_set_aside, log.status.num_waiting) == (104, 3, 0)
        assert log.status.message == "rows of the prompt log cannot be stored, and are in the .bad files of its spool"
        assert [entry async for entry in log.export() if entry in good] == good
        nul, surrogate, large, emoji = [await log.entry(entry_id(number)) for number in storable]
    assert (nul.user, nul.prompts, nul.answer) == ("a\\u0000b", ("a\0b",), "\\u0000")
    assert (surrogate.user, surrogate.prompts) == ("\\ud800", ("\\udfff",))
    assert (large, emoji) == (storable[102], storable[103])
    aside = b"".join(file.read_bytes() for file in spool.glob("*.bad"))
    assert all(entry.id.encode() in aside for entry in refused)
    assert not any(entry.id.encode() in aside for entry in good)


REFUSALS = {
    "postgresql": [
        ("ALTER TABLE prompt_log ADD extra text DEFAULT '' NOT NULL; ALTER TABLE prompt_log ALTER extra DROP DEFAULT",
         "ALTER TABLE prompt_log DROP extra"),
        ("ALTER TABLE prompt_log ALTER model TYPE varchar(3) USING 'abc'",
         "ALTER TABLE prompt_log ALTER model TYPE text"),
    ],
    "sqlite": [
        ("CREATE TRIGGER no BEFORE INSERT ON prompt_log BEGIN SELECT RAISE(ABORT, 'no'); END", "DROP TRIGGER no"),
    ],
}  # fmt: skip


@pytest.mark.slow
async def test_a_table_that_takes_no_row_at_all_is_waited_for(database: AnyDatabase, tmp_path: Path) -> None:
    num_rows = 1
    async with running_log(database.url, tmp_path / "spool") as log:
        await log.append(make_entry(0))
        await until_moved(log)
        for fault, cure in REFUSALS[database.url.partition(":")[0]]:
            await database.execute(fault)
            await append_all(log, range(num_rows, num_rows + 10))
            num_rows += 10
            await until_degraded(log)
            await database.execute(cure)
            await assert_all_arrive_once(log, database, num_rows)


async def test_a_row_is_durable_in_postgresql_where_others_need_not_be(cluster: Cluster, tmp_path: Path) -> None:
    database = PostgresDatabase(cluster, await cluster.new_database())
    await database.execute(COMMIT_LAZILY)
    async with running_log(database.url, tmp_path / "spool") as log:
        await log.append(make_entry(0))
        await until_moved(log)
        await database.execute(NEVER_UNLESS_DURABLE)
        await append_all(log, range(1, 3))
        await assert_all_arrive_once(log, database, 3)


class FaultAt:
    """One of the things that are done with databases fails: before a statement, after it, or instead of a commit."""

    STEPS = ("before_cursor_execute", "after_cursor_execute", "commit")

    def __init__(self, number: int) -> None:
        self._num_left = number
        self.has_come = False

    def __enter__(self) -> Self:
        for step in self.STEPS:
            event.listen(Engine, step, self._fail)
        return self

    def __exit__(self, *_: object) -> None:
        for step in self.STEPS:
            event.remove(Engine, step, self._fail)

    def _fail(self, *_: object) -> None:
        if self.has_come:
            return
        self._num_left -= 1
        if self._num_left < 0:
            self.has_come = True
            raise sqlite3.OperationalError("a fault")


@pytest.mark.slow
async def test_a_fault_at_any_step_loses_nothing_and_stores_nothing_twice(
    database: AnyDatabase, tmp_path: Path
) -> None:
    for number in range(65):
        await database.clear()
        num_acknowledged = 0
        async with running_log(database.url, tmp_path / f"spool-{number}") as log:
            with FaultAt(number) as fault:
                while not fault.has_come:
                    await log.append(make_entry(num_acknowledged))
                    num_acknowledged += 1
                    status = log.status
                    assert status.num_stored + status.num_waiting + status.num_set_aside == num_acknowledged
                    await until_moved(log)
            assert (log.status.num_stored, log.status.num_set_aside) == (num_acknowledged, 0), number
        assert await database.ids() == [entry_id(each) for each in range(num_acknowledged)], number
