"""What goes into the prompt log comes out of it, with either database."""

import asyncio
import os
from pathlib import Path
from stat import S_IFDIR, S_IFREG

import pytest

from octavo.errors import LogEntryNotFound, PromptLogUnavailable
from octavo.store.prompt_log import LogQuery, PromptLog
from store.builders import FOR_EVER, entries, entry_id, make_entry, running_log
from store.waiting import until_moved
from support.log_databases import AnyDatabase


def files_in(folder: Path) -> dict[Path, int]:
    """With their modes."""
    return {path: path.stat().st_mode for path in folder.rglob("*")}


async def test_a_row_is_found_by_its_id_as_it_was_written(database: AnyDatabase, tmp_path: Path) -> None:
    entry = make_entry(
        1, prompts=("Hé 😀", "two\nlines"), finish_reasons=("stop", "length"), seconds_to_first_token=None
    )

    async with running_log(database.url, tmp_path / "spool") as log:
        await log.append(entry)

        assert await log.entry(entry.id) == entry


async def test_what_is_not_there_is_said_not_to_be(database: AnyDatabase, tmp_path: Path) -> None:
    async with running_log(database.url, tmp_path / "spool") as log:
        with pytest.raises(LogEntryNotFound):
            await log.entry("cmpl-1")
        with pytest.raises(LogEntryNotFound):
            await entries(log, LogQuery(10, before="cmpl-1"))
        assert await entries(log, LogQuery(10)) == []
        assert [entry async for entry in log.export()] == []


