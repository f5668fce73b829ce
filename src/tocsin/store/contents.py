"""Contents: what messages say, read back by the worker that sends them."""

from collections.abc import Sequence
from uuid import UUID

from tocsin.store.pool import Connection
from tocsin.store.query import Query

# The bounds let PostgreSQL skip the partitions that hold none of the ids.
CONTENTS = Query(
    "contents",
    "SELECT id, body FROM contents WHERE id = ANY ($1::uuid[]) AND id BETWEEN $2 AND $3",
)


async def contents(db: Connection, ids: Sequence[UUID]) -> dict[UUID, str]:
    """The stored JSON of each id."""
    rows = await db.rows(CONTENTS, ids, min(ids), max(ids))
    return {row[0]: row[1] for row in rows}
