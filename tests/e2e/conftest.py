import signal
from collections.abc import AsyncIterator, Iterator

import httpx
import pytest

from support.processes import SECONDS, Server, are_gone, serving

from .wire import CONTEXT_LENGTH, NUM_SLOTS


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One `octavo serve` with the demo model for all tests; SIGTERM must end it whole."""
    arguments = ("--ctx", str(CONTEXT_LENGTH), "--slots", str(NUM_SLOTS))
    with serving(*arguments, engine="llama", folder=tmp_path_factory.mktemp("server")) as server:
        yield server.wait_ready()
        children = server.children()
        server.send(signal.SIGTERM)
        assert server.wait() == 0
        assert are_gone(children)
        assert "Traceback" not in server.log


@pytest.fixture
def client(server: Server) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client


@pytest.fixture
async def async_client(server: Server) -> AsyncIterator[httpx.AsyncClient]:
    """With a connection for every request that a test sends at a time."""
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=server.url, timeout=SECONDS, limits=limits, trust_env=False) as client:
        yield client
