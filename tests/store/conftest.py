"""Both databases."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.log_databases import AnyDatabase, PostgresDatabase, SqliteDatabase
from support.postgres import Cluster, running_cluster


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    with running_cluster() as running:
        yield running


@pytest.fixture(params=["sqlite", "postgresql"])
async def database(request: pytest.FixtureRequest, tmp_path: Path) -> AnyDatabase:
    if request.param == "sqlite":
        return SqliteDatabase(tmp_path)
    cluster: Cluster = request.getfixturevalue("cluster")
    return PostgresDatabase(cluster, await cluster.new_database())
