from collections.abc import AsyncIterator

import httpx
import pytest

from .server import App, scripted


@pytest.fixture
def app() -> App:
    return scripted()


@pytest.fixture
async def client(app: App) -> AsyncIterator[httpx.AsyncClient]:
    async with app.client() as client:
        yield client
