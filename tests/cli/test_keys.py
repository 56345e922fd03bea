"""`octavo keys`, and what the other commands do with a key."""

import re
import subprocess
from pathlib import Path

import pytest

from octavo.core.api_key import digest_of
from octavo.store.key_file import KeyFile
from support.processes import OCTAVO, clean_environment, run_octavo

from .recording import recording

FILE = ("--keys-file", "keys.json")
FULL = Path("/dev/full")


def create(*arguments: str, folder: Path) -> str:
    """A new key's own text."""
    done = run_octavo("keys", "create", *arguments, *FILE, folder=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode().removesuffix("\n")


def test_a_new_key_is_all_that_goes_to_standard_output_and_is_kept_nowhere(tmp_path: Path) -> None:
    done = run_octavo("keys", "create", "ann", *FILE, folder=tmp_path)

    assert re.fullmatch(r"octv_[A-Za-z0-9_-]{43}\n", done.stdout.decode())
    secret = done.stdout.decode().strip()
    [key] = KeyFile(tmp_path / "keys.json").read()
    assert key.sha256 == digest_of(secret).hex()
    assert (key.name, key.scopes, key.expires) == ("ann", ("generate",), None)
    assert key.id in done.stderr.decode()
    for text in (done.stderr.decode(), (tmp_path / "keys.json").read_text(), key.id):
        assert secret.removeprefix("octv_") not in text


def test_scopes_a_time_and_limits_can_be_given(tmp_path: Path) -> None:
    scopes = ("--scope", "generate", "--scope", "admin")
    limits = ("--requests", "1", "--tokens", "2", "--concurrent", "3")
    create("ann", *scopes, "--expires", "1.5", *limits, folder=tmp_path)

    [key] = KeyFile(tmp_path / "keys.json").read()
    assert set(key.scopes) == {"generate", "admin"}
    assert key.expires is not None
    assert (key.expires - key.created).total_seconds() == 1.5 * 24 * 3600
    assert (key.requests, key.tokens, key.concurrent) == (1, 2, 3)


def test_the_list_shows_what_each_key_is_but_not_the_keys(tmp_path: Path) -> None:
    assert run_octavo("keys", "list", *FILE, folder=tmp_path).returncode == 2
    secrets = [create("ann", "--tokens", "5", folder=tmp_path), create("b", folder=tmp_path)]
    [first, _] = KeyFile(tmp_path / "keys.json").read()
    revoked = run_octavo("keys", "revoke", first.id, *FILE, folder=tmp_path)

    shown = run_octavo("keys", "list", *FILE, folder=tmp_path).stdout.decode()

    assert revoked.stdout.decode() == f"Revoked {first.id}, the key of ann.\n"
    heading, *lines = shown.splitlines()
    assert heading.split() == ["id", "name", "scopes", "created", "expires", "state", "limits"]
    assert [line.split()[:3] for line in lines] == [
        [first.id, "ann", "generate"],
        [lines[1].split()[0], "b", "generate"],
    ]
    assert "revoked" in lines[0]
    assert lines[0].endswith("tokens=5")
    assert not any(secret in shown for secret in secrets)


@pytest.mark.parametrize("limit", ["0", str(10**12 + 1), "1" + "0" * 400])
def test_a_limit_that_is_none_is_refused(tmp_path: Path, limit: str) -> None:
    done = run_octavo("keys", "create", "ann", "--tokens", limit, *FILE, folder=tmp_path)

    assert done.returncode == 2
    assert b"Traceback" not in done.stderr
    assert not (tmp_path / "keys.json").exists()


@pytest.mark.skipif(not FULL.exists(), reason="there is no such device here")
def test_a_key_that_could_not_be_shown_is_revoked(tmp_path: Path) -> None:
    with FULL.open("w") as full:
        done = subprocess.run(
            (OCTAVO, "keys", "create", "ann", *FILE),
            cwd=tmp_path,
            env=clean_environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )

    [key] = KeyFile(tmp_path / "keys.json").read()
    assert key.state == "revoked"
    assert done.returncode == 2
    message = f"octavo: The key could not be shown (No space left on device), so {key.id} is revoked.\n"
    assert done.stderr.decode() == message


def test_the_file_may_stand_in_the_environment_and_in_the_settings_file(tmp_path: Path) -> None:
    (tmp_path / "octavo.toml").write_text('keys-file = "from-toml.json"\n')

    run_octavo("keys", "create", "ann", folder=tmp_path)
    run_octavo("keys", "create", "bob", folder=tmp_path, OCTAVO_KEYS_FILE="from-env.json")

    assert [key.name for key in KeyFile(tmp_path / "from-toml.json").read()] == ["ann"]
    assert [key.name for key in KeyFile(tmp_path / "from-env.json").read()] == ["bob"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("create", "ann"), "Say which file has the keys: --keys-file FILE."),
        (("create", "", *FILE), "NAME '': must be 1 to 100 printable characters."),
        (("create", "a\nb", *FILE), "NAME 'a\\nb': must be"),
        (
            ("create", "ann", "--expires", "0", *FILE),
            "--expires '0': must be a minute at least, and at most 36500 d",
        ),
        (("create", "ann", "--expires", "0.000001", *FILE), "--expires '1e-06': must be"),
        (("create", "ann", "--expires", "nan", *FILE), "--expires 'nan': must be"),
        (("create", "ann", "--expires", "1e9", *FILE), "--expires '1e+09': must be"),
        (("create", "ann", "--keys-file", "none/keys.json"), "none/keys.json cannot be written: No such file or"),
        (("revoke", "key-1", *FILE), "keys.json cannot be read: No such file or directory."),
        (("list", *FILE), "keys.json cannot be read: No such file or directory."),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    done = run_octavo("keys", *arguments, folder=tmp_path)

    assert done.returncode == 2
    assert done.stdout == b""
    assert done.stderr.decode().startswith("octavo: ")
    assert message in done.stderr.decode()
    assert not (tmp_path / "keys.json").exists()


@pytest.mark.parametrize(
    ("flags", "variables", "sent"),
    [
        ((), {}, None),
        (("--api-key", "octv_flag"), {}, "Bearer octv_flag"),
        ((), {"OCTAVO_API_KEY": "octv_first, octv_second"}, "Bearer octv_first"),
        (("--api-key", "octv_flag"), {"OCTAVO_API_KEY": "octv_variable"}, "Bearer octv_flag"),
    ],
)
def test_commands_send_the_key_of_their_flag_or_of_the_environment(
    tmp_path: Path, flags: tuple[str, ...], variables: dict[str, str], sent: str | None
) -> None:
    commands = (
        ("complete", "hi"),
        ("chat", "hi"),
        ("adapters", "list"),
        ("adapters", "load", "a", "b"),
        ("adapters", "unload", "a"),
    )
    with recording() as server:
        for command in commands:
            run_octavo(*command, "--url", server.url, *flags, folder=tmp_path, **variables)

    assert len(server.requests) >= len(commands)
    assert {request.authorization for request in server.requests} == {sent}


def test_a_key_that_none_can_be_is_said_without_it(tmp_path: Path) -> None:
    done = run_octavo("complete", "hi", "--api-key", "schlüssel", folder=tmp_path)

    assert done.returncode == 2
    assert done.stderr.decode() == "octavo: The key for the server has characters that no key has, or too many.\n"
