"""Preferences: what a person wants on which channel, about which topic or workflow."""

from collections.abc import Sequence
from datetime import datetime

from tocsin.domain.preferences import Preference
from tocsin.store.pool import Connection, Query

LIST = Query(
    "preference_list",
    """
    SELECT channel, topic, workflow_id, enabled FROM preferences
     WHERE project = $1 AND subscriber_id = $2 ORDER BY channel, topic, workflow_id
    """,
)


async def of_subscriber(db: Connection, project: int, subscriber_id: str) -> list[Preference]:
    """All choices of a person."""
    return [Preference(*row) for row in await db.rows(LIST, project, subscriber_id)]


UPSERT = Query(
    "preference_upsert",
    """
    INSERT INTO preferences (project, subscriber_id, channel, topic, workflow_id, enabled,
                             updated_at)
    SELECT $1, $2, channel, topic, workflow_id, enabled, $7
      FROM unnest($3::text[], $4::text[], $5::text[], $6::boolean[])
           AS g(channel, topic, workflow_id, enabled)
     ORDER BY channel, topic, workflow_id
    ON CONFLICT (project, subscriber_id, channel, topic, workflow_id)
    DO UPDATE SET enabled = excluded.enabled, updated_at = excluded.updated_at
    """,
)


async def upsert(
    db: Connection,
    project: int,
    subscriber_id: str,
    choices: Sequence[Preference],
    at: datetime,
) -> int:
    """Store choices, no two of them about the same thing; how many."""
    return await db.execute(
        UPSERT,
        project,
        subscriber_id,
        [c.channel for c in choices],
        [c.topic for c in choices],
        [c.workflow for c in choices],
        [c.enabled for c in choices],
        at,
    )
