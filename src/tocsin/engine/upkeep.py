"""Upkeep: partitions ahead of time, expired keys and tickets away in small steps."""

import asyncio

from tocsin.domain.clock import Clock
from tocsin.engine.loop import Loop
from tocsin.store import upkeep
from tocsin.store.pool import Database

EVERY_S = 60.0
#: The wait when a step was full: more has expired.
SOON_S = 0.05


class Upkeep:
    """Harmless in any number of processes."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self.loop = Loop("upkeep", self._turn)
        self._db = db
        self._clock = clock

    def start(self) -> None:
        self.loop.start()

    async def stop(self) -> None:
        await self.loop.stop()

    async def _turn(self) -> None:
        now = self._clock.now()
        await upkeep.ensure_partitions(self._db.general, now)
        dropped = await upkeep.drop_expired(self._db.general, now=now)
        await asyncio.sleep(SOON_S if dropped >= upkeep.EXPIRED_MAX else EVERY_S)
