"""Reaping: what the reaper writes about leases whose worker is gone, in its own transaction."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from msgspec import Struct

from tocsin.store.pool import Connection
from tocsin.store.query import Query


class Lost(Struct, frozen=True):
    """An attempt of which nobody knows how it ended. next_at: when it is made again, if it is."""

    job_id: UUID
    attempt: int
    tries: int
    next_at: datetime | None
    queue_class: int
    detail: str


REQUEUE = Query(
    "requeue",
    """
INSERT INTO ready (lane, class, tag, job_id, attempt, tries)
SELECT $1, t.class, t.tag, t.job_id, t.attempt, t.tries
  FROM unnest($2::smallint[], $3::bigint[], $4::uuid[], $5::smallint[], $6::smallint[])
       AS t(class, tag, job_id, attempt, tries)
ON CONFLICT DO NOTHING
""",
)
LOSE = Query(
    "lose",
    """
WITH lost AS (
    SELECT t.*, coalesce(j.project, 0) AS project
      FROM unnest($2::uuid[], $3::smallint[], $4::smallint[], $5::timestamptz[], $6::smallint[],
                  $7::text[]) AS t(job_id, attempt, tries, next_at, class, detail)
      LEFT JOIN jobs j ON j.id = t.job_id),
written AS (
    INSERT INTO outcomes (job_id, at, next_at, project, lane, attempt, tries, state, code, detail)
    SELECT job_id, $8, next_at, project, $1, attempt, tries, 6, 'worker_lost', detail FROM lost
    ON CONFLICT (job_id, attempt) DO NOTHING),
counted AS (
    INSERT INTO rollups AS r (minute, project, lane, state, slot, count)
    SELECT date_trunc('minute', $8::timestamptz), project, $1, 6, $9::smallint, count(*)
      FROM lost GROUP BY project ORDER BY project
    ON CONFLICT (minute, project, lane, state, slot) DO UPDATE SET count = r.count + excluded.count)
INSERT INTO scheduled (class, due_at, job_id, lane, project, attempt, tries)
SELECT class, next_at, job_id, $1, project, attempt, tries FROM lost WHERE next_at IS NOT NULL
ON CONFLICT DO NOTHING
""",
)


async def requeue(
    db: Connection, lane: int, rows: Sequence[tuple[int, int, UUID, int, int]]
) -> None:
    """Put (class, tag, job, attempts made, tries used) back where they stood."""
    columns = [list(column) for column in zip(*rows, strict=True)]
    await db.execute(REQUEUE, lane, *columns)


async def lose(
    db: Connection, lane: int, lost: Sequence[Lost], *, now: datetime, slot: int
) -> None:
    """Write attempts down as unknown, and those that are made again as scheduled."""
    await db.execute(
        LOSE,
        lane,
        [item.job_id for item in lost],
        [item.attempt for item in lost],
        [item.tries for item in lost],
        [item.next_at for item in lost],
        [item.queue_class for item in lost],
        [item.detail for item in lost],
        now,
        slot,
    )
