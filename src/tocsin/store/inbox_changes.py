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
    """One change; `is_todo` and what follows is null unless `kind` is `new` or `todo`.

    They are the message's as it is now, and null when it no longer exists.
    """

    project: int
    subscriber_id: str
    version: int
    kind: str
    message_id: UUID | None
    unread: int
    is_todo: bool | None
    subject: str | None
    body: str | None
    icon: str | None
    url: str | None
    data: str | None
    created_at: datetime | None


#: What every such name starts with.
HINT_PREFIX = "inbox:"


def hint_of(project: int, subscriber_id: str) -> str:
    """The name that is hinted when this inbox changed. The number comes first: nothing collides."""
    return f"{HINT_PREFIX}{project}:{subscriber_id}"


CHANGES_AFTER = Query(
    "inbox_changes_after",
    """
    SELECT w.project, w.subscriber_id, c.version, c.kind, c.message_id, c.unread,
           m.is_todo, m.subject, m.body, m.icon, m.url, m.data, m.created_at
      FROM unnest($1::int[], $2::text[], $3::bigint[]) AS w(project, subscriber_id, after)
     CROSS JOIN LATERAL (
        SELECT version, kind, message_id, unread FROM inbox_changes c
         WHERE c.project = w.project AND c.subscriber_id = w.subscriber_id AND c.version > w.after
         ORDER BY version LIMIT $4::int
      ) c
      LEFT JOIN LATERAL (
        SELECT is_todo, subject, body, icon, url, data, created_at FROM inbox_messages m
         WHERE c.kind IN ('new', 'todo') AND m.project = w.project AND m.subscriber_id = w.subscriber_id
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
    """An inbox as a new reader finds it.

    after: what the reader said it has, None for nothing; next: the lowest version above that which
    is still in the log, if any.
    """

    version: int
    unread: int
    after: int | None
    next: int | None


STARTS = Query(
    "inbox_stream_starts",
    """
    SELECT coalesce(i.version, 0) AS version, coalesce(i.unread, 0) AS unread, w.after,
           (SELECT c.version FROM inbox_changes c
             WHERE c.project = w.project AND c.subscriber_id = w.subscriber_id
               AND c.version > w.after
             ORDER BY c.version LIMIT 1) AS next
      FROM unnest($1::int[], $2::text[], $3::bigint[])
           WITH ORDINALITY AS w(project, subscriber_id, after, nth)
      LEFT JOIN inboxes i ON i.project = w.project AND i.subscriber_id = w.subscriber_id
     ORDER BY w.nth
    """,
)


async def starts(db: Connection, readers: Sequence[tuple[int, str, int | None]]) -> list[Start]:
    """For each (project, subscriber id, after), in that order, how its inbox stands."""
    rows = await db.rows(
        STARTS, [r[0] for r in readers], [r[1] for r in readers], [r[2] for r in readers]
    )
    return [Start(*row) for row in rows]
