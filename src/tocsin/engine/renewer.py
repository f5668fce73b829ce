"""Renewer: prolongs the leases in hand; one that could not be prolonged starts nothing new."""

import asyncio
from datetime import timedelta
from uuid import UUID

from tocsin.domain.clock import Clock
from tocsin.domain.errors import Unavailable
from tocsin.engine.dispatcher import Dispatcher
from tocsin.engine.loop import Loop
from tocsin.engine.timing import Timing
from tocsin.store import leases
from tocsin.store.pool import Database

#: Renewed at a third of a lease's time; given up for lost at two thirds without an answer.
RENEW_SHARE = 3


class Renewer:
    """Uses the local monotonic clock for giving up: only it runs while the process stands still."""

    def __init__(
        self, db: Database, clock: Clock, dispatcher: Dispatcher, worker: UUID, timing: Timing
    ) -> None:
        self.loop = Loop("renewer", self._turn)
        self._db = db
        self._clock = clock
        self._dispatcher = dispatcher
        self._worker = worker
        self._lease_s = timing.lease_s
        self._sure_until: dict[int, float] = {}

    def start(self) -> None:
        self.loop.start()

    async def stop(self) -> None:
        await self.loop.stop()

    async def _turn(self) -> None:
        await asyncio.sleep(self._lease_s / RENEW_SHARE)
        running = dict(self._dispatcher.running)
        if not running:
            self._sure_until.clear()
            return
        asked_at = asyncio.get_running_loop().time()
        try:
            now = self._clock.now()
            ours = await leases.renew(
                self._db.queue,
                list(running),
                worker=self._worker,
                now=now,
                until=now + timedelta(seconds=self._lease_s),
            )
        except Unavailable:
            self._give_up(asked_at)
            raise
        for lease_id, run in running.items():
            if lease_id in ours:
                self._sure_until[lease_id] = asked_at + self._lease_s * 2 / RENEW_SHARE
            else:
                run.lost = True
        self._sure_until = {k: v for k, v in self._sure_until.items() if k in running}

    def _give_up(self, now_s: float) -> None:
        for lease_id, run in self._dispatcher.running.items():
            if self._sure_until.setdefault(lease_id, now_s + self._lease_s / RENEW_SHARE) <= now_s:
                run.lost = True
