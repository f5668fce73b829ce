"""Projects: who sends, from what address, with which keys (only their hashes are here)."""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from tocsin.store.pool import Connection, Query, Record


class Project(Struct, frozen=True):
    """One project as an operator sees it. `settings` is JSON text; rate null: no limit."""

    number: int
    id: str
    name: str
    channels: list[str]
    rate_limit_per_min: int | None
    weight: int
    settings: str
    from_email: str | None
    from_name: str | None
    created_at: datetime
    previous_key_until: datetime | None


class NewProject(Struct, frozen=True):
    """A project to be; its key is in `key_hash` (SHA-256) alone."""

    id: str
    name: str
    channels: list[str]
    key_hash: bytes
    rate_limit_per_min: int | None
    weight: int
    settings: str
    from_email: str | None
    from_name: str | None


class Sender(Struct, frozen=True):
    """What a delivery must know of the project it is for."""

    id: str
    from_email: str | None
    from_name: str | None
    settings: str
    deleted: bool
    has_webhooks: bool


class KeyOwner(Struct, frozen=True):
    """The project that a key or a token belongs to. until: when this (previous) key ends."""

    number: int
    id: str
    channels: list[str]
    rate_limit_per_min: int | None
    until: datetime | None


_COLUMNS = (
    "number, id, name, channels, rate_limit_per_min, weight, settings, from_email, from_name, "
    "created_at, previous_key_until"
)

INSERT_PROJECT = Query(
    "project_insert",
    f"""
    INSERT INTO projects (id, name, channels, key_hash, rate_limit_per_min, weight, settings,
                          from_email, from_name, created_at, updated_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10)
    ON CONFLICT (id) WHERE deleted_at IS NULL DO NOTHING
    RETURNING {_COLUMNS}
    """,
)


async def insert_project(
    db: Connection,
    new: NewProject,
    at: datetime,
) -> Project | None:
    """The new project; None when a living one has this id."""
    row = await db.row(
        INSERT_PROJECT,
        new.id,
        new.name,
        new.channels,
        new.key_hash,
        new.rate_limit_per_min,
        new.weight,
        new.settings,
        new.from_email,
        new.from_name,
        at,
    )
    return _project(row)


def _project(row: Record | None) -> Project | None:
    return None if row is None else Project(*row)


LIST_PROJECTS = Query(
    "project_list",
    f"""
    SELECT t.total, p.*
      FROM (SELECT count(*) AS total FROM projects WHERE deleted_at IS NULL) t
      LEFT JOIN LATERAL (
        SELECT {_COLUMNS} FROM projects
         WHERE deleted_at IS NULL ORDER BY id LIMIT $1::int OFFSET $2::int
      ) p ON true
     ORDER BY p.id
    """,
)


async def list_projects(db: Connection, *, limit: int, offset: int) -> tuple[list[Project], int]:
    """A page of the living projects by id, and how many there are."""
    found = [tuple(row) for row in await db.rows(LIST_PROJECTS, limit, offset)]
    return [Project(*row[1:]) for row in found if row[1] is not None], found[0][0]


LOCK_PROJECT = Query(
    "project_lock",
    f"SELECT {_COLUMNS} FROM projects WHERE id = $1 AND deleted_at IS NULL FOR UPDATE",
)


async def lock_project(db: Connection, project_id: str) -> Project | None:
    """The living project of this id, locked until the transaction ends."""
    return _project(await db.row(LOCK_PROJECT, project_id))


READ_PROJECT = Query(
    "project_read",
    f"SELECT {_COLUMNS} FROM projects WHERE id = $1 AND deleted_at IS NULL",
)


async def read_project(db: Connection, project_id: str) -> Project | None:
    """The living project of this id."""
    return _project(await db.row(READ_PROJECT, project_id))


UPDATE_PROJECT = Query(
    "project_update",
    f"""
    UPDATE projects SET name = $2, channels = $3, rate_limit_per_min = $4, weight = $5,
           settings = $6, from_email = $7, from_name = $8, updated_at = $9
     WHERE number = $1
    RETURNING {_COLUMNS}
    """,
)


