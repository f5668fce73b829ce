"""Workers: each proves progress by moving its row, which it does only when its loops moved."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from msgspec import Struct

from tocsin.store.pool import Connection
from tocsin.store.query import Query

#: A worker that showed no progress for this long is gone.
GONE_AFTER = timedelta(seconds=15)
#: Rows of workers gone for this long are dropped by the next beat.
FORGET_AFTER = timedelta(hours=1)


class WorkerRow(Struct, frozen=True):
    id: UUID
    host: str
    version: str
    lanes: list[int]
    started_at: datetime
    progressed_at: datetime


BEAT = Query(
    "beat",
    """
WITH old AS (DELETE FROM workers WHERE progressed_at < $6)
INSERT INTO workers AS w (id, host, version, lanes, started_at, progressed_at)
VALUES ($1, $2, $3, $4, $5, $5)
ON CONFLICT (id) DO UPDATE SET progressed_at = greatest(w.progressed_at, excluded.progressed_at)
""",
)
LEAVE = Query("leave", "DELETE FROM workers WHERE id = $1")
ALIVE = Query(
    "alive",
    """
SELECT id, host, version, lanes, started_at, progressed_at FROM workers
 WHERE progressed_at > $1 ORDER BY started_at, id LIMIT 1000
""",
)


async def beat(
    db: Connection, *, worker: UUID, host: str, version: str, lanes: Sequence[int], now: datetime
) -> None:
    """The worker made progress now."""
    await db.execute(BEAT, worker, host, version, lanes, now, now - FORGET_AFTER)


async def leave(db: Connection, worker: UUID) -> None:
    """The worker stopped in good order."""
    await db.execute(LEAVE, worker)


async def alive(db: Connection, *, now: datetime) -> list[WorkerRow]:
    """Workers that made progress within GONE_AFTER."""
    return [WorkerRow(*row) for row in await db.rows(ALIVE, now - GONE_AFTER)]
