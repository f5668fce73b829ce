"""Pacing: one GCRA row per lane, granted in chunks before anything is claimed; exact over all replicas."""

from datetime import datetime

from msgspec import Struct

from tocsin.store.pool import Connection
from tocsin.store.query import Query


class Grant(Struct, frozen=True):
    """calls: how many may be made now; again_at: when the next one may, if none."""

    calls: int
    again_at: datetime | None


# The row's lock orders the replicas; tat is the theoretical arrival time of the next call (GCRA, ITU-T I.371).
# With `burst` calls saved up at most, calls in any window are at most rate * window + burst.
GRANT = Query(
    "grant_calls",
    """
WITH lane AS MATERIALIZED (
    SELECT id, burst, interval '1 second' / calls_per_s AS step,
           greatest(tat, $3::timestamptz) AS base
      FROM lanes WHERE id = $1 AND calls_per_s IS NOT NULL FOR UPDATE),
room AS (
    SELECT id, step, base, greatest(0, least($2::int, floor(
           extract(epoch FROM $3 + burst * step - base) / extract(epoch FROM step) + 1e-6)))::int AS n
      FROM lane),
taken AS (
    UPDATE lanes l SET tat = r.base + r.n * r.step FROM room r WHERE l.id = r.id AND r.n > 0)
SELECT r.n, CASE WHEN r.n = 0 THEN r.base + r.step - l.burst * r.step END
  FROM room r JOIN lane l ON l.id = r.id
""",
)
GIVE_BACK = Query(
    "give_back_calls",
    "UPDATE lanes SET tat = tat - $2::int * (interval '1 second' / calls_per_s) WHERE id = $1",
)


async def grant(db: Connection, *, lane: int, calls: int, now: datetime) -> Grant:
    """Up to `calls` calls of a lane; all of them when the lane has no rate."""
    row = await db.row(GRANT, lane, calls, now)
    return Grant(calls, None) if row is None else Grant(row[0], row[1])


async def give_back(db: Connection, *, lane: int, calls: int) -> None:
    """Return granted calls that were not needed."""
    await db.execute(GIVE_BACK, lane, calls)
