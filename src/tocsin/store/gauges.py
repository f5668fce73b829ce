"""Gauges: what a benchmark puts into its database, reads off PostgreSQL, and takes away again."""

import re
from collections.abc import Sequence
from datetime import datetime
from urllib.parse import urlsplit, urlunsplit

from msgspec import Struct

from tocsin.store.plans import SCHEMA
from tocsin.store.pool import Connection, open_session
from tocsin.store.query import Query

_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")


class Backend(Struct, frozen=True):
    """The process of the asked connection; local: it came over a socket or from this host."""

    pid: int
    local: bool


SEED_PEOPLE = Query(
    "seed_people",
    """
INSERT INTO subscribers (project, id, email, first_name, last_name, locale, data,
                         created_at, updated_at)
SELECT $1, 'user-' || i, 'user-' || i || '@people.example',
       (ARRAY['Ada', 'Grace', 'Edsger', 'Barbara', 'Tony', 'Frances', 'Ken'])[1 + i % 7],
       (ARRAY['Lovelace', 'Hopper', 'Dijkstra', 'Liskov', 'Hoare'])[1 + i % 5],
       'en', '{"plan": "pro"}', $3, $3
  FROM generate_series(1, $2::int) AS i
""",
)
# One in ten has made a choice, and it is a yes: each is read, and nobody drops out.
SEED_PREFERENCES = Query(
    "seed_preferences",
    """
INSERT INTO preferences (project, subscriber_id, channel, topic, enabled, updated_at)
SELECT $1, 'user-' || i, 'email', 'news', true, $3 FROM generate_series(10, $2::int, 10) AS i
""",
)
SEED_SUPPRESSIONS = Query(
    "seed_suppressions",
    """
INSERT INTO suppressions (id, project, channel, address, scope, reason, created_at)
SELECT gen_random_uuid(), $1, 'email', 'gone-' || i || '@people.example', 'all', 'bounce', $3
  FROM generate_series(1, $2::int / 100) AS i
""",
)
ANALYZE_PEOPLE = Query("analyze_people", "ANALYZE subscribers, preferences, suppressions")

WAL_BYTES = Query("wal_bytes", "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint")
# Every delete and every update leaves one; what vacuum has removed since is counted too.
DEAD_TUPLES = Query(
    "dead_tuples",
    """
SELECT coalesce(sum(n_tup_del + n_tup_upd), 0)::bigint FROM pg_stat_user_tables
 WHERE schemaname = $1
""",
)
TABLE_BYTES = Query(
    "table_bytes",
    """
SELECT coalesce(p.relname, c.relname)::text AS name, sum(pg_total_relation_size(c.oid))::bigint
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
  LEFT JOIN pg_class p ON p.oid = i.inhparent
 WHERE n.nspname = $1 AND c.relkind = 'r'
 GROUP BY 1
""",
)
CHECKPOINT = Query("checkpoint", "CHECKPOINT")
SETTLED = Query("settled", "SELECT coalesce(sum(count), 0)::bigint FROM rollups WHERE project = $1")
ENDS = Query("ends", "SELECT state, count(*) FROM outcomes WHERE project = $1 GROUP BY state")
SETTLED_AT = Query(
    "settled_at",
    """
SELECT percentile_disc($2::float8[]) WITHIN GROUP (ORDER BY at) FROM outcomes WHERE project = $1
""",
)
BACKEND = Query(
    "backend",
    """
SELECT pg_backend_pid(), inet_client_addr() IS NOT DISTINCT FROM inet_server_addr()
""",
)
DATA_DIRECTORY = Query("data_directory", "SELECT current_setting('data_directory')")
OTHER_PROJECTS = Query(
    "other_projects",
    "SELECT count(*) FROM projects WHERE deleted_at IS NULL AND NOT starts_with(id, $1)",
)
IS_BUSY = Query(
    "is_busy",
    "SELECT EXISTS (SELECT FROM ready) OR EXISTS (SELECT FROM scheduled) OR EXISTS (SELECT FROM leases)",
)
ERASE = Query(
    "erase_project",
    """
WITH mine AS MATERIALIZED (SELECT id FROM jobs WHERE project = $1),
gone_ready AS (DELETE FROM ready USING mine WHERE job_id = mine.id),
gone_scheduled AS (DELETE FROM scheduled WHERE project = $1),
gone_leases AS (
    DELETE FROM leases WHERE EXISTS (SELECT FROM mine WHERE mine.id = ANY (job_ids)) RETURNING id),
gone_calls AS (DELETE FROM calls WHERE lease IN (SELECT id FROM gone_leases)),
gone_outcomes AS (DELETE FROM outcomes WHERE project = $1),
gone_cancellations AS (DELETE FROM cancellations WHERE project = $1),
gone_jobs AS (DELETE FROM jobs WHERE project = $1),
gone_contents AS (DELETE FROM contents WHERE project = $1),
gone_keys AS (DELETE FROM idempotency WHERE project = $1),
gone_clock AS (DELETE FROM project_clock WHERE project = $1),
gone_rollups AS (DELETE FROM rollups WHERE project = $1),
gone_messages AS (DELETE FROM inbox_messages WHERE project = $1),
gone_changes AS (DELETE FROM inbox_changes WHERE project = $1),
gone_inboxes AS (DELETE FROM inboxes WHERE project = $1),
gone_tickets AS (DELETE FROM stream_tickets WHERE project = $1),
gone_preferences AS (DELETE FROM preferences WHERE project = $1),
gone_suppressions AS (DELETE FROM suppressions WHERE project = $1),
gone_people AS (DELETE FROM subscribers WHERE project = $1)
DELETE FROM projects WHERE number = $1
""",
)
VACUUM = Query(
    "vacuum",
    """
VACUUM ready, scheduled, leases, jobs, contents, outcomes, rollups, subscribers, preferences,
       suppressions, inboxes, inbox_messages, inbox_changes
""",
)


