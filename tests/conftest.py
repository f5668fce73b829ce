"""What every test may ask for: a database, an empty one, a server, a clock."""

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.support.clock import MovableClock
from tests.support.postgres import TestServer, running_server
from tocsin.store.pool import Database


@pytest.fixture(scope="session")
def postgres() -> Iterator[TestServer]:
    """PostgreSQL, one for this test process; started when the first test needs it."""
    with running_server() as server:
        yield server


@pytest.fixture
def database_url(postgres: TestServer) -> Iterator[str]:
    """The URL of a migrated database of this test's own."""
    with postgres.database() as url:
        yield url


@pytest.fixture
def empty_database_url(postgres: TestServer) -> Iterator[str]:
    """The URL of a database in which nothing has been migrated."""
    with postgres.database(migrated=False) as url:
        yield url


@pytest.fixture
async def db(database_url: str) -> AsyncIterator[Database]:
    """Both pools on this test's database."""
    async with await Database.open(database_url, application_name="tests") as database:
        yield database


@pytest.fixture
def clock() -> MovableClock:
    """Stands still until it is told."""
    return MovableClock()