async def test_pages_lead_through_all_rows_newest_first(database: AnyDatabase, tmp_path: Path) -> None:
    async with running_log(database.url, tmp_path / "spool") as log:
        for number in range(10):
            await log.append(make_entry(number, created=1000.0 + number // 4))  # some at the same moment

        found: list[str] = []
        while page := await entries(log, LogQuery(3, before=found[-1] if found else "")):
            found += [entry.id for entry in page]

    assert found == [entry_id(number) for number in reversed(range(10))]


async def test_rows_are_found_by_key_user_model_and_time(database: AnyDatabase, tmp_path: Path) -> None:
    async with running_log(database.url, tmp_path / "spool") as log:
        await log.append(make_entry(1, key_id="a", user="ann", model="small"))
        await log.append(make_entry(2, key_id="a", user="bob", model="large"))
        await log.append(make_entry(3, key_id="b", user="a\0b", model="large"))

        async def found(**query: object) -> list[str]:
            return [entry.id for entry in await entries(log, LogQuery(10, **query))]  # type: ignore[arg-type]

        assert await found(key_id="a") == [entry_id(2), entry_id(1)]
        assert await found(key_id="a", user="bob") == [entry_id(2)]
        assert await found(user="a\0b") == [entry_id(3)]
        assert await found(model="large", until=1003.0) == [entry_id(2)]
        assert await found(since=1002.0) == [entry_id(3), entry_id(2)]


async def test_the_export_has_all_rows_oldest_first(database: AnyDatabase, tmp_path: Path) -> None:
    large = "x" * 2**20
    async with running_log(database.url, tmp_path / "spool") as log:
        await asyncio.gather(*(log.append(make_entry(number)) for number in range(600)))
        await asyncio.gather(*(log.append(make_entry(number, answer=large)) for number in range(600, 610)))
        await until_moved(log)

        exported = [entry.id async for entry in log.export()]

    assert exported == [entry_id(number) for number in range(610)]


async def test_nothing_is_made_before_the_first_row(tmp_path: Path) -> None:
    async with running_log(f"sqlite:///{tmp_path / 'log.db'}", tmp_path / "spool") as log:
        await entries(log, LogQuery(1))
        log.reserve(1).give_back()

    assert files_in(tmp_path) == {}


async def test_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    async with running_log(f"sqlite:///{tmp_path / 'a' / 'log.db'}", tmp_path / "a" / "spool") as log:
        await log.append(make_entry(1))
        await until_moved(log)

        modes = files_in(tmp_path / "a")

    assert modes
    assert all(mode in (S_IFDIR | 0o700, S_IFREG | 0o600) for mode in modes.values())


async def test_many_appends_at_once_are_all_stored_and_share_what_it_costs_to_make_them_durable(
    database: AnyDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fsync, synced = os.fsync, list[int]()

    def counted(file: int) -> None:
        fsync(file)
        synced.append(file)

    monkeypatch.setattr(os, "fsync", counted)
    async with running_log(database.url, tmp_path / "spool") as log:
        await asyncio.gather(*(log.append(make_entry(number)) for number in range(200)))
        assert 1 <= len(synced) < 20
        await until_moved(log)

        assert (log.status.num_stored, log.status.is_degraded) == (200, False)
    assert await database.ids() == [entry_id(number) for number in range(200)]


async def test_an_append_that_is_cancelled_before_it_is_written_leaves_nothing(
    database: AnyDatabase, tmp_path: Path
) -> None:
    async with running_log(database.url, tmp_path / "spool") as log:
        tasks = [asyncio.create_task(log.append(make_entry(number))) for number in range(20)]
        await asyncio.sleep(0)
        for task in tasks[::2]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await until_moved(log)

        assert (log.status.waiting_bytes, log.status.num_stored) == (0, 10)
    assert await database.ids() == [entry_id(number) for number in range(1, 20, 2)]


async def test_what_was_appended_last_is_in_the_database_after_close(database: AnyDatabase, tmp_path: Path) -> None:
    async with running_log(database.url, tmp_path / "spool") as log:
        await asyncio.gather(*(log.append(make_entry(number)) for number in range(50)))
    with pytest.raises(PromptLogUnavailable):
        await log.append(make_entry(99))

    assert len(await database.ids()) == 50
    assert files_in(tmp_path / "spool") == {}


async def test_two_servers_share_a_database_and_a_spool(database: AnyDatabase, tmp_path: Path) -> None:
    async with running_log(database.url, tmp_path / "s") as one, running_log(database.url, tmp_path / "s") as other:
        await asyncio.gather(*((one, other)[number % 2].append(make_entry(number)) for number in range(100)))
        await until_moved(one)
        await until_moved(other)

        assert len(await entries(one, LogQuery(1000))) == 100


async def test_the_same_row_twice_is_one_row(database: AnyDatabase, tmp_path: Path) -> None:
    async with running_log(database.url, tmp_path / "spool") as log:
        await log.append(make_entry(1))
        await until_moved(log)
        await log.append(make_entry(1))
        await until_moved(log)

        assert await database.ids() == [entry_id(1)]


async def test_a_page_has_no_more_bytes_than_asked_for_but_at_least_a_row(
    database: AnyDatabase, tmp_path: Path
) -> None:
    async with running_log(database.url, tmp_path / "spool") as log:
        for number in range(4):
            await log.append(make_entry(number, answer="x" * 10_000))

        async def page(limit: int, max_bytes: int) -> tuple[list[str], bool]:
            found = await log.page(LogQuery(limit), max_bytes)
            return [entry.id for entry in found.entries], found.has_more

        assert await page(10, 25_000) == ([entry_id(3), entry_id(2)], True)
        assert await page(10, 1) == ([entry_id(3)], True)
        assert await page(3, 10**6) == ([entry_id(number) for number in (3, 2, 1)], True)
        assert await page(4, 10**6) == ([entry_id(number) for number in (3, 2, 1, 0)], False)


async def test_summaries_are_rows_without_their_texts(database: AnyDatabase, tmp_path: Path) -> None:
    async with running_log(database.url, tmp_path / "spool") as log:
        await log.append(make_entry(1))
        await log.append(make_entry(2))

        expected = make_entry(2, request="", prompts=(), answer="")
        assert await log.summaries(LogQuery(1)) == [expected]


async def test_the_export_has_what_fits_a_query(database: AnyDatabase, tmp_path: Path) -> None:
    async with running_log(database.url, tmp_path / "spool") as log:
        for number in range(10):
            await log.append(make_entry(number))

        exported = [entry.id async for entry in log.export(LogQuery(since=1003.0, until=1006.0))]

    assert exported == [entry_id(number) for number in (3, 4, 5)]


async def test_what_no_row_can_have_is_not_found(database: AnyDatabase, tmp_path: Path) -> None:
    async with running_log(database.url, tmp_path / "spool") as log:
        await log.append(make_entry(1))
        await until_moved(log)

        with pytest.raises(LogEntryNotFound):
            await log.entry("\ud800")
        assert await entries(log, LogQuery(user="\ud800")) == []


async def test_what_is_reserved_is_kept_free_until_it_is_used_or_given_back(tmp_path: Path) -> None:
    async with running_log(f"sqlite:///{tmp_path / 'log.db'}", tmp_path / "spool", max_spool=10_000) as log:
        first, second = log.reserve(4_000), log.reserve(6_000)
        with pytest.raises(PromptLogUnavailable):
            log.reserve(1)
        assert "full" in log.status.message

        await log.append(make_entry(1), first)
        with log.reserve(2_000):
            second.give_back()
            second.give_back()

        log.reserve(9_000)
        assert not log.status.is_degraded


async def test_closing_at_once_leaves_rows_for_the_next_start(database: AnyDatabase, tmp_path: Path) -> None:
    async with running_log(database.url, tmp_path / "spool") as log:
        await log.append(make_entry(0))
    async with database.locked():
        log = PromptLog(database.url, tmp_path / "spool", 2**20, FOR_EVER)
        await log.start()
        await log.append(make_entry(1))
        assert await log.has_unmoved()
        await log.close(0)
    assert await database.ids() == [entry_id(0)]

    async with running_log(database.url, tmp_path / "spool") as log:
        await entries(log, LogQuery(1))
        assert not await log.has_unmoved()
    assert await database.ids() == [entry_id(0), entry_id(1)]