async def seed(db: Connection, project: int, people: int, now: datetime) -> None:
    """People `user-1` … with addresses, choices and suppressed neighbours; statistics are fresh."""
    for query in (SEED_PEOPLE, SEED_PREFERENCES, SEED_SUPPRESSIONS):
        await db.execute(query, project, people, now)
    await db.execute(ANALYZE_PEOPLE)


async def wal_bytes(db: Connection) -> int:
    """How much write-ahead log was ever written; differences are what counts."""
    written: int = await db.value(WAL_BYTES)
    return written


async def dead_tuples(db: Connection) -> int:
    """Row versions that died, ever. A session reports them at most a second late, or at its end."""
    died: int = await db.value(DEAD_TUPLES, SCHEMA)
    return died


async def table_bytes(db: Connection) -> dict[str, int]:
    """Bytes on disk by table, indexes and all partitions included."""
    return {row[0]: row[1] for row in await db.rows(TABLE_BYTES, SCHEMA)}


async def checkpoint(db: Connection) -> None:
    """Write all dirty pages; it needs pg_checkpoint's rights."""
    await db.execute(CHECKPOINT)


async def vacuum(db: Connection) -> None:
    """Clear away what an erased project left."""
    await db.execute(VACUUM)


async def settled(db: Connection, project: int) -> int:
    """Attempts of the project's jobs that have ended."""
    count: int = await db.value(SETTLED, project)
    return count


async def ends(db: Connection, project: int) -> dict[int, int]:
    """How many attempts ended in which state."""
    return {row[0]: row[1] for row in await db.rows(ENDS, project)}


async def settled_at(db: Connection, project: int, shares: Sequence[float]) -> list[datetime]:
    """When these shares (0 to 1) of the project's outcomes had been written."""
    times: list[datetime] = await db.value(SETTLED_AT, project, shares)
    return times


async def backend(db: Connection) -> Backend:
    """Who serves this connection."""
    row = await db.row(BACKEND)
    assert row is not None
    return Backend(*row)


async def data_directory(db: Connection) -> str:
    """Where the server keeps its data; it needs pg_read_all_settings' rights."""
    path: str = await db.value(DATA_DIRECTORY)
    return path


async def other_projects(db: Connection, prefix: str) -> int:
    """How many living projects have an id that begins otherwise."""
    count: int = await db.value(OTHER_PROJECTS, prefix)
    return count


async def is_busy(db: Connection) -> bool:
    """Whether any job waits or is under way."""
    busy: bool = await db.value(IS_BUSY)
    return busy


async def erase(db: Connection, project: int) -> None:
    """Remove a project and everything of it."""
    await db.execute(ERASE, project)


async def create_database(url: str, name: str) -> str:
    """A new, empty database on the server of `url`; its URL."""
    await _on_server(url, f"CREATE DATABASE {_checked(name)}")
    return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))


async def drop_database(url: str, name: str) -> None:
    """Drop a database of the server of `url`, whoever is still connected."""
    await _on_server(url, f"DROP DATABASE IF EXISTS {_checked(name)} WITH (FORCE)")


def _checked(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError("the name of a database is a lower-case word here")
    return name


async def _on_server(url: str, statement: str) -> None:
    session = await open_session(url, application_name="tocsin bench")
    try:
        await session.script("database", statement)
    finally:
        await session.close()
