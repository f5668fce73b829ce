"""Database: the one that is configured, at this version before anything uses it."""

import structlog

from tocsin.domain.errors import Conflict
from tocsin.store.migrate import Migration, migrate, missing
from tocsin.store.pool import open_session

_log = structlog.get_logger()


async def prepare(url: str, *, migrates: bool = True) -> list[Migration]:
    """Migrate, or refuse a database of an older version; what was applied."""
    if migrates:
        return await migrate(url, on_step=_note)
    session = await open_session(url, application_name="tocsin migrate")
    try:
        todo = await missing(session)
    finally:
        await session.close()
    if todo:
        raise Conflict(
            "database_older",
            f"the database lacks {', '.join(migration.title for migration in todo)}",
            remedy="run `tocsin migrate`, or start without --no-migrate",
        )
    return []


def _note(migration: Migration) -> None:
    _log.info("migrating", migration=migration.title)
