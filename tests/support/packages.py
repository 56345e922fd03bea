"""Files inside published packages that nobody has to install: fetched once and kept in the user's cache."""

import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

import pytest

SOURCES = ("--no-binary", ":all:", "--no-build-isolation")
WHEEL = ("--only-binary", ":all:")


@dataclass(frozen=True, slots=True)
class PackageFolder:
    """The files of a folder of a package whose names end in `suffix`.

    path: of the folder in the archive, from the archive's own top folder on where it is an sdist.
    place: of the files in the cache.
    build_backend: what is installed beforehand, because pip asks an sdist's build backend for its metadata; with it
        there nothing is built. None where the package comes as a wheel.
    """

    name: str
    version: str
    path: str
    suffix: str
    place: str
    build_backend: tuple[str, ...] | None = None

    def fetched(self) -> Path:
        """The folder in the cache. Raises subprocess.CalledProcessError where it is not there and cannot be fetched."""
        kept = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "octavo" / self.place / self.version
        if not kept.is_dir():
            kept.parent.mkdir(parents=True, exist_ok=True)
            with TemporaryDirectory(dir=kept.parent) as work:
                self._unpack(self._download(Path(work)), Path(work) / "files").rename(kept)
        return kept

    def _download(self, work: Path) -> Path:
        _run(sys.executable, "-m", "venv", work / "venv")
        pip = work / "venv" / "bin" / "pip"
        if self.build_backend:
            _run(pip, "install", *self.build_backend)
        form = WHEEL if self.build_backend is None else SOURCES
        _run(pip, "download", "--no-deps", *form, "--dest", work, f"{self.name}=={self.version}")
        return next(path for path in work.iterdir() if path.name.endswith((".tar.gz", ".whl")))

    def _unpack(self, archive: Path, target: Path) -> Path:
        target.mkdir()
        folder = PurePosixPath(self.path)
        for path, content in _files(archive):
            if path.is_relative_to(folder) and path.name.endswith(self.suffix):
                file = target / path.relative_to(folder)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)
        return target


@contextmanager
def skipped_if_not_fetched() -> Iterator[None]:
    """Skips the test, or the tests of the fixture, that cannot fetch a package."""
    try:
        yield
    except subprocess.CalledProcessError as error:
        pytest.skip(f"a package cannot be fetched: {error.stderr.decode()[-300:]}")


def _files(archive: Path) -> Iterator[tuple[PurePosixPath, bytes]]:
    """An sdist's without its top folder, which is named for the version."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            yield from ((PurePosixPath(name), wheel.read(name)) for name in wheel.namelist() if not name.endswith("/"))
        return
    with tarfile.open(archive) as sdist:
        for member in sdist:
            if file := sdist.extractfile(member):
                yield PurePosixPath(*PurePosixPath(member.name).parts[1:]), file.read()


def _run(*command: object) -> None:
    subprocess.run([str(part) for part in command], check=True, capture_output=True)
