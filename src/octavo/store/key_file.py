"""The file of keys, JSON: `octavo keys` writes it, servers read it."""

import fcntl
import os
import stat
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from octavo.errors import ConfigError
from octavo.store.stored_key import StoredKey

MAX_SIZE = 8 * 2**20
"""Bytes: room for more than 20,000 keys."""
MAX_WAIT = 10.0
"""Seconds in which another program's change is waited for."""
_POLL_INTERVAL = 0.02
_PRIVATE = 0o600


class _Contents(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    keys: tuple[StoredKey, ...]


class KeyFile:
    """At any moment the file is whole. Changes wait for each other. Who may read a new one is its owner alone."""

    def __init__(self, path: Path, *, max_wait: float = MAX_WAIT) -> None:
        self._path = path.expanduser()
        self._max_wait = max_wait

    def read(self) -> Sequence[StoredKey]:
        """All keys, revoked and expired ones too, oldest first. Raises ConfigError."""
        try:
            return _parsed(_content(self._path))
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
        with self._locked() as path:
            self._write(path, [*(self.read() if path.exists() else ()), key])

    def revoke(self, id: str) -> StoredKey:
        """Servers refuse the key from now on. Returns it as it is then. Raises ConfigError."""
        with self._locked() as path:
            keys = {key.id: key for key in self.read()}
            if id not in keys:
                raise ConfigError(f"There is no key {id!r} in {self._path}.")
            key = keys[id]
            if key.revoked is None:
                key = keys[id] = msgspec.structs.replace(key, revoked=_now())
                self._write(path, list(keys.values()))
        return key

    @contextmanager
    def _locked(self) -> Iterator[Path]:
        """Where the file really is: links to one file have one lock, a file of its own because that one is replaced."""
        path = Path(os.path.realpath(self._path))
        try:
            lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _PRIVATE)
        except OSError as error:
            raise self._not_written(error) from error
        try:
            self._wait_for(lock)
            yield path
        finally:
            os.close(lock)

    def _wait_for(self, lock: int) -> None:
        deadline = time.monotonic() + self._max_wait
        while not _is_taken(lock):
            if time.monotonic() >= deadline:
                raise ConfigError(f"The file of keys {self._path} is being changed by another program.")
            time.sleep(_POLL_INTERVAL)

    def _write(self, path: Path, keys: Sequence[StoredKey]) -> None:
        data = msgspec.json.format(msgspec.json.encode(_Contents(tuple(keys))), indent=2) + b"\n"
        if len(data) > MAX_SIZE:
            raise ConfigError(f"The file of keys {self._path} is full: it would have more than {MAX_SIZE} bytes.")
        try:
            _replace(path, data)
        except OSError as error:
            raise self._not_written(error) from error

    def _not_written(self, error: OSError) -> ConfigError:
        return ConfigError(f"The file of keys {self._path} cannot be written: {error.strerror}.")


def _is_taken(lock: int) -> bool:
    """Whether we have it now."""
    with suppress(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def _opened_at_once(path: str, flags: int) -> int:
    """A pipe would wait for a writer."""
    return os.open(path, flags | os.O_NONBLOCK)


def _content(path: Path) -> bytes:
    """Raises OSError and ValueError."""
    with open(path, "rb", opener=_opened_at_once) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("it is no regular file")
        data = file.read(MAX_SIZE + 1)
    if len(data) > MAX_SIZE:
        raise ValueError(f"it has more than {MAX_SIZE} bytes")
    return data


def _parsed(data: bytes) -> Sequence[StoredKey]:
    """Raises ValueError."""
    keys = msgspec.json.decode(data, type=_Contents).keys
    if len({key.id for key in keys}) < len(keys):
        raise ValueError("two keys have the same id")
    if len({key.sha256 for key in keys}) < len(keys):
        raise ValueError("one key is there twice")
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
