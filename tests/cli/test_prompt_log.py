"""Where the prompt log is, as the options say."""

import os
from pathlib import Path

import pytest

from octavo.cli.prompt_log import build_prompt_log
from octavo.config import Settings, state_folder
from octavo.errors import ConfigError
from store.builders import make_entry


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "octavo"


def test_the_state_folder_is_xdgs_or_else_in_the_users_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ann")

    assert state_folder() == tmp_path / "state" / "octavo"
    for unset in ("", "relative"):  # which XDG says to ignore
        monkeypatch.setenv("XDG_STATE_HOME", unset)
        assert state_folder() == Path("/home/ann/.local/state/octavo")


def test_making_a_log_makes_no_file(tmp_path: Path) -> None:
    assert build_prompt_log(Settings()) is not None

    assert os.listdir(tmp_path) == []


async def test_without_options_rows_go_into_the_state_folder(state: Path) -> None:
    log = build_prompt_log(Settings())
    assert log is not None

    await log.start()
    await log.append(make_entry(1))
    await log.close()

    assert sorted(os.listdir(state)) == ["prompt-log.db", "spool"]


async def test_database_and_spool_are_where_the_options_say(tmp_path: Path) -> None:
    log = build_prompt_log(Settings(log_db="sqlite:///here.db", log_spool="spool"))
    assert log is not None

    await log.start()
    await log.append(make_entry(1))
    await log.close()

    assert sorted(os.listdir(tmp_path)) == ["here.db", "spool"]


def test_none_is_no_log() -> None:
    assert build_prompt_log(Settings(log_db="none")) is None


def test_a_bad_url_is_named_by_its_option() -> None:
    with pytest.raises(ConfigError, match=r"--log-db: .*'mysql'"):
        build_prompt_log(Settings(log_db="mysql://host/log"))
