"""Upkeep's statements: daily partitions made ahead, what expired removed in bounded steps."""

from datetime import datetime, timedelta

from tocsin.store.pool import Connection
from tocsin.store.query import Query

#: Days of partitions kept ready before and after today: a clock that is set, a worker that is late.
DAYS_BEFORE = 1
DAYS_AHEAD = 3
#: Rows of one table removed in one step.
EXPIRED_MAX = 5_000

ENSURE_PARTITIONS = Query("ensure_partitions", "SELECT ensure_partitions($1::date, $2::date)")
DROP_EXPIRED = Query(
    "drop_expired",
    f"""
WITH k AS (
    DELETE FROM idempotency WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM idempotency WHERE expires_at <= $1 ORDER BY expires_at
         LIMIT {EXPIRED_MAX} FOR UPDATE SKIP LOCKED)) RETURNING 1),
t AS (
    DELETE FROM stream_tickets WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM stream_tickets WHERE expires_at <= $1
         LIMIT {EXPIRED_MAX} FOR UPDATE SKIP LOCKED)) RETURNING 1)
SELECT greatest((SELECT count(*) FROM k), (SELECT count(*) FROM t))
""",
)


async def ensure_partitions(db: Connection, now: datetime) -> int:
    """Make the daily partitions around a time; how many were new."""
    first = (now - timedelta(days=DAYS_BEFORE)).date()
    last = (now + timedelta(days=DAYS_AHEAD)).date()
    made: int = await db.value(ENSURE_PARTITIONS, first, last)
    return made


async def drop_expired(db: Connection, *, now: datetime) -> int:
    """Remove expired idempotency keys and tickets; the larger count of the two."""
    dropped: int = await db.value(DROP_EXPIRED, now)
    return dropped
