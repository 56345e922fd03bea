"""The chat templates that come with llama.cpp's sources, fetched once and kept in the user's cache."""

import os
import subprocess
import sys
import tarfile
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

LLAMA_CPP = version("llama-cpp-python")
FOLDER = "vendor/llama.cpp/models/templates/"
# pip asks an sdist's build backend for its metadata; with the backend installed first nothing is built for it.
BACKEND = ("scikit-build-core>=0.11", "packaging", "pathspec")
DOWNLOAD = ("download", "--no-deps", "--no-binary", ":all:", "--no-build-isolation")


def templates() -> dict[str, str]:
    """Sources by name. Raises subprocess.CalledProcessError where they cannot be fetched."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "octavo" / "templates" / LLAMA_CPP
    if not cache.is_dir():
        cache.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=cache.parent) as work:
            _unpack(_fetch(Path(work)), Path(work) / "templates").rename(cache)
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted(cache.iterdir())}


def _fetch(work: Path) -> Path:
    _run(sys.executable, "-m", "venv", work / "venv")
    pip = work / "venv" / "bin" / "pip"
    _run(pip, "install", *BACKEND)
    _run(pip, *DOWNLOAD, "--dest", work, f"llama-cpp-python=={LLAMA_CPP}")
    return next(work.glob("*.tar.gz"))


def _unpack(archive: Path, target: Path) -> Path:
    target.mkdir()
    with tarfile.open(archive) as tar:
        for member in tar:
            if FOLDER in member.name and member.name.endswith(".jinja") and (file := tar.extractfile(member)):
                (target / Path(member.name).name).write_bytes(file.read())
    return target


def _run(*command: object) -> None:
    subprocess.run([str(part) for part in command], check=True, capture_output=True)
