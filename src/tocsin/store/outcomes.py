"""Outcomes: what became of many attempts, written in one commit, fenced by their leases (law 5)."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from msgspec import Struct

from tocsin.store.pool import Connection
from tocsin.store.query import Query


class Fact(Struct, frozen=True):
    """What became of one attempt. next_at: when the next one is due; tries: used up, this one included."""

    lease: int
    job_id: UUID
    attempt: int
    tries: int
    state: int
    next_at: datetime | None
    project: int
    lane: int
    queue_class: int
    code: str | None
    detail: str | None
    provider_message_id: str | None


# The lease's row lock is the fence; the outcome's primary key the second: one attempt ends once.
SETTLE = Query(
    "settle",
    """
WITH held AS MATERIALIZED (
    SELECT id FROM leases WHERE id = ANY ($1::bigint[]) AND worker = $2 FOR UPDATE),
fact AS MATERIALIZED (
    SELECT f.* FROM unnest($3::bigint[], $4::uuid[], $5::smallint[], $6::smallint[], $7::smallint[],
                           $8::timestamptz[], $9::int[], $10::int[], $11::smallint[], $12::text[],
                           $13::text[], $14::text[])
         AS f(lease, job_id, attempt, tries, state, next_at, project, lane, class, code, detail,
              provider_message_id)
     WHERE f.lease = ANY (ARRAY(SELECT id FROM held))),
written AS (
    INSERT INTO outcomes (job_id, at, next_at, project, lane, attempt, tries, state, code, detail,
                          provider_message_id)
    SELECT job_id, $15, next_at, project, lane, attempt, tries, state, code, detail,
           provider_message_id FROM fact
    ON CONFLICT (job_id, attempt) DO NOTHING),
again AS (
    INSERT INTO scheduled (class, due_at, job_id, lane, project, attempt, tries)
    SELECT class, next_at, job_id, lane, project, attempt, tries FROM fact
     WHERE next_at IS NOT NULL
    ON CONFLICT DO NOTHING),
counted AS (
    INSERT INTO rollups AS r (minute, project, lane, state, slot, count)
    SELECT date_trunc('minute', $15::timestamptz), project, lane, state, $17::smallint, count(*)
      FROM fact GROUP BY project, lane, state ORDER BY project, lane, state
    ON CONFLICT (minute, project, lane, state, slot) DO UPDATE SET count = r.count + excluded.count),
closed AS (
    DELETE FROM leases
     WHERE id = ANY ($16::bigint[]) AND id = ANY (ARRAY(SELECT id FROM held))),
thawed AS (
    DELETE FROM calls WHERE lease = ANY ($16::bigint[]) AND lease = ANY (ARRAY(SELECT id FROM held)))
SELECT id FROM held
""",
)
FREE_KEYS = Query(
    "free_keys",
    """
DELETE FROM idempotency i USING unnest($1::int[], $2::bytea[], $3::uuid[]) AS k(project, digest, job_id)
 WHERE i.project = k.project AND i.digest = k.digest AND i.job_id = k.job_id
""",
)
# A worker whose lease was taken over and whose message left after all: its twin must not.
ALREADY_SENT = Query(
    "already_sent",
    """
INSERT INTO cancellations (job_id, project, at, code)
SELECT job_id, project, $3, 'already_sent' FROM unnest($1::uuid[], $2::int[]) AS t(job_id, project)
ON CONFLICT (job_id) DO NOTHING
""",
)


async def settle(
    db: Connection,
    facts: Sequence[Fact],
    *,
    worker: UUID,
    leases: Sequence[int],
    closing: Sequence[int],
    now: datetime,
    slot: int,
) -> set[int]:
    """Write facts and end the `closing` leases; returns the leases that were still this worker's.

    Facts of any other lease change nothing.
    """
    rows = await db.rows(
        SETTLE,
        leases,
        worker,
        [f.lease for f in facts],
        [f.job_id for f in facts],
        [f.attempt for f in facts],
        [f.tries for f in facts],
        [f.state for f in facts],
        [f.next_at for f in facts],
        [f.project for f in facts],
        [f.lane for f in facts],
        [f.queue_class for f in facts],
        [f.code for f in facts],
        [f.detail for f in facts],
        [f.provider_message_id for f in facts],
        now,
        closing,
        slot,
    )
    return {row[0] for row in rows}


async def free_keys(db: Connection, keys: Sequence[tuple[int, bytes, UUID]]) -> None:
    """Release the idempotency keys (project, digest, job) of jobs that failed or were cancelled."""
    await db.execute(FREE_KEYS, [k[0] for k in keys], [k[1] for k in keys], [k[2] for k in keys])


async def already_sent(db: Connection, jobs: Sequence[tuple[UUID, int]], *, now: datetime) -> None:
    """Mark (job, project) as gone out under a lost lease."""
    await db.execute(ALREADY_SENT, [j[0] for j in jobs], [j[1] for j in jobs], now)
