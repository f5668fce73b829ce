"""Vitals: what a database says about itself that decides whether Tocsin is well on it."""

from collections.abc import Sequence
from datetime import date, datetime, timedelta

from msgspec import Struct

from tocsin.store.pool import Connection
from tocsin.store.query import Query

#: Rows of any list here; a doctor needs no more to say what is wrong.
ROWS_MAX = 100


class Server(Struct, frozen=True):
    """PostgreSQL's own settings; `synchronous_commit` is what a session of ours gets."""

    version: str
    fsync: bool
    full_page_writes: bool
    synchronous_commit: str
    autovacuum: bool
    max_connections: int
    standby: bool
    read_only: bool = False


class Holder(Struct, frozen=True):
    """What keeps dead rows from being removed. name: application, prepared transaction or slot."""

    kind: str
    name: str
    pid: int | None
    since: datetime | None


class Backlog(Struct, frozen=True):
    """One lane. ready: due jobs; oldest: since when the longest waiting head of a class is due."""

    lane: int
    channel: str
    provider: str
    account: str
    paused_until: datetime | None
    pause_code: str | None
    pause_reason: str | None
    ready: int
    oldest: datetime | None


class Stale(Struct, frozen=True):
    """Leases whose time ran out before a given moment, and when the first of them did."""

    count: int
    first: datetime | None


SERVER = Query(
    "vitals_server",
    """
SELECT current_setting('server_version'), current_setting('fsync')::boolean,
       current_setting('full_page_writes')::boolean, current_setting('synchronous_commit'),
       current_setting('autovacuum')::boolean, current_setting('max_connections')::int,
       pg_is_in_recovery(), current_setting('transaction_read_only')::boolean
""",
)
TAKES_WRITES = Query(
    "vitals_takes_writes",
    "SELECT NOT pg_is_in_recovery() AND NOT current_setting('transaction_read_only')::boolean",
)
# xmin is what counts: a session that is idle and holds no snapshot harms nobody.
HOLDERS = Query(
    "vitals_holders",
    f"""
SELECT 'transaction', coalesce(nullif(application_name, ''), 'a session without a name'), pid,
       xact_start
  FROM pg_stat_activity
 WHERE datname = current_database() AND xact_start < $1 AND pid <> pg_backend_pid()
   AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL) AND backend_type = 'client backend'
UNION ALL
SELECT 'prepared transaction', gid, NULL, prepared FROM pg_prepared_xacts
 WHERE database = current_database() AND prepared < $1
UNION ALL
SELECT 'replication slot', slot_name::text, NULL, NULL FROM pg_replication_slots
 WHERE NOT active AND (xmin IS NOT NULL OR (database = current_database()
                                            AND catalog_xmin IS NOT NULL))
 LIMIT {ROWS_MAX}
""",
)
MISSING_PARTITIONS = Query(
    "vitals_missing_partitions",
    f"""
SELECT p.relname || '_' || to_char(d, 'YYYYMMDD')
  FROM pg_class p CROSS JOIN unnest($1::date[]) AS d
 WHERE p.relkind = 'p' AND p.relnamespace = 'tocsin'::regnamespace
   AND to_regclass('tocsin.' || p.relname || '_' || to_char(d, 'YYYYMMDD')) IS NULL
 ORDER BY 1 LIMIT {ROWS_MAX}
""",
)
BACKLOGS = Query(
    "vitals_backlogs",
    f"""
WITH waiting AS (SELECT lane, count(*) AS jobs FROM ready GROUP BY lane),
head AS (
    SELECT l.id AS lane, min(coalesce(o.next_at, j.scheduled_at)) AS since
      FROM lanes l CROSS JOIN unnest($1::smallint[]) AS u(class)
     CROSS JOIN LATERAL (
        SELECT job_id FROM ready r WHERE r.lane = l.id AND r.class = u.class
         ORDER BY tag, job_id LIMIT 1) r
      JOIN jobs j ON j.id = r.job_id
      LEFT JOIN LATERAL (
        SELECT next_at FROM outcomes o WHERE o.job_id = j.id ORDER BY attempt DESC LIMIT 1) o ON true
     GROUP BY l.id)
SELECT l.id, l.channel, l.provider, l.account, l.paused_until, l.pause_code, l.pause_reason,
       coalesce(w.jobs, 0), h.since
  FROM lanes l LEFT JOIN waiting w ON w.lane = l.id LEFT JOIN head h ON h.lane = l.id
 ORDER BY l.id LIMIT {ROWS_MAX}
""",
)
STALE_LEASES = Query(
    "vitals_stale_leases", "SELECT count(*), min(expires_at) FROM leases WHERE expires_at < $1"
)


async def server(db: Connection) -> Server:
    """PostgreSQL's settings that matter."""
    row = await db.row(SERVER)
    assert row is not None
    return Server(*row)


async def takes_writes(db: Connection) -> bool:
    """Whether anything can be stored: not on a standby, nor where sessions only read."""
    writable: bool = await db.value(TAKES_WRITES)
    return writable


async def holders(db: Connection, *, now: datetime, older_than: timedelta) -> list[Holder]:
    """Transactions and slots that have pinned the oldest visible row for longer than that."""
    return [Holder(*row) for row in await db.rows(HOLDERS, now - older_than)]


async def missing_partitions(db: Connection, days: Sequence[date]) -> list[str]:
    """Partitions that these days should have and do not."""
    return [row[0] for row in await db.rows(MISSING_PARTITIONS, list(days))]


async def backlogs(db: Connection, *, classes: Sequence[int]) -> list[Backlog]:
    """Every lane and what waits in it."""
    return [Backlog(*row) for row in await db.rows(BACKLOGS, list(classes))]


async def stale_leases(db: Connection, *, before: datetime) -> Stale:
    """Leases that ran out before then and that nobody took back."""
    row = await db.row(STALE_LEASES, before)
    assert row is not None
    return Stale(*row)
