"""The file of keys, JSON: `octavo keys` writes it, servers read it."""

import fcntl
import os
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from octavo.errors import ConfigError
from octavo.store.stored_key import StoredKey

_PRIVATE = 0o600


class _Contents(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    keys: tuple[StoredKey, ...]


class KeyFile:
    """At any moment the file is whole. Changes wait for each other. Who may read a new one is its owner alone."""

    def __init__(self, path: Path) -> None:
        self._path = path.expanduser()

    def read(self) -> Sequence[StoredKey]:
        """All keys, revoked and expired ones too, oldest first. Raises ConfigError."""
        try:
            return _parsed(self._path.read_bytes())
        except OSError as error:
            raise ConfigError(f"The file of keys {self._path} cannot be read: {error.strerror}.") from error
        except ValueError as error:
            raise ConfigError(f"The file of keys {self._path} is none: {error}.") from error

    def state(self) -> object:
        """Differs from an earlier one when the file may have changed in between. None: there is no file."""
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns

    def add(self, key: StoredKey) -> None:
        """Makes the file where there is none. Raises ConfigError."""
        with self._locked():
            self._write([*(self.read() if self._path.exists() else ()), key])

    def revoke(self, id: str) -> StoredKey:
        """Servers refuse the key from now on. Returns it as it is then. Raises ConfigError."""
        with self._locked():
            keys = {key.id: key for key in self.read()}
            if id not in keys:
                raise ConfigError(f"There is no key {id!r} in {self._path}.")
            key = keys[id]
            if key.revoked is None:
                key = keys[id] = msgspec.structs.replace(key, revoked=_now())
                self._write(list(keys.values()))
        return key

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """The lock is a file of its own, because the other one is replaced."""
        try:
            lock = os.open(f"{self._path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _PRIVATE)
        except OSError as error:
            raise self._not_written(error) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def _write(self, keys: Sequence[StoredKey]) -> None:
        data = msgspec.json.format(msgspec.json.encode(_Contents(tuple(keys))), indent=2)
        try:
            _replace(self._path.resolve(), data + b"\n")
        except OSError as error:
            raise self._not_written(error) from error

    def _not_written(self, error: OSError) -> ConfigError:
        return ConfigError(f"The file of keys {self._path} cannot be written: {error.strerror}.")


def _parsed(data: bytes) -> Sequence[StoredKey]:
    """Raises ValueError."""
    keys = msgspec.json.decode(data, type=_Contents).keys
    if len({key.id for key in keys}) < len(keys):
        raise ValueError("two keys have the same id")
    return keys


def _replace(path: Path, data: bytes) -> None:
    """Whoever reads meanwhile finds the old file or the new one, and so does who looks after a loss of power."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")  # which nobody else may read
    try:
        with open(descriptor, "wb") as file:
            _keep_readers(descriptor, path)
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        os.replace(name, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise
    _sync_folder(path.parent)


def _keep_readers(descriptor: int, path: Path) -> None:
    """A server that could read the file before must be able to read it when root, say, has changed it."""
    with suppress(FileNotFoundError):
        before, now = path.stat(), os.fstat(descriptor)
        if (before.st_uid, before.st_gid) != (now.st_uid, now.st_gid):
            os.fchown(descriptor, before.st_uid, before.st_gid)
        os.fchmod(descriptor, stat.S_IMODE(before.st_mode))


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)
