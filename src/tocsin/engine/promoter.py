"""Promoter: moves scheduled work to ready when it falls due."""

import random

from tocsin.domain.clock import Clock
from tocsin.domain.priority import CLASSES
from tocsin.engine.loop import Loop
from tocsin.store import queue
from tocsin.store.notifier import Notifier
from tocsin.store.pool import Database

#: Jobs moved in one commit.
PROMOTE_MAX = 5_000
POLL_S = 0.5


class Promoter:
    """Any number may run: each takes rows that no other holds."""

    def __init__(self, db: Database, clock: Clock, notifier: Notifier) -> None:
        self.loop = Loop("promoter", self._turn)
        self._db = db
        self._clock = clock
        self._notifier = notifier
        self._hints = notifier.subscribe("scheduled")

    def start(self) -> None:
        self.loop.start()

    async def stop(self) -> None:
        await self.loop.stop()
        self._hints.close()

    async def _turn(self) -> None:
        self._hints.take()
        moved = await queue.promote(
            self._db.queue, classes=CLASSES, now=self._clock.now(), limit=PROMOTE_MAX
        )
        if moved:
            self._notifier.hint(*(f"lane:{lane}" for lane in moved))
        if sum(moved.values()) < PROMOTE_MAX:
            await self._hints.wait(await self._wait_s())

    async def _wait_s(self) -> float:
        """Until the next job falls due, at most one poll."""
        due = await queue.next_due(self._db.queue, classes=CLASSES)
        wait_s = POLL_S * (0.8 + 0.4 * random.random())
        if due is not None:
            wait_s = min(wait_s, (due - self._clock.now()).total_seconds())
        return max(wait_s, 0.001)
