"""The file of keys, and servers that watch it."""

import asyncio
import fcntl
import json
import logging
import os
import stat
import threading
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from octavo.core.api_key import digest_of
from octavo.core.caller import MAX_LIMIT, Caller, KeyLimits, Scope
from octavo.errors import ConfigError
from octavo.store.key_file import MAX_SIZE, KeyFile
from octavo.store.stored_key import StoredKey
from octavo.store.watched_keys import WatchedKeys
from support.processes import SECONDS

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


def key(id: str = "key-1", **fields: Any) -> StoredKey:
    given = {"name": "alice", "sha256": digest_of(f"secret of {id}").hex(), "scopes": (Scope.GENERATE,), "created": NOW}
    return StoredKey(id, **{**given, **fields})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "keys.json"


@pytest.fixture
def file(path: Path) -> KeyFile:
    return KeyFile(path)


async def ids_now(watched: WatchedKeys) -> list[str]:
    return [key.caller.key_id for key in (await watched.current()).values()]


def ids(watched: WatchedKeys) -> list[str]:
    return asyncio.run(ids_now(watched))


def test_what_is_added_can_be_read(file: KeyFile) -> None:
    keys = [key("key-1", expires=NOW + timedelta(days=1), tokens=5), key("key-2", scopes=(Scope.ADMIN,))]
    for each in keys:
        file.add(each)

    assert list(file.read()) == keys


def test_the_file_is_json_for_people_which_only_its_owner_may_read(file: KeyFile, path: Path) -> None:
    file.add(key())

    assert json.loads(path.read_text())["keys"][0]["created"] == "2026-01-31T12:00:00Z"
    assert path.read_text().count("\n") > 10
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(Path(f"{path}.lock").stat().st_mode) == 0o600


def test_who_was_allowed_to_read_the_file_still_is(file: KeyFile, path: Path) -> None:
    file.add(key("key-1"))
    path.chmod(0o640)

    file.add(key("key-2"))

    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_link_stays_a_link(file: KeyFile, path: Path, tmp_path: Path) -> None:
    path.symlink_to(tmp_path / "real.json")

    file.add(key())

    assert path.is_symlink()
    assert KeyFile(tmp_path / "real.json").read() == file.read()


def test_links_to_a_file_have_its_lock(path: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.json"
    link.symlink_to(path)
    with open(f"{path}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for each in (path, link):
            with pytest.raises(ConfigError, match=r"json is being changed by another program\.$"):
                KeyFile(each, max_wait=0).add(key())
    KeyFile(link).add(key())

    assert {each.name for each in tmp_path.iterdir()} == {"keys.json", "link.json", "keys.json.lock"}


def test_what_is_no_file_is_refused_at_once(file: KeyFile, path: Path) -> None:
    os.mkfifo(path)

    for ask in (file.read, lambda: file.add(key()), lambda: WatchedKeys(file)):
        with pytest.raises(ConfigError, match=r"keys\.json is none: it is no regular file\.$"):
            ask()


def test_no_file_is_made_that_would_be_too_large_to_read(file: KeyFile) -> None:
    file.add(key())

    with pytest.raises(ConfigError, match=r"keys\.json is full: "):
        file.add(key("key-2", name="x" * MAX_SIZE))
    assert len(file.read()) == 1


def test_nothing_is_left_beside_the_file_and_its_lock(file: KeyFile, path: Path) -> None:
    file.add(key("key-1"))
    file.revoke("key-1")

    assert {each.name for each in path.parent.iterdir()} == {"keys.json", "keys.json.lock"}


def test_a_revoked_key_stays_in_the_file_with_its_time(file: KeyFile) -> None:
    file.add(key("key-1"))
    file.add(key("key-2"))

    revoked = file.revoke("key-1")

    assert revoked.revoked is not None
    assert file.read()[0] == revoked == file.revoke("key-1")
    assert [each.state for each in file.read()] == ["revoked", "valid"]


def test_an_unknown_key_cannot_be_revoked(file: KeyFile) -> None:
    file.add(key())

    with pytest.raises(ConfigError, match="There is no key 'key-2'"):
        file.revoke("key-2")


def test_a_key_is_valid_until_it_expires() -> None:
    assert key(expires=datetime.now(UTC) + timedelta(days=1)).state == "valid"
    assert key(expires=datetime.now(UTC)).state == "expired"


def test_a_key_tells_who_calls() -> None:
    stored = key("key-7", expires=NOW, requests=1, tokens=2, concurrent=3)

    asked = stored.to_key()

    assert asked.digest == digest_of("secret of key-7")
    assert asked.expires == NOW.timestamp()
    assert asked.caller == Caller("key-7", frozenset({Scope.GENERATE}), KeyLimits(1, 2, 3))


def add_some(path: Path, writer: int) -> None:
    for number in range(5):
        KeyFile(path).add(key(f"key-{writer}-{number}"))


def test_changes_of_several_processes_are_all_kept(path: Path, file: KeyFile) -> None:
    with ProcessPoolExecutor(4) as writers:
        list(writers.map(add_some, [path] * 4, range(4)))

    assert len(file.read()) == 20


GOOD = {"id": "k", "name": "n", "sha256": "0" * 64, "scopes": ["generate"], "created": "2026-01-31T12:00:00Z"}


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", "{}", '{"keys": 3}', "\xff"),
        json.dumps({"keys": [GOOD], "version": 2}),
        json.dumps({"keys": [GOOD, {**GOOD, "sha256": "1" * 64}]}),
        json.dumps({"keys": [GOOD, {**GOOD, "id": "other", "revoked": GOOD["created"]}]}),
        json.dumps({"keys": []}) + " " * MAX_SIZE,
        *(
            json.dumps({"keys": [{**GOOD, **changed}]})
            for changed in (
                {"sha256": "abc"},
                {"sha256": "A" * 64},
                {"sha256": "0" * 64 + "\n"},
                {"scopes": []},
                {"scopes": ["all"]},
                {"id": ""},
                {"id": "a b"},
                {"id": "a\n"},
                {"created": "2026-01-31T12:00:00"},
                {"expires": "soon"},
                {"expires": 0},
                {"tokens": 0},
                {"tokens": 10**400},
                {"requests": MAX_LIMIT + 1},
                {"concurrent": 1.5},
                {"only_from": "10.0.0.1"},
            )
        ),
    ],
)
def test_a_file_that_is_none_is_refused_with_its_name(file: KeyFile, path: Path, text: str) -> None:
    path.write_text(text, encoding="latin-1")

    with pytest.raises(ConfigError, match=r"^The file of keys .*keys\.json is none: "):
        file.read()
    with pytest.raises(ConfigError, match=r"is none: "):
        file.add(key())
    assert path.read_text(encoding="latin-1") == text


