"""A role that may not do what Tocsin does is told which right it lacks, and never of a defect."""

from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import pytest

from tests.support.postgres import TestServer, run_on
from tocsin.domain.errors import TocsinError
from tocsin.settings import parse
from tocsin.store import failure
from tocsin.store.migrate import migrate
from tocsin.store.pool import Database, Session, open_session
from tocsin.store.query import Query
from tocsin.wiring import open_core

POOR = "poor"
JOBS = Query("jobs_there", "SELECT count(*) FROM jobs")


def as_poor(url: str) -> str:
    """The same database, as the role without rights."""
    return url.replace(url.partition("@")[0], f"postgresql://{POOR}:secret")


def name_of(url: str) -> str:
    return urlsplit(url).path.lstrip("/")


@pytest.fixture
async def poor(postgres: TestServer) -> AsyncIterator[None]:
    """A role that may only log in."""
    await run_on(postgres.url, f"CREATE ROLE {POOR} LOGIN PASSWORD 'secret'")
    yield
    await run_on(postgres.url, f"DROP ROLE {POOR}")


async def told(work) -> TocsinError:
    with pytest.raises(TocsinError) as caught:
        await work
    assert "defect" not in caught.value.remedy
    assert "secret" not in caught.value.detail + caught.value.remedy
    return caught.value


async def test_who_may_not_make_the_schema_is_told_the_grant(
    poor: None, empty_database_url: str
) -> None:
    error = await told(migrate(as_poor(empty_database_url)))

    assert error.code == "database_right_missing"
    assert f"GRANT CREATE ON DATABASE {name_of(empty_database_url)} TO" in error.remedy


async def test_with_that_grant_the_migration_passes(
    poor: None, postgres: TestServer, empty_database_url: str
) -> None:
    name = name_of(empty_database_url)
    await run_on(postgres.url, f"GRANT CREATE ON DATABASE {name} TO {POOR}")
    try:
        assert await migrate(as_poor(empty_database_url))
    finally:
        await run_on(empty_database_url, f"DROP OWNED BY {POOR}")


async def test_who_does_not_own_the_schema_is_told_who_must(poor: None, database_url: str) -> None:
    for grant in (
        "",
        f"GRANT USAGE ON SCHEMA tocsin TO {POOR}",
        f"GRANT ALL ON ALL TABLES IN SCHEMA tocsin TO {POOR}",
    ):
        await run_on(database_url, *filter(None, [grant]))
        error = await told(_start(as_poor(database_url)))
        assert error.code == "database_right_missing"
        assert "owns the schema tocsin" in error.remedy
    await run_on(database_url, f"DROP OWNED BY {POOR}")


async def _start(url: str) -> None:
    await migrate(url)
    async with open_core(parse({}, ""), url, role="tests"):
        pass


async def test_a_schema_that_the_role_does_not_see_is_no_defect_either(
    poor: None, database_url: str
) -> None:
    session: Session = await open_session(as_poor(database_url), application_name="tests")
    try:
        error = await told(session.value(JOBS))
    finally:
        await session.close()

    assert error.code == "database_incomplete"
    assert "tocsin migrate" in error.remedy
    assert "USAGE" in error.remedy


async def test_who_may_not_connect_is_told_so(poor: None, empty_database_url: str) -> None:
    name = name_of(empty_database_url)
    await run_on(empty_database_url, f"REVOKE CONNECT ON DATABASE {name} FROM public")

    error = await told(Database.open(as_poor(empty_database_url)))

    assert error.code == "database_refused"
    assert "GRANT CONNECT" in error.remedy


@pytest.mark.parametrize(
    ("sqlstate", "code", "said"),
    [
        ("28P01", "database_refused", "password"),
        ("28000", "database_refused", "pg_hba.conf"),
        ("3D000", "database_refused", "does not exist"),
        ("08P01", "database_refused", "pooler"),
        ("57P03", "database_starting", "starting"),
        ("53300", "database_full", "role"),
        ("53100", "database_full", "disk space"),
        ("08006", "database_unreachable", "cannot be reached"),
        ("XX000", "database_unreachable", "cannot be reached"),
    ],
)
def test_a_session_that_is_not_opened_says_why(sqlstate: str, code: str, said: str) -> None:
    error = failure.unopened(sqlstate)

    assert error.code == code
    assert said in error.detail
    assert error.remedy
