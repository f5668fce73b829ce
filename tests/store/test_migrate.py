"""Migrations from made-up files, and the product's own, on a real PostgreSQL."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import tocsin
from tests.support.eventually import eventually
from tocsin.domain.errors import Conflict, Unavailable
from tocsin.store import migrate as module
from tocsin.store.failure import StatementFailed
from tocsin.store.migrate import (
    ADVISORY_LOCK,
    Migration,
    known_migrations,
    migrate,
    missing,
)
from tocsin.store.pool import Database, Session, open_session
from tocsin.store.query import Query

HISTORY = Query(
    "history", "SELECT id, name, sha256, version FROM tocsin.schema_migrations ORDER BY id"
)
TABLES = Query("tables", "SELECT relname FROM pg_class WHERE relname LIKE 'm\\_%' ORDER BY relname")


@pytest.fixture
async def session(empty_database_url: str) -> AsyncIterator[Session]:
    opened = await open_session(empty_database_url, application_name="tests")
    yield opened
    await opened.close()


def files(folder: Path, **texts: str) -> tuple[Migration, ...]:
    for name, text in texts.items():
        (folder / f"{name.removeprefix('m')}.sql").write_text(text)
    return known_migrations(folder)


async def tables(session: Session) -> list[str]:
    return [row["relname"] for row in await session.rows(TABLES)]


async def test_files_are_applied_in_order_and_once(
    empty_database_url: str, session: Session, tmp_path: Path
) -> None:
    known = files(
        tmp_path,
        m0002_second="INSERT INTO m_first VALUES (1);",
        m0001_first="CREATE TABLE m_first (id int);",
    )
    steps: list[str] = []
    applied = await migrate(
        empty_database_url, migrations=known, on_step=lambda step: steps.append(step.title)
    )

    assert [step.id for step in applied] == [1, 2]
    assert steps == ["0001_first", "0002_second"]
    assert await migrate(empty_database_url, migrations=known) == []
    rows = [tuple(row) for row in await session.rows(HISTORY)]
    assert rows == [(m.id, m.name, m.sha256, tocsin.__version__) for m in known]
    assert await session.value(Query("n", "SELECT count(*) FROM m_first")) == 1


async def test_everything_is_made_in_the_schema_tocsin(
    empty_database_url: str, session: Session, tmp_path: Path
) -> None:
    await migrate(
        empty_database_url, migrations=files(tmp_path, m0001_a="CREATE TABLE m_a (id int);")
    )
    elsewhere = Query(
        "elsewhere",
        "SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
        " WHERE n.nspname NOT IN ('tocsin', 'pg_catalog', 'information_schema', 'pg_toast')",
    )
    assert await session.value(elsewhere) == 0


async def test_a_failing_file_leaves_nothing_and_those_before_it_stay(
    empty_database_url: str, session: Session, tmp_path: Path
) -> None:
    known = files(
        tmp_path,
        m0001_good="CREATE TABLE m_good (id int);",
        m0002_bad="CREATE TABLE m_bad (id int); SELECT no_such_function();",
    )
    with pytest.raises(StatementFailed, match=r"0002_bad.*no_such_function"):
        await migrate(empty_database_url, migrations=known)

    assert await tables(session) == ["m_good"]
    assert [row["id"] for row in await session.rows(HISTORY)] == [1]


async def test_replicas_that_start_at_once_apply_each_file_once(
    empty_database_url: str, session: Session, tmp_path: Path
) -> None:
    known = files(
        tmp_path,
        m0001_a="CREATE TABLE m_a (id int); SELECT pg_sleep(0.05);",
        m0002_b="-- no-transaction\nCREATE INDEX CONCURRENTLY m_b ON m_a (id)",
        m0003_c="INSERT INTO m_a VALUES (1);",
    )
    applied = await asyncio.gather(
        *(migrate(empty_database_url, migrations=known) for _ in range(4))
    )

    assert sorted(len(each) for each in applied) == [0, 0, 0, 3]
    assert await session.value(Query("n", "SELECT count(*) FROM m_a")) == 1


async def test_a_replica_waits_its_turn_only_so_long(
    empty_database_url: str, session: Session, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr(module, "TURN_WAIT_S", 0.05)
    await session.rows(Query("take", "SELECT pg_advisory_lock($1)"), ADVISORY_LOCK)
    with pytest.raises(Unavailable) as caught:
        await migrate(empty_database_url, migrations=files(tmp_path, m0001_a="SELECT 1;"))

    assert caught.value.code == "migration_running"


async def test_the_turn_is_over_when_the_migration_is(
    empty_database_url: str, session: Session, tmp_path: Path
) -> None:
    free = Query("free", "SELECT pg_try_advisory_lock($1)")
    await migrate(empty_database_url, migrations=files(tmp_path, m0001_a="SELECT 1;"))

    assert await session.value(free, ADVISORY_LOCK)


async def test_a_statement_outside_of_a_transaction_needs_its_marker(
    empty_database_url: str, session: Session, tmp_path: Path
) -> None:
    concurrently = "CREATE INDEX CONCURRENTLY IF NOT EXISTS m_index ON m_a (id)"
    known = files(tmp_path, m0001_a="CREATE TABLE m_a (id int);", m0002_b=concurrently)
    with pytest.raises(StatementFailed, match="25001"):
        await migrate(empty_database_url, migrations=known)

    known = files(tmp_path, m0002_b=f"-- no-transaction\n{concurrently}")
    assert len(await migrate(empty_database_url, migrations=known)) == 1
    assert await tables(session) == ["m_a", "m_index"]


async def test_a_locked_table_is_tried_for_again_and_again_without_queueing_for_long(
    empty_database_url: str, session: Session, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr(module, "LOCK_TIMEOUT_MS", 20)
    monkeypatch.setattr(module, "LOCK_PAUSE_S", 0.01)
    await migrate(
        empty_database_url, migrations=files(tmp_path, m0001_a="CREATE TABLE m_a (id int);")
    )
    known = files(tmp_path, m0002_b="ALTER TABLE m_a ADD COLUMN b int;")
    waiting = Query(
        "waiting",
        "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'm_a'::regclass",
    )
    async with session.transaction():
        await session.script("hold", "LOCK TABLE m_a")
        migrating = asyncio.create_task(migrate(empty_database_url, migrations=known))
        # It queues, gives up its place to others, and queues again.
        await eventually(lambda: session.value(waiting))
        await eventually(lambda: _none(session, waiting))
        await eventually(lambda: session.value(waiting))
    assert [m.id for m in await migrating] == [2]

    known = files(tmp_path, m0003_c="ALTER TABLE m_a ADD COLUMN c int;")
    async with session.transaction():
        await session.script("hold", "LOCK TABLE m_a")
        with pytest.raises(Unavailable) as caught:
            await migrate(empty_database_url, migrations=known)
    assert caught.value.code == "migration_locked_out"
    assert "0003_c" in caught.value.detail


async def _none(session: Session, query: Query) -> bool:
    return await session.value(query) == 0


async def test_a_file_that_was_changed_after_it_was_applied_is_refused(
    empty_database_url: str, tmp_path: Path
) -> None:
    await migrate(empty_database_url, migrations=files(tmp_path, m0001_a="SELECT 1;"))
    with pytest.raises(Conflict) as caught:
        await migrate(empty_database_url, migrations=files(tmp_path, m0001_a="SELECT 2;"))

    assert caught.value.code == "migration_changed"
    assert "0001_a" in caught.value.detail


async def test_a_database_newer_than_the_program_names_the_version_it_needs(
    empty_database_url: str, tmp_path: Path, monkeypatch
) -> None:
    old = files(tmp_path, m0001_a="SELECT 1;")
    new = files(tmp_path, m0002_b="SELECT 2;")
    monkeypatch.setattr(tocsin, "__version__", "9.8.7")
    await migrate(empty_database_url, migrations=new)
    monkeypatch.undo()
    with pytest.raises(Conflict) as caught:
        await migrate(empty_database_url, migrations=old)

    assert caught.value.code == "database_newer"
    assert "0002_b" in caught.value.detail
    assert "9.8.7" in caught.value.remedy


async def test_a_file_added_below_an_applied_one_is_refused(
    empty_database_url: str, tmp_path: Path
) -> None:
    await migrate(empty_database_url, migrations=files(tmp_path, m0002_b="SELECT 2;"))
    with pytest.raises(Conflict) as caught:
        await migrate(empty_database_url, migrations=files(tmp_path, m0001_a="SELECT 1;"))

    assert caught.value.code == "migration_out_of_order"


@pytest.mark.parametrize("name", ["1_short.sql", "0001_Upper.sql", "0001-dash.sql", "0001_.sql"])
def test_a_badly_named_file_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("SELECT 1;")
    with pytest.raises(ValueError, match=name):
        known_migrations(tmp_path)


def test_a_number_that_is_given_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="0001_b"):
        files(tmp_path, m0001_a="SELECT 1;", m0001_b="SELECT 1;")


async def test_what_is_missing_can_be_asked_without_changing_anything(
    empty_database_url: str, session: Session, tmp_path: Path
) -> None:
    known = files(tmp_path, m0001_a="SELECT 1;", m0002_b="SELECT 1;")
    async with await Database.open(empty_database_url) as db:
        assert [m.id for m in await missing(db, known)] == [1, 2]
        assert not await session.value(module.HAS_SCHEMA)
        await migrate(empty_database_url, migrations=known[:1])

        assert [m.id for m in await missing(db, known)] == [2]


async def test_the_products_own_files_leave_nothing_missing(db: Database) -> None:
    assert known_migrations()
    assert await missing(db) == []


def test_the_products_own_files_are_numbered_without_a_gap() -> None:
    known = known_migrations()

    assert [m.id for m in known] == list(range(1, len(known) + 1))
