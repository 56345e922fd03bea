"""What a process left in the spool goes to the database, whatever became of it."""

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from octavo.errors import PromptLogUnavailable
from octavo.store.database_url import read_database_url
from octavo.store.log_row import encode_row
from octavo.store.record import to_record
from octavo.store.segment import SegmentWriter
from octavo.store.set_aside import SetAside
from octavo.store.spool_files import SEGMENT_SIZE
from octavo.store.spool_folder import SpoolFolder
from store.builders import entry_id, make_entry, running_log
from store.waiting import until, until_degraded, until_moved
from support.log_databases import AnyDatabase, SqliteDatabase, limited_files

RECORDS = [to_record(encode_row(make_entry(number))) for number in range(3)]


@pytest.fixture
def file(tmp_path: Path) -> SqliteDatabase:
    return SqliteDatabase(tmp_path)


def left_behind(root: Path, url: str, content: bytes, number: int = 1) -> None:
    """As by a process that was killed."""
    folder = root / f"{read_database_url(url).digest}-1-{number:08}"
    folder.mkdir(parents=True)
    (folder / "00000001.rows").write_bytes(content)


async def test_rows_that_were_left_go_to_the_database_and_their_folder_is_removed(
    database: AnyDatabase, tmp_path: Path
) -> None:
    spool = tmp_path / "spool"
    left_behind(spool, database.url, RECORDS[0] + RECORDS[1])
    left_behind(spool, database.url, RECORDS[2], number=2)

    async with running_log(database.url, spool) as log:
        await until(lambda: log.status.num_stored == 3)

    assert await database.ids() == [entry_id(number) for number in range(3)]
    assert os.listdir(spool) == []


