"""Invariants: what must hold of a database at every commit (laws 2 to 5), and where it does not.

One read-only snapshot, so it may run beside everything else. It reads whole tables: some seconds for
a million jobs.
"""

from msgspec import Struct

from tocsin.store.pool import Connection, Database, open_session
from tocsin.store.query import Query

#: Examples given of each kind of violation.
SAMPLES_MAX = 5

_SETTINGS = {
    # Whole tables are read: the limits of a request do not fit.
    "statement_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "work_mem": "128MB",
    "jit": "off",
}


class Violation(Struct, frozen=True):
    """kind: which rule; count: how often it is broken; samples: at most SAMPLES_MAX ids."""

    kind: str
    count: int
    samples: list[str]


#: What each kind says is wrong.
MEANINGS = {
    "lost_job": "jobs that are nowhere: not scheduled, not ready, not leased, not ended",
    "doubled_job": "jobs that are in two places at once",
    "place_without_job": "entries of the queue or of leases whose job does not exist",
    "outcome_without_job": "outcomes whose job does not exist",
    "job_without_content": "jobs whose content does not exist",
    "sent_twice": "jobs with two outcomes `sent`",
    "tried_after_end": "jobs that were tried again after they were sent",
    "queue_differs_from_job": "entries of the queue with another lane or project than their job",
    "lease_without_jobs": "leases of which no job exists",
    "call_without_lease": "frozen calls whose lease is gone",
    "call_of_foreign_job": "frozen calls that carry a job their lease does not hold",
    "unread_differs": "inboxes whose unread count is not the number of their unread messages",
    "version_differs": "inboxes whose version or unread count is not that of their last change",
    "version_gap": "inboxes whose changes have a gap",
    "inbox_missing": "people with inbox messages and no inbox",
    "message_unsettled": "inbox messages whose job was not settled as sent",
    "message_missing": "in-app jobs settled as sent whose message is not there",
    "message_unannounced": "inbox messages that no change announced",
}

# A job that a lease lists is in that lease until its attempt has an outcome. Where some of a
# lease's jobs were given back and the others stay frozen, only the frozen calls still hold: the
# rest of its list may be anywhere (`maybe`).
PLACES = Query(
    "invariant_places",
    f"""
WITH held AS (
    SELECT h.job_id,
           CASE WHEN EXISTS (SELECT FROM calls c WHERE c.lease = l.id)
                 AND NOT EXISTS (SELECT FROM calls c
                                  WHERE c.lease = l.id AND h.job_id = ANY (c.job_ids))
                THEN 'maybe' ELSE 'leased' END AS place
      FROM leases l, unnest(l.job_ids, l.attempts) AS h(job_id, attempt)
     WHERE NOT EXISTS (SELECT FROM outcomes o
                        WHERE o.job_id = h.job_id AND o.attempt = h.attempt)),
tried AS (
    SELECT job_id, max(attempt) AS last,
           max(attempt) FILTER (WHERE next_at IS NULL) AS last_end,
           max(attempt) FILTER (WHERE state = 1) AS sent,
           count(*) FILTER (WHERE state = 1) AS sends
      FROM outcomes GROUP BY job_id),
place AS (
    SELECT job_id, 'queue' AS place FROM scheduled
    UNION ALL SELECT job_id, 'queue' FROM ready
    UNION ALL SELECT job_id, place FROM held
    UNION ALL SELECT job_id, CASE WHEN last_end = last THEN 'ended' ELSE 'tried' END FROM tried),
seen AS (
    SELECT job_id, count(*) FILTER (WHERE place IN ('queue', 'leased', 'ended')) AS places,
           bool_or(place = 'maybe') AS maybe,
           bool_or(place IN ('queue', 'leased', 'maybe')) AS waits,
           bool_or(place IN ('ended', 'tried')) AS tried
      FROM place GROUP BY job_id),
wrong AS (
    SELECT coalesce(j.id, s.job_id) AS id,
           CASE WHEN j.id IS NULL AND s.waits THEN 'place_without_job'
                WHEN j.id IS NULL AND s.tried THEN 'outcome_without_job'
                WHEN s.places > 1 THEN 'doubled_job'
                WHEN s.job_id IS NULL OR (s.places = 0 AND NOT s.maybe) THEN 'lost_job'
           END AS kind
      FROM jobs j FULL JOIN seen s ON s.job_id = j.id
    UNION ALL SELECT job_id, 'sent_twice' FROM tried WHERE sends > 1
    UNION ALL SELECT job_id, 'tried_after_end' FROM tried WHERE last > sent)
SELECT kind, count(*), (array_agg(id::text ORDER BY id))[1:{SAMPLES_MAX}]
  FROM wrong WHERE kind IS NOT NULL GROUP BY kind
""",
)

CONTENTS = Query(
    "invariant_contents",
    f"""
SELECT 'job_without_content', count(*), (array_agg(j.id::text ORDER BY j.id))[1:{SAMPLES_MAX}]
  FROM jobs j LEFT JOIN contents c ON c.id = j.content_id
 WHERE c.id IS NULL HAVING count(*) > 0
""",
)

QUEUE = Query(
    "invariant_queue",
    f"""
WITH entry AS (
    SELECT job_id, lane, NULL::int AS project FROM ready
    UNION ALL SELECT job_id, lane, project FROM scheduled
    UNION ALL SELECT unnest(job_ids), lane, NULL FROM leases)
SELECT 'queue_differs_from_job', count(*), (array_agg(j.id::text ORDER BY j.id))[1:{SAMPLES_MAX}]
  FROM entry e JOIN jobs j ON j.id = e.job_id
 WHERE e.lane <> j.lane OR e.project <> j.project HAVING count(*) > 0
""",
)