def test_a_file_that_is_not_there_cannot_be_watched(file: KeyFile) -> None:
    with pytest.raises(ConfigError, match=r"keys\.json cannot be read: No such file or directory\.$"):
        WatchedKeys(file)


def test_changes_are_seen_while_a_server_runs(file: KeyFile) -> None:
    file.add(key("key-1"))
    watched = WatchedKeys(file, max_age=0)
    assert ids(watched) == ["key-1"]

    file.add(key("key-2"))
    assert ids(watched) == ["key-1", "key-2"]

    file.revoke("key-1")
    assert ids(watched) == ["key-2"]


def test_the_file_is_not_looked_at_for_every_request(file: KeyFile) -> None:
    file.add(key("key-1"))
    watched = WatchedKeys(file, max_age=1e9)

    file.add(key("key-2"))

    assert ids(watched) == ["key-1"]


def test_a_file_that_was_written_in_place_is_seen(file: KeyFile, path: Path) -> None:
    file.add(key("key-1"))
    watched = WatchedKeys(file, max_age=0)

    text, earlier = path.read_text().replace("key-1", "key-9"), path.stat()
    path.write_text(text)
    os.utime(path, ns=(earlier.st_atime_ns, earlier.st_mtime_ns + 1))

    assert ids(watched) == ["key-9"]


@pytest.mark.parametrize("text", [None, "{"])
def test_no_key_of_a_file_that_can_no_longer_be_read_is_accepted(
    file: KeyFile, path: Path, text: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    file.add(key())
    whole = path.read_text()
    watched = WatchedKeys(file, max_age=0)

    path.unlink()
    if text is not None:
        path.write_text(text)
    assert [ids(watched) for _ in range(3)] == [[], [], []]
    path.write_text(whole)
    assert ids(watched) == ["key-1"]

    assert [record.levelno for record in caplog.records] == [logging.ERROR, logging.WARNING]
    assert caplog.records[0].message.startswith("None of the keys in the file is accepted until it can be read again: ")


class SlowFile(KeyFile):
    """It can be read once, and then again when `may_go_on`."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.may_go_on = threading.Event()
        self.may_go_on.set()

    def read(self) -> Sequence[StoredKey]:
        self.may_go_on.wait(SECONDS)
        return super().read()


async def test_while_a_changed_file_is_read_nobody_is_told_what_was_and_the_server_goes_on(path: Path) -> None:
    file = SlowFile(path)
    file.add(key("key-1"))
    watched = WatchedKeys(file, max_age=0)
    KeyFile(path).revoke("key-1")
    file.may_go_on.clear()

    waiting = [asyncio.create_task(ids_now(watched)) for _ in range(3)]
    done, _ = await asyncio.wait(waiting, timeout=0.1)
    assert not done
    file.may_go_on.set()

    assert await asyncio.gather(*waiting) == [[], [], []]


async def test_no_key_of_a_file_that_takes_too_long_to_read_is_accepted_until_it_is_read(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = SlowFile(path)
    file.add(key("key-1"))
    watched = WatchedKeys(file, max_age=0, max_look=0.05)
    KeyFile(path).add(key("key-2"))
    file.may_go_on.clear()

    assert [await ids_now(watched) for _ in range(3)] == [[], [], []]
    file.may_go_on.set()
    while not await ids_now(watched):
        pass

    assert [record.levelno for record in caplog.records] == [logging.ERROR, logging.WARNING]
