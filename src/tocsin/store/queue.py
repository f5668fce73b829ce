"""The queue: claim a batch under one lease, promote what fell due, return what was not started."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from uuid import UUID

from msgspec import Struct

from tocsin.store.intake import STEP
from tocsin.store.pool import Connection
from tocsin.store.query import Query


class Lease(Struct, frozen=True):
    """A claimed batch. attempts: the number of each job's attempt now begun; tries: used up before it."""

    id: int
    lane: int
    classes: list[int]
    tags: list[int]
    job_ids: list[UUID]
    attempts: list[int]
    tries: list[int]

    def without(self, gone: AbstractSet[UUID]) -> "Lease":
        """The same lease with fewer jobs."""
        kept = [at for at, job_id in enumerate(self.job_ids) if job_id not in gone]
        columns = (self.classes, self.tags, self.job_ids, self.attempts, self.tries)
        return Lease(self.id, self.lane, *([column[at] for at in kept] for column in columns))  # type: ignore[arg-type]


class Claim(Struct, frozen=True):
    """lease is None when there was nothing to take; paused_until: when the lane rests."""

    lease: Lease | None
    paused_until: datetime | None


# ctid = ANY(ARRAY(…)) and not a join back: with statistics of an empty table a join costs seconds.
CLAIM = Query(
    "claim",
    """
WITH gate AS MATERIALIZED (
    SELECT paused_until FROM lanes WHERE id = $1),
pick AS (
    SELECT r.place FROM unnest($2::smallint[], $3::bigint[]) AS u(class, cursor)
     CROSS JOIN LATERAL (
        SELECT ctid AS place FROM ready
         WHERE lane = $1 AND class = u.class AND tag >= u.cursor
         ORDER BY tag, job_id LIMIT $4 FOR UPDATE SKIP LOCKED) r
     WHERE NOT EXISTS (SELECT FROM gate WHERE paused_until > $6)
     LIMIT $4),
taken AS (
    DELETE FROM ready WHERE ctid = ANY (ARRAY(SELECT place FROM pick))
    RETURNING class, tag, job_id, attempt, tries),
lease AS (
    INSERT INTO leases (lane, worker, claimed_at, expires_at, classes, tags, job_ids, attempts, tries)
    SELECT $1, $5, $6, $7, array_agg(class), array_agg(tag), array_agg(job_id),
           array_agg((attempt + 1)::smallint), array_agg(tries)
      FROM (SELECT * FROM taken ORDER BY class, tag, job_id) t
    HAVING count(*) > 0
    RETURNING id, classes, tags, job_ids, attempts, tries)
SELECT gate.paused_until, lease.* FROM (SELECT) one LEFT JOIN gate ON true LEFT JOIN lease ON true
""",
)

PROMOTE = Query(
    "promote",
    f"""
WITH due AS (
    SELECT r.place FROM unnest($1::smallint[]) AS u(class)
     CROSS JOIN LATERAL (
        SELECT ctid AS place FROM scheduled
         WHERE class = u.class AND due_at <= $2
         ORDER BY due_at, job_id LIMIT $3 FOR UPDATE SKIP LOCKED) r
     LIMIT $3),
moved AS (
    DELETE FROM scheduled WHERE ctid = ANY (ARRAY(SELECT place FROM due))
    RETURNING class, due_at, job_id, lane, project, attempt, tries),
placed AS (
    SELECT *, row_number() OVER (PARTITION BY lane, class, project ORDER BY due_at, job_id) AS place
      FROM moved),
share AS (
    SELECT m.lane, m.class, m.project, {STEP} / p.weight AS step,
           count(*) * ({STEP} / p.weight) AS span, coalesce(min(c.served), 0) AS served
      FROM moved m JOIN projects p ON p.number = m.project
      LEFT JOIN lane_clock c ON c.lane = m.lane AND c.class = m.class
     GROUP BY m.lane, m.class, m.project, p.weight),
booked AS (
    INSERT INTO project_clock AS b (lane, class, project, booked)
    SELECT lane, class, project, served + span FROM share ORDER BY lane, class, project
    ON CONFLICT (lane, class, project) DO UPDATE
       SET booked = greatest(b.booked + excluded.booked - coalesce(
               (SELECT served FROM lane_clock c
                 WHERE c.lane = excluded.lane AND c.class = excluded.class), 0), excluded.booked)
    RETURNING lane, class, project, booked),
queued AS (
    INSERT INTO ready (lane, class, tag, job_id, attempt, tries)
    SELECT d.lane, d.class, b.booked - s.span + d.place * s.step, d.job_id, d.attempt, d.tries
      FROM placed d JOIN share s USING (lane, class, project)
      JOIN booked b USING (lane, class, project))
SELECT lane, count(*) AS jobs FROM placed GROUP BY lane
""",
)

NEXT_DUE = Query(
    "next_due",
    """
SELECT min(d.due_at) FROM unnest($1::smallint[]) AS u(class)
 CROSS JOIN LATERAL (
    SELECT due_at FROM scheduled WHERE class = u.class ORDER BY due_at, job_id LIMIT 1) d
""",
)

MARK_SERVED = Query(
    "mark_served",
    """
INSERT INTO lane_clock AS c (lane, class, served)
SELECT * FROM unnest($1::int[], $2::smallint[], $3::bigint[]) ORDER BY 1, 2
ON CONFLICT (lane, class) DO UPDATE SET served = greatest(c.served, excluded.served)
 WHERE c.served < excluded.served
""",
)


async def claim(
    db: Connection,
    *,
    lane: int,
    cursors: Sequence[tuple[int, int]],
    limit: int,
    worker: UUID,
    now: datetime,
    expires_at: datetime,
) -> Claim:
    """Take up to `limit` due jobs of one lane under one lease, in class order, then tag order.

    cursors: (class, lowest tag to look at); a paused lane gives nothing.
    """
    row = await db.row(
        CLAIM,
        lane,
        [c[0] for c in cursors],
        [c[1] for c in cursors],
        limit,
        worker,
        now,
        expires_at,
    )
    assert row is not None
    paused_until, lease_id, classes, tags, job_ids, attempts, tries = row
    if lease_id is None:
        return Claim(None, paused_until)
    return Claim(Lease(lease_id, lane, classes, tags, job_ids, attempts, tries), paused_until)


async def promote(
    db: Connection, *, classes: Sequence[int], now: datetime, limit: int
) -> dict[int, int]:
    """Move up to `limit` due jobs from scheduled to ready; how many by lane."""
    rows = await db.rows(PROMOTE, classes, now, limit)
    return {row[0]: row[1] for row in rows}


async def next_due(db: Connection, *, classes: Sequence[int]) -> datetime | None:
    """When the next scheduled job falls due."""
    due: datetime | None = await db.value(NEXT_DUE, classes)
    return due


async def mark_served(db: Connection, served: dict[tuple[int, int], int]) -> None:
    """Advance the lanes' clocks: (lane, class) → the highest tag taken."""
    await db.execute(
        MARK_SERVED, [k[0] for k in served], [k[1] for k in served], list(served.values())
    )