LEASES = Query(
    "invariant_leases",
    f"""
WITH wrong AS (
    SELECT l.id, 'lease_without_jobs' AS kind FROM leases l
     WHERE NOT EXISTS (SELECT FROM jobs j WHERE j.id = ANY (l.job_ids))
    UNION ALL
    SELECT c.lease, 'call_without_lease' FROM calls c
     WHERE NOT EXISTS (SELECT FROM leases l WHERE l.id = c.lease)
    UNION ALL
    SELECT c.lease, 'call_of_foreign_job' FROM calls c JOIN leases l ON l.id = c.lease
     WHERE NOT c.job_ids <@ l.job_ids)
SELECT kind, count(*), (array_agg(id::text ORDER BY id))[1:{SAMPLES_MAX}] FROM wrong GROUP BY kind
""",
)

# Changes are dropped by the day, the oldest first, so those that are left must have no gap and
# end with what the inbox says now.
INBOXES = Query(
    "invariant_inboxes",
    f"""
WITH counted AS (
    SELECT project, subscriber_id,
           count(*) FILTER (WHERE read_at IS NULL AND archived_at IS NULL) AS unread
      FROM inbox_messages GROUP BY project, subscriber_id),
logged AS (
    SELECT project, subscriber_id, max(version) AS last, min(version) AS first, count(*) AS n,
           (array_agg(unread ORDER BY version DESC))[1] AS unread
      FROM inbox_changes GROUP BY project, subscriber_id),
wrong AS (
    SELECT coalesce(i.project, c.project) AS project,
           coalesce(i.subscriber_id, c.subscriber_id) AS subscriber_id,
           CASE WHEN i.project IS NULL THEN 'inbox_missing'
                WHEN i.unread <> coalesce(c.unread, 0) THEN 'unread_differs' END AS kind
      FROM inboxes i FULL JOIN counted c USING (project, subscriber_id)
    UNION ALL
    SELECT l.project, l.subscriber_id,
           CASE WHEN i.version IS DISTINCT FROM l.last OR i.unread <> l.unread
                THEN 'version_differs'
                WHEN l.n <> l.last - l.first + 1 THEN 'version_gap' END
      FROM logged l LEFT JOIN inboxes i USING (project, subscriber_id))
SELECT kind, count(*), (array_agg(project || ':' || subscriber_id))[1:{SAMPLES_MAX}]
  FROM wrong WHERE kind IS NOT NULL GROUP BY kind
""",
)

# An inbox goes with its person, so a message is missed only where the person, or the inbox's log,
# is older than the send. A message is announced only while its day of the log is kept.
MESSAGES = Query(
    "invariant_messages",
    f"""
WITH kept AS (
    SELECT min(right(c.relname, 8))::date::timestamp AT TIME ZONE 'UTC' AS since
      FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
     WHERE i.inhparent = 'inbox_changes'::regclass),
wrong AS (
    SELECT m.id, 'message_unsettled' AS kind
      FROM inbox_messages m JOIN jobs j ON j.id = m.id
     WHERE NOT EXISTS (SELECT FROM outcomes o WHERE o.job_id = m.id AND o.state = 1)
    UNION ALL
    SELECT m.id, 'message_unannounced' FROM inbox_messages m, kept
     WHERE m.created_at >= kept.since
       AND NOT EXISTS (SELECT FROM inbox_changes c
                        WHERE c.project = m.project AND c.subscriber_id = m.subscriber_id
                          AND c.kind = 'new' AND c.message_id = m.id)
    UNION ALL
    SELECT j.id, 'message_missing'
      FROM lanes l JOIN jobs j ON j.lane = l.id
      JOIN outcomes o ON o.job_id = j.id AND o.state = 1
     WHERE l.channel = 'in_app'
       AND NOT EXISTS (SELECT FROM inbox_messages m WHERE m.id = j.id AND m.project = j.project
                          AND m.subscriber_id = coalesce(j.subscriber_id, j.recipient))
       AND (EXISTS (SELECT FROM subscribers s WHERE s.project = j.project
                       AND s.id = coalesce(j.subscriber_id, j.recipient) AND s.created_at <= o.at)
            OR EXISTS (SELECT FROM inbox_changes c WHERE c.project = j.project
                          AND c.subscriber_id = coalesce(j.subscriber_id, j.recipient)
                          AND c.version = 1 AND c.at <= o.at)))
SELECT kind, count(*), (array_agg(id::text ORDER BY id))[1:{SAMPLES_MAX}] FROM wrong GROUP BY kind
""",
)

_ALL = (PLACES, CONTENTS, QUEUE, LEASES, INBOXES, MESSAGES)


async def violations(db: Database) -> list[Violation]:
    """Every rule that is broken at this moment, of one snapshot; nothing when all is well.

    Raises Unavailable when the database cannot be read.
    """
    session = await open_session(
        db.url, application_name="tocsin invariants", settings=_SETTINGS, command_timeout_s=None
    )
    try:
        async with session.transaction("repeatable_read", readonly=True):
            return [found for query in _ALL for found in await _broken(session, query)]
    finally:
        await session.close()


async def _broken(db: Connection, query: Query) -> list[Violation]:
    return [Violation(*row) for row in await db.rows(query)]
