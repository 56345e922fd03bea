from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest

from support.processes import Server, serving

from .zorp import EXACT, FILE, ZORP, asking, put_zorp


@pytest.fixture(scope="package")
def adapter_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """From which the server's clients may load adapters; it has the ZORP adapter."""
    folder = tmp_path_factory.mktemp("beside") / "adapters"
    folder.mkdir()
    put_zorp(folder)
    return folder


@pytest.fixture(scope="package")
def server(adapter_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The demo model with the ZORP adapter, whose answers have the same bits whatever else runs."""
    adapters = ("--adapter", f"{ZORP}={adapter_folder / FILE}", "--adapter-dir", str(adapter_folder))
    with serving(*EXACT, *adapters, engine="llama", folder=tmp_path_factory.mktemp("server")) as server:
        yield server.wait_ready()


@pytest.fixture
async def async_client(server: Server) -> AsyncIterator[httpx.AsyncClient]:
    async with asking(server) as client:
        yield client
