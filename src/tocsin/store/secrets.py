"""Secrets that Tocsin made itself: kept once for all processes, never in a log."""

from datetime import datetime

from tocsin.store.pool import Connection, Query

KEEP = Query(
    "secret_keep",
    """
    INSERT INTO secrets (name, value, created_at) VALUES ($1, $2, $3)
    ON CONFLICT (name) DO NOTHING
    """,
)


async def keep(db: Connection, name: str, value: bytes, at: datetime) -> bool:
    """Store a secret under a free name; False, and nothing changed, when there is one."""
    return await db.execute(KEEP, name, value, at) > 0


READ = Query("secret_read", "SELECT value FROM secrets WHERE name = $1")


async def read(db: Connection, name: str) -> bytes | None:
    """The secret of this name."""
    value: bytes | None = await db.value(READ, name)
    return value
