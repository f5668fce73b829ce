"""Intake: everything that arrived in one moment becomes jobs, in one statement and so in one commit."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from msgspec import Struct

from tocsin.store.pool import Connection
from tocsin.store.query import Query

#: Distance between two tags of a project of weight 1; a project of weight w takes steps of STEP / w.
STEP = 1000


class NewContent(Struct, frozen=True):
    id: UUID
    project: int
    body: str


class NewJob(Struct, frozen=True):
    """digest, fingerprint and answer are None without an idempotency key."""

    id: UUID
    content_id: UUID
    project: int
    lane: int
    priority: int
    queue_class: int
    max_attempts: int
    scheduled_at: datetime
    expires_at: datetime | None
    subscriber_id: str | None
    recipient: str
    digest: bytes | None
    fingerprint: bytes | None
    answer: bytes | None


ENQUEUE = Query(
    "enqueue",
    f"""
WITH input AS (
    SELECT * FROM unnest($4::uuid[], $5::uuid[], $6::int[], $7::int[], $8::smallint[],
                         $9::smallint[], $10::smallint[], $11::timestamptz[], $12::timestamptz[],
                         $13::text[], $14::text[], $15::bytea[], $16::bytea[], $17::bytea[])
             WITH ORDINALITY AS t(job_id, content_id, project, lane, priority, class, max_attempts,
                                  scheduled_at, expires_at, subscriber_id, recipient, digest,
                                  fingerprint, answer, n)),
-- An expired key is taken over as if it were new.
keyed AS (
    INSERT INTO idempotency (project, digest, fingerprint, job_id, answer, expires_at)
    SELECT project, digest, fingerprint, job_id, answer, $19
      FROM input WHERE digest IS NOT NULL ORDER BY project, digest
    ON CONFLICT (project, digest) DO UPDATE
       SET fingerprint = excluded.fingerprint, job_id = excluded.job_id,
           answer = excluded.answer, expires_at = excluded.expires_at
     WHERE idempotency.expires_at <= $18
    RETURNING job_id),
fresh AS (
    SELECT i.* FROM input i
     WHERE digest IS NULL OR job_id IN (SELECT job_id FROM keyed)),
said AS (
    INSERT INTO contents (id, project, body)
    SELECT c.id, c.project, c.body
      FROM unnest($1::uuid[], $2::int[], $3::json[]) AS c(id, project, body)
     WHERE c.id IN (SELECT content_id FROM fresh)),
made AS (
    INSERT INTO jobs (id, content_id, scheduled_at, expires_at, project, lane, priority,
                      max_attempts, subscriber_id, recipient, idempotency)
    SELECT job_id, content_id, scheduled_at, expires_at, project, lane, priority,
           max_attempts, subscriber_id, recipient, digest FROM fresh),
later AS (
    INSERT INTO scheduled (class, due_at, job_id, lane, project, attempt, tries)
    SELECT class, scheduled_at, job_id, lane, project, 0, 0 FROM fresh WHERE scheduled_at > $18),
due AS (
    SELECT *, row_number() OVER (PARTITION BY lane, class, project ORDER BY n) AS place
      FROM fresh WHERE scheduled_at <= $18),
share AS (
    SELECT d.lane, d.class, d.project, {STEP} / p.weight AS step,
           count(*) * ({STEP} / p.weight) AS span, coalesce(min(c.served), 0) AS served
      FROM due d JOIN projects p ON p.number = d.project
      LEFT JOIN lane_clock c ON c.lane = d.lane AND c.class = d.class
     GROUP BY d.lane, d.class, d.project, p.weight),
-- The first tag is max(lane's served, project's booked) + one step.
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
    SELECT d.lane, d.class, b.booked - s.span + d.place * s.step, d.job_id, 0, 0
      FROM due d JOIN share s USING (lane, class, project)
      JOIN booked b USING (lane, class, project))
SELECT job_id FROM fresh
""",
)

KEPT = Query(
    "kept",
    """
SELECT i.project, i.digest, i.fingerprint, i.job_id, i.answer
  FROM unnest($1::int[], $2::bytea[]) AS k(project, digest)
  JOIN idempotency i ON i.project = k.project AND i.digest = k.digest
 WHERE i.expires_at > $3
""",
)


class KeptAnswer(Struct, frozen=True):
    """What an idempotency key already stands for."""

    fingerprint: bytes
    job_id: UUID
    answer: bytes | None


async def enqueue(
    db: Connection,
    contents: Sequence[NewContent],
    jobs: Sequence[NewJob],
    *,
    now: datetime,
    keys_until: datetime,
) -> set[UUID]:
    """Commit contents and jobs; the ids made. A job whose key is held already is not made."""
    rows = await db.rows(
        ENQUEUE,
        [c.id for c in contents],
        [c.project for c in contents],
        [c.body for c in contents],
        [j.id for j in jobs],
        [j.content_id for j in jobs],
        [j.project for j in jobs],
        [j.lane for j in jobs],
        [j.priority for j in jobs],
        [j.queue_class for j in jobs],
        [j.max_attempts for j in jobs],
        [j.scheduled_at for j in jobs],
        [j.expires_at for j in jobs],
        [j.subscriber_id for j in jobs],
        [j.recipient for j in jobs],
        [j.digest for j in jobs],
        [j.fingerprint for j in jobs],
        [j.answer for j in jobs],
        now,
        keys_until,
    )
    return {row[0] for row in rows}


async def kept(
    db: Connection, keys: Sequence[tuple[int, bytes]], *, now: datetime
) -> dict[tuple[int, bytes], KeptAnswer]:
    """What each (project, digest) that is held stands for."""
    rows = await db.rows(KEPT, [k[0] for k in keys], [k[1] for k in keys], now)
    return {(row[0], row[1]): KeptAnswer(row[2], row[3], row[4]) for row in rows}
