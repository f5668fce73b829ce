"""Lanes: one provider account on one channel; paused, paced and claimed as a whole."""

from datetime import datetime

from msgspec import Struct

from tocsin.store.pool import Connection
from tocsin.store.query import Query

#: Calls saved up while a lane is idle: this much of its rate, so that no second holds two seconds' worth.
BURST_S = 0.1


class LaneRow(Struct, frozen=True):
    id: int
    channel: str
    provider: str
    account: str
    paused_until: datetime | None
    pause_code: str | None
    pause_reason: str | None


ENSURE_LANE = Query(
    "ensure_lane",
    """
WITH made AS (
    INSERT INTO lanes (channel, provider, account, created_at, calls_per_s, burst)
    VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (channel, provider, account) DO UPDATE
       SET calls_per_s = excluded.calls_per_s, burst = excluded.burst
     WHERE lanes.calls_per_s IS DISTINCT FROM excluded.calls_per_s
    RETURNING id)
SELECT id FROM made UNION ALL
SELECT id FROM lanes WHERE channel = $1 AND provider = $2 AND account = $3 LIMIT 1
""",
)
LANES = Query(
    "lanes",
    """
SELECT id, channel, provider, account, paused_until, pause_code, pause_reason
  FROM lanes ORDER BY id LIMIT 10000
""",
)
# A pause never shortens another's.
PAUSE_LANE = Query(
    "pause_lane",
    """
UPDATE lanes SET paused_until = $2, pause_code = $3, pause_reason = $4
 WHERE id = $1 AND (paused_until IS NULL OR paused_until < $2)
""",
)


async def ensure_lane(
    db: Connection,
    *,
    channel: str,
    provider: str,
    account: str,
    now: datetime,
    calls_per_s: float | None = None,
) -> int:
    """The id of a lane, made when it is new; its rate is the last one said, None for none."""
    burst = max(1, int((calls_per_s or 0) * BURST_S))
    while True:
        lane: int | None = await db.value(
            ENSURE_LANE, channel, provider, account, now, calls_per_s, burst
        )
        # Another process may have made it after our snapshot was taken: then the next look sees it.
        if lane is not None:
            return lane


async def lanes(db: Connection) -> list[LaneRow]:
    """Every lane there is."""
    return [LaneRow(*row) for row in await db.rows(LANES)]


async def pause_lane(db: Connection, *, lane: int, until: datetime, code: str, reason: str) -> None:
    """The lane gives no work before `until`, on every replica."""
    await db.execute(PAUSE_LANE, lane, until, code, reason)
