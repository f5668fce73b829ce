"""Jobs: one job as its owner sees it, and what an owner may do to it."""

from datetime import datetime
from uuid import UUID

from msgspec import Struct

from tocsin.store.pool import Connection
from tocsin.store.query import Query


class JobRow(Struct, frozen=True):
    """A job, its last outcome, and where it is now."""

    id: UUID
    channel: str
    provider: str
    lane: int
    subscriber_id: str | None
    recipient: str
    priority: int
    max_attempts: int
    scheduled_at: datetime
    idempotency: bytes | None
    content: str | None
    state: int | None
    attempt: int
    tries: int
    at: datetime | None
    next_at: datetime | None
    code: str | None
    detail: str | None
    provider_message_id: str | None
    sent_at: datetime | None
    cancelled: str | None
    leased: bool


JOB = Query(
    "job",
    """
SELECT j.id, l.channel, l.provider, j.lane, j.subscriber_id, j.recipient, j.priority,
       j.max_attempts, j.scheduled_at, j.idempotency, c.body,
       o.state, coalesce(o.attempt, 0), coalesce(o.tries, 0), o.at, o.next_at, o.code, o.detail,
       o.provider_message_id,
       (SELECT max(s.at) FROM outcomes s WHERE s.job_id = j.id AND s.state = 1),
       x.code, EXISTS (SELECT FROM leases le WHERE j.id = ANY (le.job_ids))
  FROM jobs j
  JOIN lanes l ON l.id = j.lane
  LEFT JOIN contents c ON c.id = j.content_id
  LEFT JOIN cancellations x ON x.job_id = j.id
  LEFT JOIN LATERAL (
      SELECT * FROM outcomes o WHERE o.job_id = j.id ORDER BY o.attempt DESC LIMIT 1) o ON true
 WHERE j.id = $1 AND j.project = $2
""",
)
# The job's place in scheduled is known: its first due time, or the one of its last outcome.
UNSCHEDULE = Query(
    "unschedule",
    """
DELETE FROM scheduled WHERE class = $1 AND due_at = $2 AND job_id = $3
RETURNING attempt, tries
""",
)
CANCEL_UNSENT = Query(
    "cancel_unsent",
    """
INSERT INTO outcomes (job_id, at, project, lane, attempt, tries, state, code)
VALUES ($1, $2, $3, $4, $5, $6, 4, $7)
ON CONFLICT (job_id, attempt) DO NOTHING
""",
)
MARK_CANCELLED = Query(
    "mark_cancelled",
    """
INSERT INTO cancellations (job_id, project, at, code) VALUES ($1, $2, $3, $4)
ON CONFLICT (job_id) DO NOTHING
""",
)
FREE_KEY = Query(
    "free_key", "DELETE FROM idempotency WHERE project = $1 AND digest = $2 AND job_id = $3"
)
UNMARK_CANCELLED = Query("unmark_cancelled", "DELETE FROM cancellations WHERE job_id = $1")
LOCK_JOB = Query("lock_job", "SELECT id FROM jobs WHERE id = $1 AND project = $2 FOR NO KEY UPDATE")
# The fact that it was asked for again is what makes it read `retry`; its tries start anew.
AGAIN = Query(
    "again",
    """
WITH said AS (
    INSERT INTO outcomes (job_id, at, next_at, project, lane, attempt, tries, state, code)
    VALUES ($1, $2, $7, $3, $4, $6, 0, 2, 'retried'))
INSERT INTO scheduled (class, due_at, job_id, lane, project, attempt, tries)
VALUES ($5, $7, $1, $4, $3, $6, 0)
""",
)


async def job(db: Connection, job_id: UUID, project: int) -> JobRow | None:
    """One job of a project."""
    row = await db.row(JOB, job_id, project)
    return None if row is None else JobRow(*row)


async def lock(db: Connection, job_id: UUID, project: int) -> bool:
    """Keep other cancels and retries of this job waiting until the transaction ends."""
    return await db.value(LOCK_JOB, job_id, project) is not None


async def unschedule(
    db: Connection, *, queue_class: int, due_at: datetime, job_id: UUID
) -> tuple[int, int] | None:
    """Take a job out of scheduled; its (attempts made, tries used), None when it was not there."""
    row = await db.row(UNSCHEDULE, queue_class, due_at, job_id)
    return None if row is None else (row[0], row[1])


async def cancel_unsent(
    db: Connection,
    job_id: UUID,
    *,
    project: int,
    lane: int,
    attempt: int,
    tries: int,
    now: datetime,
    code: str,
) -> None:
    """Write the end of a job that the caller took out of scheduled."""
    await db.execute(CANCEL_UNSENT, job_id, now, project, lane, attempt, tries, code)


async def mark_cancelled(
    db: Connection, job_id: UUID, *, project: int, now: datetime, code: str
) -> None:
    """From this commit on, no claim of the job leads to a send."""
    await db.execute(MARK_CANCELLED, job_id, project, now, code)


async def unmark_cancelled(db: Connection, job_id: UUID) -> None:
    await db.execute(UNMARK_CANCELLED, job_id)


async def free_key(db: Connection, project: int, digest: bytes, job_id: UUID) -> None:
    """Release the idempotency key that this job holds."""
    await db.execute(FREE_KEY, project, digest, job_id)


async def again(
    db: Connection,
    job_id: UUID,
    *,
    project: int,
    lane: int,
    queue_class: int,
    attempt: int,
    now: datetime,
    due_at: datetime,
) -> None:
    """Schedule a job that had ended, with all its tries; attempt: one more than its last."""
    await db.execute(AGAIN, job_id, now, project, lane, queue_class, attempt, due_at)