async def update_project(db: Connection, changed: Project, at: datetime) -> Project | None:
    """Store every column a PATCH can change of a project that `lock_project` holds."""
    return _project(
        await db.row(
            UPDATE_PROJECT,
            changed.number,
            changed.name,
            changed.channels,
            changed.rate_limit_per_min,
            changed.weight,
            changed.settings,
            changed.from_email,
            changed.from_name,
            at,
        )
    )


ROTATE_KEY = Query(
    "project_rotate_key",
    """
    UPDATE projects
       SET previous_key_hash = CASE WHEN $3::timestamptz > $4::timestamptz THEN key_hash END,
           previous_key_until = CASE WHEN $3 > $4 AND key_hash IS NOT NULL THEN $3 END,
           key_hash = $2, updated_at = $4
     WHERE id = $1 AND deleted_at IS NULL
    """,
)


async def rotate_key(
    db: Connection, project_id: str, key_hash: bytes, *, previous_until: datetime, at: datetime
) -> bool:
    """Give the project a new key; the one it had lasts until then. False for an unknown project."""
    return await db.execute(ROTATE_KEY, project_id, key_hash, previous_until, at) > 0


REVOKE_PREVIOUS = Query(
    "project_revoke_previous",
    """
    UPDATE projects SET previous_key_hash = NULL, previous_key_until = NULL, updated_at = $2
     WHERE id = $1 AND deleted_at IS NULL
    """,
)


async def revoke_previous(db: Connection, project_id: str, at: datetime) -> bool:
    """End the previous key now. False for an unknown project."""
    return await db.execute(REVOKE_PREVIOUS, project_id, at) > 0


DELETE_PROJECT = Query(
    "project_delete",
    """
    UPDATE projects SET deleted_at = $2, updated_at = $2, key_hash = NULL,
           previous_key_hash = NULL, previous_key_until = NULL
     WHERE id = $1 AND deleted_at IS NULL
    """,
)


async def delete_project(db: Connection, project_id: str, at: datetime) -> bool:
    """Mark it deleted and forget its keys. False for an unknown project."""
    return await db.execute(DELETE_PROJECT, project_id, at) > 0


KEY_OWNER = Query(
    "project_key_owner",
    """
    SELECT number, id, channels, rate_limit_per_min,
           CASE WHEN key_hash = $1 THEN NULL ELSE previous_key_until END AS until
      FROM projects
     WHERE deleted_at IS NULL
       AND (key_hash = $1 OR (previous_key_hash = $1 AND previous_key_until > $2))
    """,
)


async def key_owner(db: Connection, key_hash: bytes, at: datetime) -> KeyOwner | None:
    """Whose key hashes (SHA-256) to this, if it is valid at that time."""
    row = await db.row(KEY_OWNER, key_hash, at)
    return None if row is None else KeyOwner(*row)


NUMBER_OWNER = Query(
    "project_by_number",
    """
    SELECT number, id, channels, rate_limit_per_min, NULL::timestamptz AS until
      FROM projects WHERE number = $1 AND deleted_at IS NULL
    """,
)


async def by_number(db: Connection, number: int) -> KeyOwner | None:
    """The living project of this number."""
    row = await db.row(NUMBER_OWNER, number)
    return None if row is None else KeyOwner(*row)


SENDERS = Query(
    "project_senders",
    """
    SELECT number, id, from_email, from_name, settings, deleted_at IS NOT NULL AS deleted,
           EXISTS (SELECT FROM webhooks w WHERE w.project = p.number AND w.enabled) AS has_webhooks
      FROM projects p WHERE number = ANY ($1::int[])
    """,
)


async def senders(db: Connection, numbers: Sequence[int]) -> dict[int, Sender]:
    """What deliveries must know of these projects, by number, deleted ones included."""
    rows = await db.rows(SENDERS, list(numbers))
    return {row["number"]: Sender(*tuple(row)[1:]) for row in rows}
