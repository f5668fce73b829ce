"""People: addresses and consent of many subscribers at once, for what is being enqueued."""

from collections.abc import Sequence

from msgspec import Struct

from tocsin.store.pool import Connection
from tocsin.store.query import Query


class PersonRow(Struct, frozen=True):
    """data and preferences are JSON text; preferences is None when nothing was chosen."""

    email: str | None
    phone: str | None
    data: str
    preferences: str | None


PEOPLE = Query(
    "people",
    """
SELECT s.project, s.id, s.email, s.phone, s.data,
       (SELECT json_agg(json_build_array(p.channel, p.topic, p.workflow_id, p.enabled))::text
          FROM preferences p WHERE p.project = s.project AND p.subscriber_id = s.id)
  FROM unnest($1::int[], $2::text[]) AS w(project, id)
  JOIN subscribers s ON s.project = w.project AND s.id = w.id
""",
)


async def people(
    db: Connection, wanted: Sequence[tuple[int, str]]
) -> dict[tuple[int, str], PersonRow]:
    """By (project, subscriber id); unknown ones are left out."""
    rows = await db.rows(PEOPLE, [w[0] for w in wanted], [w[1] for w in wanted])
    return {(row[0], row[1]): PersonRow(*tuple(row)[2:]) for row in rows}
