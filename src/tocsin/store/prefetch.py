"""Prefetch: all that a claimed batch needs to be sent, consent included, read just before the send."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from msgspec import Struct

from tocsin.store.pool import Connection
from tocsin.store.query import Query


class JobDetail(Struct, frozen=True):
    """One job with its person. suppressed: `all`, `marketing` or None; preferences: JSON or None;

    known_since: when the subscriber was stored, None when there is no such person.
    """

    id: UUID
    content_id: UUID
    project: int
    priority: int
    max_attempts: int
    expires_at: datetime | None
    subscriber_id: str | None
    recipient: str
    vars: str | None
    idempotency: bytes | None
    cancelled: str | None
    suppressed: str | None
    preferences: str | None
    known_since: datetime | None
    email: str | None
    phone: str | None
    first_name: str | None
    last_name: str | None
    locale: str | None
    timezone: str | None
    data: str | None


PREFETCH = Query(
    "prefetch",
    """
SELECT j.id, j.content_id, j.project, j.priority, j.max_attempts, j.expires_at, j.subscriber_id,
       j.recipient, j.vars, j.idempotency, c.code, u.scope,
       CASE WHEN j.subscriber_id IS NOT NULL THEN
           (SELECT json_agg(json_build_array(p.channel, p.topic, p.workflow_id, p.enabled))::text
              FROM preferences p
             WHERE p.project = j.project AND p.subscriber_id = j.subscriber_id) END,
       s.created_at, s.email, s.phone, s.first_name, s.last_name, s.locale, s.timezone,
       nullif(s.data::text, '{}')
  FROM unnest($1::uuid[]) AS w(id)
  JOIN jobs j ON j.id = w.id AND j.id BETWEEN $2 AND $3
  LEFT JOIN cancellations c ON c.job_id = w.id AND c.job_id BETWEEN $2 AND $3
  LEFT JOIN suppressions u ON u.project = j.project AND u.channel = $4
        AND u.address = lower(j.recipient) AND u.released_at IS NULL
  LEFT JOIN subscribers s ON s.project = j.project AND s.id = j.subscriber_id
""",
)


async def prefetch(
    db: Connection, job_ids: Sequence[UUID], *, channel: str
) -> dict[UUID, JobDetail]:
    """Everything about these jobs but what they say."""
    rows = await db.rows(PREFETCH, job_ids, min(job_ids), max(job_ids), channel)
    return {row[0]: JobDetail(*row) for row in rows}
