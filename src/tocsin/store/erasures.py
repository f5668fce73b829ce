"""Erasures: people who were deleted, and when; what is older than that is not theirs to get any more."""

from collections.abc import Sequence
from datetime import datetime

from tocsin.store.pool import Connection
from tocsin.store.query import Query

RECORD = Query(
    "erasure_record",
    """
INSERT INTO erasures (project, subscriber_id, at) VALUES ($1, $2, $3)
ON CONFLICT (project, subscriber_id) DO UPDATE SET at = excluded.at
""",
)
ERASED = Query(
    "erased",
    """
SELECT e.project, e.subscriber_id, e.at
  FROM unnest($1::int[], $2::text[]) AS w(project, subscriber_id)
  JOIN erasures e ON e.project = w.project AND e.subscriber_id = w.subscriber_id
""",
)


async def record(db: Connection, project: int, subscriber_id: str, at: datetime) -> None:
    """The person was deleted at that time; in the commit that deletes them."""
    await db.execute(RECORD, project, subscriber_id, at)


async def erased(
    db: Connection, people: Sequence[tuple[int, str]]
) -> dict[tuple[int, str], datetime]:
    """When each of these (project, subscriber) was last deleted; those who never were are left out."""
    rows = await db.rows(ERASED, [p[0] for p in people], [p[1] for p in people])
    return {(row[0], row[1]): row[2] for row in rows}
