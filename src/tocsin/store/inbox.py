"""Inbox messages and their counters: every write takes the inbox's row, so versions have no gap.

A writer that adds messages inserts them first and then takes the inbox's row; a writer that changes
messages takes the row first. Neither waits for what the other inserted, so they never deadlock.
"""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from msgspec import Struct

from tocsin.store.pool import Connection, Query, Record


class NewMessage(Struct, frozen=True):
    """One in-app delivery. `data` is a JSON object as text: what the browser may see."""

    job_id: UUID
    project: int
    subscriber_id: str
    body: str
    icon: str
    subject: str | None = None
    url: str | None = None
    data: str = "{}"


class Touched(Struct, frozen=True):
    """An inbox that changed, its version and unread count afterwards."""

    project: int
    subscriber_id: str
    version: int
    unread: int


class State(Struct, frozen=True):
    """What can be changed about a message, and its inbox as it is under the lock."""

    version: int
    unread: int
    read_at: datetime | None
    archived_at: datetime | None
    is_todo: bool


INSERT_MESSAGES = Query(
    "inbox_insert_messages",
    """
    WITH given AS (
        SELECT * FROM unnest($1::uuid[], $2::int[], $3::text[], $4::text[], $5::text[], $6::text[],
                             $7::text[], $8::text[])
               AS g(id, project, subscriber_id, subject, body, icon, url, data)
    ), fresh AS (
        INSERT INTO inbox_messages (id, project, subscriber_id, subject, body, icon, url, data, created_at)
        SELECT id, project, subscriber_id, subject, body, icon, url, data::json, $9::timestamptz
          FROM given ORDER BY project, subscriber_id, id
            ON CONFLICT DO NOTHING
        RETURNING project, subscriber_id, id
    ), counted AS (
        SELECT project, subscriber_id, count(*)::int AS n FROM fresh GROUP BY project, subscriber_id
    ), touched AS (
        INSERT INTO inboxes AS i (project, subscriber_id, version, unread)
        SELECT project, subscriber_id, n, n FROM counted ORDER BY project, subscriber_id
            ON CONFLICT (project, subscriber_id) DO UPDATE
           SET version = i.version + excluded.version, unread = i.unread + excluded.unread
        RETURNING i.project, i.subscriber_id, i.version, i.unread
    ), logged AS (
        INSERT INTO inbox_changes (project, subscriber_id, version, at, kind, message_id, unread)
        SELECT f.project, f.subscriber_id, t.version - c.n + f.nth, $9::timestamptz, 'new', f.id,
               t.unread - c.n + f.nth
          FROM (SELECT *, row_number() OVER (PARTITION BY project, subscriber_id ORDER BY id) AS nth
                  FROM fresh) f
          JOIN touched t USING (project, subscriber_id)
          JOIN counted c USING (project, subscriber_id)
    )
    SELECT project, subscriber_id, version, unread FROM touched
    """,
)


async def insert_messages(
    db: Connection, messages: Sequence[NewMessage], at: datetime
) -> list[Touched]:
    """Add messages in the caller's transaction; those already there (same job id) change nothing.

    Each really added message is one version and one unread. Returns the inboxes that changed: hint
    them after the commit (`inbox_changes.hint_of`).
    """
    rows = await db.rows(
        INSERT_MESSAGES,
        [m.job_id for m in messages],
        [m.project for m in messages],
        [m.subscriber_id for m in messages],
        [m.subject for m in messages],
        [m.body for m in messages],
        [m.icon for m in messages],
        [m.url for m in messages],
        [m.data for m in messages],
        at,
    )
    return [Touched(*row) for row in rows]


LOCK_MESSAGE = Query(
    "inbox_lock_message",
    """
    SELECT i.version, i.unread, m.read_at, m.archived_at, m.is_todo
      FROM inboxes i
      JOIN inbox_messages m ON m.project = i.project AND m.subscriber_id = i.subscriber_id
     WHERE i.project = $1 AND i.subscriber_id = $2 AND m.id = $3
       FOR UPDATE OF i, m
    """,
)


async def lock_message(
    db: Connection, project: int, subscriber_id: str, message_id: UUID
) -> State | None:
    """The message's state as of now, its inbox locked; None when there is no such message."""
    row = await db.row(LOCK_MESSAGE, project, subscriber_id, message_id)
    return None if row is None else State(*row)


WRITE_MESSAGE = Query(
    "inbox_write_message",
    """
    WITH changed AS (
        UPDATE inbox_messages SET read_at = $4, archived_at = $5, is_todo = $6
         WHERE project = $1 AND subscriber_id = $2 AND id = $3
    ), counted AS (
        UPDATE inboxes SET version = version + cardinality($7::text[]), unread = $8::int
         WHERE project = $1 AND subscriber_id = $2
        RETURNING version
    ), logged AS (
        INSERT INTO inbox_changes (project, subscriber_id, version, at, kind, message_id, unread)
        SELECT $1, $2, c.version - cardinality($7::text[]) + k.nth, $9::timestamptz, k.kind, $3, $8
          FROM counted c, unnest($7::text[]) WITH ORDINALITY AS k(kind, nth)
    )
    SELECT version FROM counted
    """,
)


