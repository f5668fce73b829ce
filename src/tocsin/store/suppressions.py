"""Suppressions: addresses that get nothing, or no marketing, until someone releases them.

An address is compared in lower case, as PostgreSQL's lower() writes it.
"""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from msgspec import Struct

from tocsin.store.pool import Connection, Query


class Suppression(Struct, frozen=True):
    """One row; it is in force while released_at is null. scope: `all` or `marketing`."""

    id: UUID
    channel: str
    address: str
    scope: str
    reason: str
    detail: str | None
    created_at: datetime
    released_at: datetime | None


SCOPES = Query(
    "suppression_scopes",
    """
    SELECT s.project, s.address, s.scope
      FROM unnest($1::int[], $2::text[]) AS w(project, address)
      JOIN suppressions s ON s.project = w.project AND s.channel = 'email'
           AND s.address = lower(w.address) AND s.released_at IS NULL
    """,
)


async def scopes(db: Connection, wanted: Sequence[tuple[int, str]]) -> dict[tuple[int, str], str]:
    """What is in force for these (project, email address in lower case); others are left out."""
    rows = await db.rows(SCOPES, [w[0] for w in wanted], [w[1] for w in wanted])
    return {(row[0], row[1]): row[2] for row in rows}


UPSERT = Query(
    "suppression_upsert",
    """
    INSERT INTO suppressions AS s (id, project, channel, address, scope, reason, detail, job_id,
                                   created_at)
    VALUES ($1, $2, $3, lower($4), $5, $6, $7, $8, $9)
    ON CONFLICT (project, channel, address) WHERE released_at IS NULL DO UPDATE SET
        scope = CASE WHEN s.scope = 'all' THEN 'all' ELSE excluded.scope END,
        reason = CASE WHEN s.scope = 'all' OR excluded.scope = 'marketing' THEN s.reason
                      ELSE excluded.reason END,
        detail = CASE WHEN s.scope = 'all' OR excluded.scope = 'marketing'
                      THEN coalesce(s.detail, excluded.detail) ELSE excluded.detail END
    RETURNING id, channel, address, scope, reason, detail, created_at, released_at
    """,
)


async def upsert(
    db: Connection, project: int, wanted: Suppression, *, job_id: UUID | None = None
) -> Suppression:
    """Suppress an address. One row is in force for it; `all` never narrows to `marketing`.

    Repeating it changes nothing; the row in force is returned.
    """
    row = await db.row(
        UPSERT,
        wanted.id,
        project,
        wanted.channel,
        wanted.address,
        wanted.scope,
        wanted.reason,
        wanted.detail,
        job_id,
        wanted.created_at,
    )
    assert row is not None
    return Suppression(*row)


LIST = Query(
    "suppression_list",
    """
    WITH hit AS NOT MATERIALIZED (
        SELECT * FROM suppressions
         WHERE project = $1 AND channel = $2 AND ($3::boolean OR released_at IS NULL)
    )
    SELECT t.total, p.*
      FROM (SELECT count(*) AS total FROM hit) t
      LEFT JOIN LATERAL (
        SELECT id, channel, address, scope, reason, detail, created_at, released_at
          FROM hit ORDER BY created_at DESC, id DESC LIMIT $4::int OFFSET $5::int
      ) p ON true
     ORDER BY p.created_at DESC, p.id DESC
    """,
)


async def page(
    db: Connection, project: int, channel: str, *, released: bool, limit: int, offset: int
) -> tuple[list[Suppression], int]:
    """The newest suppressions of a channel, and how many there are in all."""
    found = [tuple(row) for row in await db.rows(LIST, project, channel, released, limit, offset)]
    return [Suppression(*row[1:]) for row in found if row[1] is not None], found[0][0]


RELEASE = Query(
    "suppression_release",
    """
    UPDATE suppressions SET released_at = $3, released_by = $4
     WHERE project = $1 AND id = $2 AND released_at IS NULL
    """,
)


async def release(
    db: Connection, project: int, suppression_id: UUID, *, released_by: str, at: datetime
) -> bool:
    """Let an address receive again; the row stays. False when it is not in force."""
    return await db.execute(RELEASE, project, suppression_id, at, released_by) > 0
