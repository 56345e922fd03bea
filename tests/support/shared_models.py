"""Small models that lie beside the checkout, in ../shared/models; the tests that need one are skipped without it."""

from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[3] / "shared" / "models"


def shared_model(name: str) -> Path:
    """A file or folder of them."""
    path = FOLDER / name
    if not path.exists():
        pytest.skip(f"{name} is not there: no folder shared/models beside the checkout", allow_module_level=True)
    return path