async def write_message(
    db: Connection,
    project: int,
    subscriber_id: str,
    message_id: UUID,
    *,
    after: State,
    kinds: Sequence[str],
    at: datetime,
) -> int:
    """Store a locked message's new state, one change per kind; the inbox's new version."""
    version: int = await db.value(
        WRITE_MESSAGE,
        project,
        subscriber_id,
        message_id,
        after.read_at,
        after.archived_at,
        after.is_todo,
        list(kinds),
        after.unread,
        at,
    )
    return version


LOCK_INBOX = Query(
    "inbox_lock",
    "SELECT version FROM inboxes WHERE project = $1 AND subscriber_id = $2 FOR UPDATE",
)
READ_ALL = Query(
    "inbox_read_all",
    """
    WITH seen AS (
        UPDATE inbox_messages SET read_at = $3
         WHERE project = $1 AND subscriber_id = $2 AND archived_at IS NULL AND read_at IS NULL
        RETURNING id
    ), counted AS (
        UPDATE inboxes SET version = version + 1, unread = unread - (SELECT count(*) FROM seen)::int
         WHERE project = $1 AND subscriber_id = $2 AND EXISTS (SELECT FROM seen)
        RETURNING version, unread
    ), logged AS (
        INSERT INTO inbox_changes (project, subscriber_id, version, at, kind, unread)
        SELECT $1, $2, version, $3, 'read_all', unread FROM counted
    )
    SELECT count(*)::int FROM seen
    """,
)


async def read_all(db: Connection, project: int, subscriber_id: str, at: datetime) -> int:
    """Mark every shown message read, in the caller's transaction; how many were not.

    Two statements: the second must see what was committed while the first waited for the lock.
    """
    if await db.value(LOCK_INBOX, project, subscriber_id) is None:
        return 0
    updated: int = await db.value(READ_ALL, project, subscriber_id, at)
    return updated


LIST = Query(
    "inbox_list",
    """
    WITH hit AS NOT MATERIALIZED (
        SELECT * FROM inbox_messages
         WHERE project = $1 AND subscriber_id = $2 AND archived_at IS NULL
           AND ($3::text <> 'unread' OR read_at IS NULL)
           AND ($3::text <> 'todo' OR is_todo)
           AND ($4::text IS NULL OR body ILIKE $4 OR subject ILIKE $4)
    )
    SELECT (SELECT count(*) FROM hit) AS total, coalesce(i.version, 0) AS version,
           coalesce(i.unread, 0) AS unread, m.*
      FROM (SELECT) one
      LEFT JOIN inboxes i ON i.project = $1 AND i.subscriber_id = $2
      LEFT JOIN LATERAL (
        SELECT id, subject, body, icon, url, data, read_at, is_todo, created_at FROM hit
         ORDER BY created_at DESC, id DESC LIMIT $5::int OFFSET $6::int
      ) m ON true
     ORDER BY m.created_at DESC, m.id DESC
    """,
)


async def messages(
    db: Connection,
    project: int,
    subscriber_id: str,
    *,
    chosen: str,
    pattern: str | None,
    limit: int,
    offset: int,
) -> list[Record]:
    """At least one row: the whole count, version and unread, then the page (`id` null when empty).

    chosen: all, unread or todo; pattern: for ILIKE, escaped. All from one snapshot.
    """
    return await db.rows(LIST, project, subscriber_id, chosen, pattern, limit, offset)


UNREAD = Query(
    "inbox_unread",
    "SELECT version, unread FROM inboxes WHERE project = $1 AND subscriber_id = $2",
)


async def unread(db: Connection, project: int, subscriber_id: str) -> tuple[int, int]:
    """(version, unread count) of an inbox; (0, 0) when nothing was ever in it."""
    row = await db.row(UNREAD, project, subscriber_id)
    return (0, 0) if row is None else (row["version"], row["unread"])


DELETE_INBOX = Query(
    "inbox_delete",
    """
    WITH messages AS (DELETE FROM inbox_messages WHERE project = $1 AND subscriber_id = $2),
         tickets AS (DELETE FROM stream_tickets WHERE project = $1 AND subscriber_id = $2),
         changes AS (DELETE FROM inbox_changes WHERE project = $1 AND subscriber_id = $2)
    DELETE FROM inboxes WHERE project = $1 AND subscriber_id = $2
    """,
)


async def delete_inbox(db: Connection, project: int, subscriber_id: str) -> None:
    """Forget a person's inbox, changes and stream tickets, in the caller's transaction."""
    await db.value(LOCK_INBOX, project, subscriber_id)
    await db.execute(DELETE_INBOX, project, subscriber_id)