async def test_a_last_row_that_was_cut_anywhere_hinders_nothing(file: SqliteDatabase, tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    cuts = range(0, len(RECORDS[2]), 7)
    for cut in cuts:
        left_behind(spool, file.url, RECORDS[0] + RECORDS[1] + RECORDS[2][:cut], number=cut)

    async with running_log(file.url, spool) as log:
        await until(lambda: log.status.num_stored == 2 * len(cuts))
        await log.append(make_entry(9))
        await until_moved(log)

        assert log.status.num_set_aside == 0
    assert await file.ids() == [entry_id(0), entry_id(1), entry_id(9)]
    assert os.listdir(spool) == []


async def test_a_damaged_row_is_kept_aside_and_the_others_are_stored(
    database: AnyDatabase, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    spool = tmp_path / "spool"
    damaged = RECORDS[1].replace(b"Hello", b"Jello")
    left_behind(spool, database.url, RECORDS[0] + damaged + RECORDS[2])

    async with running_log(database.url, spool) as log:
        await until(lambda: (log.status.num_stored, log.status.num_set_aside) == (2, 1))
        assert log.status.set_aside == SetAside(1, len(damaged))
    assert await database.ids() == [entry_id(0), entry_id(2)]
    assert [(spool / name).read_bytes() for name in os.listdir(spool)] == [damaged]
    assert "cannot be stored" in caplog.text


async def test_rows_of_another_version_are_kept_aside(file: SqliteDatabase, tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    left_behind(spool, file.url, to_record(b"\x80") + RECORDS[0])

    async with running_log(file.url, spool) as log:
        await until(lambda: (log.status.num_stored, log.status.num_set_aside) == (1, 1))
    assert [(spool / name).read_bytes() for name in os.listdir(spool)] == [to_record(b"\x80")]


async def test_what_another_process_has_is_left_to_it(file: SqliteDatabase, tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    digest = read_database_url(file.url).digest
    other = SpoolFolder.make(spool, digest)
    other.new_segment(1).write_bytes(RECORDS[0])

    async with running_log(file.url, spool) as log:
        await log.append(make_entry(1))
        await until_moved(log)
        assert await file.ids() == [entry_id(1)]

    other.leave()
    async with running_log(file.url, spool) as log:
        await until(lambda: log.status.num_stored == 1)


async def test_rows_for_another_database_stay_where_they_are_and_the_log_says_so(
    file: SqliteDatabase, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    left_behind(tmp_path / "spool", f"sqlite:///{tmp_path / 'other.db'}", RECORDS[0])

    async with running_log(file.url, tmp_path / "spool") as log:
        await log.append(make_entry(1))
        await until_moved(log)

    assert await file.ids() == [entry_id(1)]
    assert len(os.listdir(tmp_path / "spool")) == 1
    assert "for another database" in caplog.text


async def test_rows_go_through_several_segments_in_their_order(file: SqliteDatabase, tmp_path: Path) -> None:
    text = "x" * (SEGMENT_SIZE // 5)
    async with running_log(file.url, tmp_path / "spool") as log:
        await log.append(make_entry(0))
        await until_moved(log)
        async with file.gone():
            for number in range(1, 15):
                await log.append(make_entry(number, answer=text))
        await until_moved(log)

    assert await file.ids() == [entry_id(number) for number in range(15)]


async def test_a_spool_that_cannot_be_written_refuses_says_so_and_recovers(
    file: SqliteDatabase, tmp_path: Path
) -> None:
    spool = tmp_path / "spool"
    spool.touch()
    async with running_log(file.url, spool) as log:
        with pytest.raises(PromptLogUnavailable):
            await log.append(make_entry(0))
        assert log.status.is_degraded
        assert log.status.num_waiting == 0
        with pytest.raises(PromptLogUnavailable):
            log.reserve(1)

        spool.unlink()
        await log.append(make_entry(1))
        assert not log.status.is_degraded
        await until_moved(log)

    assert await file.ids() == [entry_id(1)]


async def test_a_spool_that_somebody_removed_is_made_again(file: SqliteDatabase, tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    async with running_log(file.url, spool) as log:
        await log.append(make_entry(0))
        await until_moved(log)
        await until(lambda: not any(spool.rglob("*.rows")))
        for name in os.listdir(spool):
            shutil.rmtree(spool / name)

        await log.append(make_entry(1))
        await until_moved(log)

    assert await file.ids() == [entry_id(0), entry_id(1)]


async def test_rows_that_somebody_took_away_are_counted(file: SqliteDatabase, tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    async with running_log(file.url, spool) as log:
        await log.append(make_entry(0))
        await until_moved(log)
        async with file.locked():
            await log.append(make_entry(1))
            await until_degraded(log)  # with that row in its hands
            await log.append(make_entry(2))
            for path in spool.rglob("*.rows"):
                path.unlink()
        await until_moved(log)

        status = log.status
    assert (status.num_stored, status.num_set_aside, status.num_waiting, status.waiting_bytes) == (2, 1, 0, 0)


def test_a_write_that_fails_leaves_nothing_in_the_segment(tmp_path: Path) -> None:
    segment = SegmentWriter(tmp_path / "1.rows")
    segment.append(RECORDS[:1])
    with limited_files(segment.size + 10), pytest.raises(OSError, match="large"):
        segment.append(RECORDS[1:])

    sealed = segment.seal()

    assert (sealed.num_rows, sealed.read()) == (1, RECORDS[0])
    assert sealed.path.stat().st_size == len(RECORDS[0])


async def test_a_segment_that_cannot_be_read_hides_no_other(file: SqliteDatabase, tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    left_behind(spool, file.url, RECORDS[0])
    [folder] = spool.iterdir()
    (folder / "00000002.rows").mkdir()
    (folder / "00000003.rows").write_bytes(RECORDS[1])

    async with running_log(file.url, spool) as log:
        await until(lambda: log.status.num_stored == 2)

        assert "cannot be taken over" in log.status.message
    assert {path.name for path in folder.iterdir()} == {"lock", "00000002.rows"}


async def test_a_segment_that_cannot_be_read_any_more_is_set_aside(file: SqliteDatabase, tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    async with running_log(file.url, spool) as log:
        await log.append(make_entry(0))
        await until_moved(log)
        async with file.locked():
            await log.append(make_entry(1))
            await until_degraded(log)  # with that row in its hands
            await log.append(make_entry(2))
            newest = max(spool.rglob("*.rows"))
            newest.unlink()
            newest.mkdir()
        await until_moved(log)

        assert (log.status.num_stored, log.status.num_set_aside) == (2, 1)
        assert log.status.set_aside.num_files == 1
        assert ".bad" in log.status.message
    [aside] = spool.iterdir()
    assert aside.name == f"{newest.parent.name}-{newest.stem}.bad"


async def test_what_was_set_aside_is_counted_after_a_start_too_and_stays(file: SqliteDatabase, tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    spool.mkdir()
    for name, size in (("of-this-1.bad", 5), ("of-another-2.bad", 7), ("no-rows.txt", 100)):
        (spool / name).write_bytes(b"x" * size)
    before = sorted(os.listdir(spool))

    async with running_log(file.url, spool) as log:
        await until(lambda: log.status.set_aside == SetAside(2, 12))
        assert log.status.num_set_aside == 0
    assert sorted(os.listdir(spool)) == before


async def test_rows_that_come_together_are_cut_into_segments(file: SqliteDatabase, tmp_path: Path) -> None:
    text = "x" * (SEGMENT_SIZE // 2)
    async with running_log(file.url, tmp_path / "spool") as log:
        await log.append(make_entry(9))
        await until_moved(log)
        async with file.gone():
            await asyncio.gather(*(log.append(make_entry(number, answer=text)) for number in range(8)))
            sizes = [path.stat().st_size for path in (tmp_path / "spool").rglob("*.rows")]

            assert len(sizes) >= 4
            assert max(sizes) < 2 * SEGMENT_SIZE
        await until_moved(log)
