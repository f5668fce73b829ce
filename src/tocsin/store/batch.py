"""Batches: one content, many subscribers; people, consent, keys and jobs in one statement."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from msgspec import Struct

from tocsin.store.intake import STEP
from tocsin.store.pool import Connection
from tocsin.store.query import Query


class BatchRows(Struct, frozen=True):
    """One channel's share of a batch. digests is empty without an idempotency key."""

    job_ids: Sequence[UUID]
    subscribers: Sequence[str]
    digests: Sequence[bytes]
    content_id: UUID
    project: int
    lane: int
    channel: str
    priority: int
    queue_class: int
    max_attempts: int
    scheduled_at: datetime
    expires_at: datetime | None
    topic: str
    workflow: str
    fingerprint: bytes


class Tally(Struct, frozen=True):
    """How many of the rows became jobs, and why the others did not."""

    created: int
    deduplicated: int
    opted_out: int
    without_address: int


# The address of a channel is where notifyd's clients keep it.
_ADDRESS = """CASE $7::text
    WHEN 'email' THEN nullif(s.email, '')
    WHEN 'sms' THEN nullif(s.phone, '')
    WHEN 'whatsapp' THEN nullif(s.phone, '')
    WHEN 'telegram' THEN nullif(s.data ->> 'telegram_chat_id', '')
    WHEN 'slack' THEN coalesce(nullif(s.data ->> 'slack', ''), nullif(s.data ->> 'slack_webhook', ''),
                               nullif(s.data ->> 'slack_channel', ''))
    WHEN 'discord' THEN nullif(s.data ->> 'discord_webhook', '')
    ELSE s.id END"""

ENQUEUE_BATCH = Query(
    "enqueue_batch",
    f"""
WITH input AS (
    SELECT * FROM unnest($1::uuid[], $2::text[], $3::bytea[])
             WITH ORDINALITY AS t(job_id, subscriber_id, digest, n)),
person AS (
    SELECT i.*, {_ADDRESS} AS recipient,
           EXISTS (SELECT FROM preferences p
                    WHERE p.project = $5 AND p.subscriber_id = i.subscriber_id AND NOT p.enabled
                      AND p.channel IN ($7, '*')
                      AND (p.topic, p.workflow_id) IN (('', ''), ($16, ''), ('', $17))
                      AND (p.channel = $7 OR NOT EXISTS (
                          SELECT FROM preferences q
                           WHERE q.project = $5 AND q.subscriber_id = i.subscriber_id
                             AND q.channel = $7 AND q.topic = p.topic
                             AND q.workflow_id = p.workflow_id))) AS opted_out
      FROM input i LEFT JOIN subscribers s ON s.project = $5 AND s.id = i.subscriber_id),
wanted AS (SELECT * FROM person WHERE recipient IS NOT NULL AND NOT opted_out),
keyed AS (
    INSERT INTO idempotency (project, digest, fingerprint, job_id, expires_at)
    SELECT $5, digest, $15, job_id, $14 FROM wanted WHERE digest IS NOT NULL ORDER BY digest
    ON CONFLICT (project, digest) DO UPDATE
       SET fingerprint = excluded.fingerprint, job_id = excluded.job_id,
           answer = NULL, expires_at = excluded.expires_at
     WHERE idempotency.expires_at <= $13
    RETURNING job_id),
fresh AS (
    SELECT *, row_number() OVER (ORDER BY n) AS place FROM wanted
     WHERE digest IS NULL OR job_id IN (SELECT job_id FROM keyed)),
made AS (
    INSERT INTO jobs (id, content_id, scheduled_at, expires_at, project, lane, priority,
                      max_attempts, subscriber_id, recipient, idempotency)
    SELECT job_id, $4, $11, $12, $5, $6, $8, $10, subscriber_id, recipient, digest FROM fresh),
later AS (
    INSERT INTO scheduled (class, due_at, job_id, lane, project, attempt, tries)
    SELECT $9, $11, job_id, $6, $5, 0, 0 FROM fresh WHERE $11 > $13),
share AS (
    SELECT {STEP} / p.weight AS step, t.n * ({STEP} / p.weight) AS span,
           coalesce((SELECT served FROM lane_clock WHERE lane = $6 AND class = $9), 0) AS served
      FROM (SELECT count(*) AS n FROM fresh) t, projects p
     WHERE p.number = $5 AND $11 <= $13 AND t.n > 0),
booked AS (
    INSERT INTO project_clock AS b (lane, class, project, booked)
    SELECT $6, $9, $5, served + span FROM share
    ON CONFLICT (lane, class, project) DO UPDATE
       SET booked = greatest(b.booked + excluded.booked - coalesce(
               (SELECT served FROM lane_clock WHERE lane = $6 AND class = $9), 0), excluded.booked)
    RETURNING booked),
queued AS (
    INSERT INTO ready (lane, class, tag, job_id, attempt, tries)
    SELECT $6, $9, b.booked - s.span + f.place * s.step, f.job_id, 0, 0
      FROM fresh f, share s, booked b)
SELECT (SELECT count(*) FROM fresh), (SELECT count(*) FROM wanted),
       (SELECT count(*) FROM person WHERE opted_out AND recipient IS NOT NULL),
       (SELECT count(*) FROM person WHERE recipient IS NULL)
""",
)

INSERT_CONTENT = Query(
    "insert_content",
    "INSERT INTO contents (id, project, body) VALUES ($1, $2, $3)",
)

REMEMBER_ANSWER = Query(
    "remember_answer",
    """
INSERT INTO idempotency (project, digest, fingerprint, job_id, answer, expires_at)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (project, digest) DO UPDATE
   SET fingerprint = excluded.fingerprint, answer = excluded.answer, expires_at = excluded.expires_at
 WHERE idempotency.expires_at <= $7 OR idempotency.fingerprint <> excluded.fingerprint
""",
)


async def insert_content(db: Connection, content_id: UUID, project: int, body: str) -> None:
    """Store what a batch says; before its jobs, in the same transaction."""
    await db.execute(INSERT_CONTENT, content_id, project, body)


async def enqueue_batch(
    db: Connection, rows: BatchRows, *, now: datetime, keys_until: datetime
) -> Tally:
    """Make the jobs of one channel; people without an address or consent get none."""
    digests: Sequence[bytes | None] = rows.digests or [None] * len(rows.job_ids)
    row = await db.row(
        ENQUEUE_BATCH,
        rows.job_ids,
        rows.subscribers,
        digests,
        rows.content_id,
        rows.project,
        rows.lane,
        rows.channel,
        rows.priority,
        rows.queue_class,
        rows.max_attempts,
        rows.scheduled_at,
        rows.expires_at,
        now,
        keys_until,
        rows.fingerprint,
        rows.topic,
        rows.workflow,
    )
    assert row is not None
    created, wanted, opted_out, without_address = row
    return Tally(created, wanted - created, opted_out, without_address)


async def remember_answer(
    db: Connection,
    project: int,
    digest: bytes,
    *,
    fingerprint: bytes,
    content_id: UUID,
    answer: bytes,
    now: datetime,
    keys_until: datetime,
) -> None:
    """Keep a batch's answer under the key of the whole request."""
    await db.execute(
        REMEMBER_ANSWER, project, digest, fingerprint, content_id, answer, keys_until, now
    )
