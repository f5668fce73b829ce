"""The log of inbox changes, read by live streams: many inboxes in one query, each from its own version."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from msgspec import Struct

from tocsin.store.pool import Connection, Query

#: Changes of one inbox in one read; a stream that is further behind reads again.
CHANGES_MAX = 100


class Cursor(Struct, frozen=True):
    """A reader's place: it has everything up to and including `version`."""

    project: int
    subscriber_id: str
    version: int


class Change(Struct, frozen=True):
    """One change. The message's columns are null unless `kind` is `new` and it still exists."""

    project: int
    subscriber_id: str
    version: int
    kind: str
    message_id: UUID | None
    unread: int
    subject: str | None
    body: str | None
    icon: str | None
    url: str | None
    data: str | None
    created_at: datetime | None


def hint_of(project: int, subscriber_id: str) -> str:
    """The name that is hinted when this inbox changed. The number comes first: nothing collides."""
    return f"inbox:{project}:{subscriber_id}"


CHANGES_AFTER = Query(
    "inbox_changes_after",
    """
    SELECT w.project, w.subscriber_id, c.version, c.kind, c.message_id, c.unread,
           m.subject, m.body, m.icon, m.url, m.data, m.created_at
      FROM unnest($1::int[], $2::text[], $3::bigint[]) AS w(project, subscriber_id, after)
     CROSS JOIN LATERAL (
        SELECT version, kind, message_id, unread FROM inbox_changes c
         WHERE c.project = w.project AND c.subscriber_id = w.subscriber_id AND c.version > w.after
         ORDER BY version LIMIT $4::int
      ) c
      LEFT JOIN LATERAL (
        SELECT subject, body, icon, url, data, created_at FROM inbox_messages m
         WHERE c.kind = 'new' AND m.project = w.project AND m.subscriber_id = w.subscriber_id
           AND m.id = c.message_id
      ) m ON true
     ORDER BY w.project, w.subscriber_id, c.version
    """,
)


async def changes_after(
    db: Connection, cursors: Sequence[Cursor], limit: int = CHANGES_MAX
) -> list[Change]:
    """The next changes of every cursor, in version order within one inbox, at most `limit` each."""
    rows = await db.rows(
        CHANGES_AFTER,
        [c.project for c in cursors],
        [c.subscriber_id for c in cursors],
        [c.version for c in cursors],
        limit,
    )
    return [Change(*row) for row in rows]


VERSIONS = Query(
    "inbox_versions",
    """
    SELECT w.project, w.subscriber_id, coalesce(i.version, 0) AS version
      FROM unnest($1::int[], $2::text[], $3::bigint[]) AS w(project, subscriber_id, seen)
      LEFT JOIN inboxes i ON i.project = w.project AND i.subscriber_id = w.subscriber_id
     WHERE coalesce(i.version, 0) <> w.seen
    """,
)


async def moved(db: Connection, cursors: Sequence[Cursor]) -> list[Cursor]:
    """Those inboxes whose version is no longer the cursor's, with the version they have now."""
    rows = await db.rows(
        VERSIONS,
        [c.project for c in cursors],
        [c.subscriber_id for c in cursors],
        [c.version for c in cursors],
    )
    return [Cursor(*row) for row in rows]


class Start(Struct, frozen=True):
    """An inbox as a new stream finds it. `oldest`: the lowest version still in the log, if any."""

    version: int
    unread: int
    oldest: int | None


START = Query(
    "inbox_stream_start",
    """
    SELECT coalesce(i.version, 0) AS version, coalesce(i.unread, 0) AS unread,
           (SELECT version FROM inbox_changes c
             WHERE c.project = $1 AND c.subscriber_id = $2 AND c.version > $3::bigint
             ORDER BY version LIMIT 1) AS oldest
      FROM (SELECT) one
      LEFT JOIN inboxes i ON i.project = $1 AND i.subscriber_id = $2
    """,
)


async def start(db: Connection, project: int, subscriber_id: str, after: int) -> Start:
    """Version, unread count and the first change after `after` that is still in the log."""
    row = await db.row(START, project, subscriber_id, after)
    assert row is not None
    return Start(*row)
