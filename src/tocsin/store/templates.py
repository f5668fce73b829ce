"""Templates: what a message says on each channel, under one id."""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from tocsin.store.pool import Connection, Query


class Template(Struct, frozen=True):
    """One channel's variant of a template."""

    id: str
    channel: str
    subject: str | None
    body: str
    body_html: str | None
    topic: str | None
    created_at: datetime
    updated_at: datetime


UPSERT = Query(
    "template_upsert",
    """
    INSERT INTO templates (project, id, channel, subject, body, body_html, topic, created_at,
                           updated_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8)
    ON CONFLICT (project, id, channel) DO UPDATE SET subject = excluded.subject,
        body = excluded.body, body_html = excluded.body_html, topic = excluded.topic,
        updated_at = excluded.updated_at
    """,
)


async def upsert(db: Connection, project: int, template: Template) -> None:
    """Store a variant in place of the one it had."""
    await db.execute(
        UPSERT,
        project,
        template.id,
        template.channel,
        template.subject,
        template.body,
        template.body_html,
        template.topic,
        template.updated_at,
    )


LIST = Query(
    "template_list",
    """
    WITH hit AS NOT MATERIALIZED (
        SELECT * FROM templates WHERE project = $1 AND ($2::text IS NULL OR channel = $2)
    )
    SELECT t.total, p.*
      FROM (SELECT count(*) AS total FROM hit) t
      LEFT JOIN LATERAL (
        SELECT id, channel, subject, body, body_html, topic, created_at, updated_at
          FROM hit ORDER BY id, channel LIMIT $3::int OFFSET $4::int
      ) p ON true
     ORDER BY p.id, p.channel
    """,
)


async def page(
    db: Connection, project: int, *, channel: str | None, limit: int, offset: int
) -> tuple[list[Template], int]:
    """Variants by id and channel, and how many there are in all."""
    found = [tuple(row) for row in await db.rows(LIST, project, channel, limit, offset)]
    return [Template(*row[1:]) for row in found if row[1] is not None], found[0][0]


VARIANTS = Query(
    "template_variants",
    """
    SELECT id, channel, subject, body, body_html, topic, created_at, updated_at
      FROM templates WHERE project = $1 AND id = $2 ORDER BY channel
    """,
)


async def variants(db: Connection, project: int, template_id: str) -> list[Template]:
    """All variants of one template."""
    return [Template(*row) for row in await db.rows(VARIANTS, project, template_id)]


MANY = Query(
    "template_many",
    """
    SELECT t.project, t.id, t.channel, t.subject, t.body, t.body_html, t.topic
      FROM unnest($1::int[], $2::text[], $3::text[]) AS w(project, id, channel)
      JOIN templates t USING (project, id, channel)
    """,
)


class Wording(Struct, frozen=True):
    """What one template says on one channel."""

    subject: str | None
    body: str
    body_html: str | None
    topic: str | None


async def wordings(
    db: Connection, wanted: Sequence[tuple[int, str, str]]
) -> dict[tuple[int, str, str], Wording]:
    """Templates by (project, id, channel), in one query; unknown ones are left out."""
    rows = await db.rows(
        MANY, [w[0] for w in wanted], [w[1] for w in wanted], [w[2] for w in wanted]
    )
    return {(row[0], row[1], row[2]): Wording(*tuple(row)[3:]) for row in rows}


DELETE = Query("template_delete", "DELETE FROM templates WHERE project = $1 AND id = $2")


async def delete(db: Connection, project: int, template_id: str) -> int:
    """Delete all variants; how many there were."""
    return await db.execute(DELETE, project, template_id)
