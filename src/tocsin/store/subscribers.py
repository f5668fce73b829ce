"""Subscribers: the people of a project, and everything of theirs that goes when they go."""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from tocsin.store.pool import Connection, Query


class Subscriber(Struct, frozen=True):
    """One person. `data` is a JSON object as text."""

    id: str
    email: str | None
    phone: str | None
    first_name: str | None
    last_name: str | None
    locale: str | None
    timezone: str | None
    data: str
    created_at: datetime
    updated_at: datetime


UPSERT = Query(
    "subscriber_upsert",
    """
    INSERT INTO subscribers AS s (project, id, email, phone, first_name, last_name, locale,
                                  timezone, data, created_at, updated_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, coalesce($9::json, '{}'), $10, $10)
    ON CONFLICT (project, id) DO UPDATE SET
        email = CASE WHEN 'email' = ANY ($11::text[]) THEN excluded.email ELSE s.email END,
        phone = CASE WHEN 'phone' = ANY ($11) THEN excluded.phone ELSE s.phone END,
        first_name = CASE WHEN 'first_name' = ANY ($11) THEN excluded.first_name
                          ELSE s.first_name END,
        last_name = CASE WHEN 'last_name' = ANY ($11) THEN excluded.last_name
                         ELSE s.last_name END,
        locale = CASE WHEN 'locale' = ANY ($11) THEN excluded.locale ELSE s.locale END,
        timezone = CASE WHEN 'timezone' = ANY ($11) THEN excluded.timezone ELSE s.timezone END,
        data = CASE WHEN NOT 'data' = ANY ($11) THEN s.data
                    WHEN $9 IS NULL THEN '{}'
                    ELSE (s.data::jsonb || excluded.data::jsonb)::json END,
        updated_at = excluded.updated_at
    RETURNING xmax = 0
    """,
)


async def upsert(
    db: Connection,
    project: int,
    person: Subscriber,
    *,
    given: Sequence[str],
    data: str | None,
    at: datetime,
) -> bool:
    """Store a person; of one already there only the `given` columns, `data` merged one level deep.

    data: JSON text, None to clear. True when the person is new.
    """
    created: bool = await db.value(
        UPSERT,
        project,
        person.id,
        person.email,
        person.phone,
        person.first_name,
        person.last_name,
        person.locale,
        person.timezone,
        data,
        at,
        list(given),
    )
    return created


READ = Query(
    "subscriber_read",
    """
    SELECT id, email, phone, first_name, last_name, locale, timezone, data, created_at, updated_at
      FROM subscribers WHERE project = $1 AND id = $2
    """,
)


async def read(db: Connection, project: int, subscriber_id: str) -> Subscriber | None:
    """One person."""
    row = await db.row(READ, project, subscriber_id)
    return None if row is None else Subscriber(*row)


LIST = Query(
    "subscriber_list",
    """
    WITH hit AS NOT MATERIALIZED (
        SELECT * FROM subscribers
         WHERE project = $1
           AND ($2::text IS NULL OR id ILIKE $2 OR email ILIKE $2
                OR first_name ILIKE $2 OR last_name ILIKE $2)
    )
    SELECT t.total, p.*
      FROM (SELECT count(*) AS total FROM hit) t
      LEFT JOIN LATERAL (
        SELECT id, email, phone, first_name, last_name, locale, timezone, data, created_at,
               updated_at
          FROM hit ORDER BY id LIMIT $3::int OFFSET $4::int
      ) p ON true
     ORDER BY p.id
    """,
)


async def page(
    db: Connection, project: int, *, pattern: str | None, limit: int, offset: int
) -> tuple[list[Subscriber], int]:
    """People by id, and how many match in all. pattern: for ILIKE, escaped."""
    rows = await db.rows(LIST, project, pattern, limit, offset)
    found = [tuple(row) for row in rows]
    return [Subscriber(*row[1:]) for row in found if row[1] is not None], found[0][0]


LOCK = Query(
    "subscriber_lock", "SELECT id FROM subscribers WHERE project = $1 AND id = $2 FOR UPDATE"
)


async def lock(db: Connection, project: int, subscriber_id: str) -> bool:
    """Keep a person from being deleted or changed until the transaction ends; False if unknown."""
    return await db.value(LOCK, project, subscriber_id) is not None


DELETE = Query(
    "subscriber_delete",
    """
    WITH choices AS (DELETE FROM preferences WHERE project = $1 AND subscriber_id = $2)
    DELETE FROM subscribers WHERE project = $1 AND id = $2
    """,
)


async def delete(db: Connection, project: int, subscriber_id: str) -> bool:
    """Delete a person and their preferences, in the caller's transaction. False if unknown."""
    return await db.execute(DELETE, project, subscriber_id) > 0
