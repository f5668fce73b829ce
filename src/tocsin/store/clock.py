"""The database's clock, read without asking the database: law 11 at the price of an addition."""

import time
from collections.abc import Callable
from datetime import UTC, datetime

from tocsin.store.pool import Connection
from tocsin.store.query import Query

SAMPLES = 5
#: How often wiring has the clock resynchronised; quartz drifts some 2 ms in this time.
RESYNC_S = 60.0
#: A clock that is ahead goes at this part of its speed until the database has caught up.
CATCH_UP_SPEED = 0.5

READ_CLOCK = Query("read_clock", "SELECT clock_timestamp()")


class DatabaseClock:
    """now() is the database's time, to about half a round trip; it never goes backwards.

    monotonic: seconds that only grow; another one in tests.
    """

    def __init__(
        self, connection: Connection, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._connection = connection
        self._monotonic = monotonic
        self._offset = 0.0
        self._ahead = 0.0
        self._since = 0.0
        self._synced = False

    async def resync(self) -> float:
        """Read the database's clock; by how many seconds it had moved against ours.

        Called once before now(), then every RESYNC_S. Raises Unavailable; now() goes on as it was.
        """
        offset = await self._sample()
        at = self._monotonic()
        if not self._synced:
            self._offset, self._since, self._synced = offset, at, True
            return 0.0
        told = self._seconds(at)
        # Ahead of the database we slow down instead of stepping back; behind it we step.
        self._ahead = max(0.0, told - (at + offset))
        moved = offset - self._offset
        self._offset, self._since = offset, at
        return moved

    def now(self) -> datetime:
        """The database's time, aware, UTC."""
        assert self._synced, "resync() comes before now()"
        return datetime.fromtimestamp(self._seconds(self._monotonic()), UTC)

    def _seconds(self, at: float) -> float:
        ahead = self._ahead - (at - self._since) * (1 - CATCH_UP_SPEED) if self._ahead else 0.0
        return at + self._offset + max(0.0, ahead)

    async def _sample(self) -> float:
        """Database seconds less our seconds, from the quickest of a few round trips."""
        quickest, offset = float("inf"), 0.0
        for _ in range(SAMPLES):
            before = self._monotonic()
            read: datetime = await self._connection.value(READ_CLOCK)
            after = self._monotonic()
            if after - before < quickest:
                quickest = after - before
                offset = read.timestamp() - (before + after) / 2
        return offset
