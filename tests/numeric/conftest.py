import pytest

from .tiny_gguf import TinyModel, write_tiny_gguf


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> TinyModel:
    return write_tiny_gguf(tmp_path_factory.mktemp("tiny") / "tiny.gguf")
