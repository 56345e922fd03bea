"""The chat templates that come with llama.cpp's sources."""

from importlib.metadata import version

from support.packages import PackageFolder

FOLDER = PackageFolder(
    "llama-cpp-python",
    version("llama-cpp-python"),
    path="vendor/llama.cpp/models/templates",
    suffix=".jinja",
    place="templates",
    build_backend=("scikit-build-core>=0.11", "packaging", "pathspec"),
)


def templates() -> dict[str, str]:
    """Sources by name. Raises subprocess.CalledProcessError where they cannot be fetched."""
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted(FOLDER.fetched().iterdir())}
