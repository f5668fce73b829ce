"""Worker: the engine's loops of one process, started and stopped together."""

import asyncio
import socket
from collections.abc import Sequence
from uuid import UUID

import structlog

from tocsin.domain.clock import Clock
from tocsin.domain.errors import Unavailable
from tocsin.domain.ids import uuid7
from tocsin.engine.assembly import Assembler, Defaults
from tocsin.engine.claimer import Claimer
from tocsin.engine.dispatcher import Dispatcher
from tocsin.engine.lane import Lane
from tocsin.engine.loop import Loop
from tocsin.engine.promoter import Promoter
from tocsin.engine.reaper import Reaper
from tocsin.engine.renewer import Renewer
from tocsin.engine.settler import Settler
from tocsin.engine.timing import Timing
from tocsin.store import queue, workers
from tocsin.store.notifier import Notifier
from tocsin.store.pool import Database

BEAT_S = 1.0
#: A loop that did not move for this long is not making progress.
STILL_MAX_S = 8.0
#: What a provider may still answer after a stop was asked for; then its lease is left to the reaper.
DRAIN_S = 25.0
SERVED_S = 0.05

_log = structlog.get_logger()


class Worker:
    """Serves lanes. stop(): claims nothing new, gives back what no byte was sent of, settles the rest."""

    def __init__(
        self,
        lanes: Sequence[Lane],
        *,
        db: Database,
        clock: Clock,
        notifier: Notifier,
        defaults: Defaults,
        version: str,
        timing: Timing,
    ) -> None:
        self.id: UUID = uuid7(clock.now())
        self._db = db
        self._clock = clock
        self._version = version
        self._lanes = {lane.id: lane for lane in lanes}
        self._stopping = False
        self.settler = Settler(db, clock, notifier, self.id)
        assembler = Assembler(db, defaults)
        self.dispatcher = Dispatcher(
            db, clock, self.settler, assembler, self.id, lambda: self._stopping
        )
        self.claimers = [
            Claimer(
                lane,
                db=db,
                clock=clock,
                notifier=notifier,
                settler=self.settler,
                dispatcher=self.dispatcher,
                worker=self.id,
                timing=timing,
            )
            for lane in lanes
        ]
        self.promoter = Promoter(db, clock, notifier)
        self.renewer = Renewer(db, clock, self.dispatcher, self.id, timing)
        self.reaper = Reaper(
            self._lanes,
            db=db,
            clock=clock,
            notifier=notifier,
            dispatcher=self.dispatcher,
            assembler=assembler,
            worker=self.id,
            timing=timing,
        )
        self._beat = Loop("beat", self._prove_progress)
        self._served = Loop("served", self._mark_served)

    @property
    def loops(self) -> tuple[Loop, ...]:
        """Every loop but the claimers' and the settler."""
        parts = (self.renewer, self.promoter, self.reaper)
        return (*(part.loop for part in parts), self._beat, self._served)

    def start(self) -> None:
        self.settler.start()
        self.renewer.start()
        self.promoter.start()
        self.reaper.start()
        for claimer in self.claimers:
            claimer.start()
        self._beat.start()
        self._served.start()

    async def stop(self) -> None:
        """Return when nothing is in hand any more, at most DRAIN_S plus a commit later."""
        self._stopping = True
        try:
            async with asyncio.timeout(DRAIN_S):
                await asyncio.gather(
                    self.promoter.stop(),
                    self.reaper.stop(),
                    *(claimer.stop() for claimer in self.claimers),
                )
        except TimeoutError:
            _log.warning("drain_timed_out", leases=sorted(self.dispatcher.running))
        await self.settler.stop()
        await asyncio.gather(self.renewer.stop(), self._beat.stop(), self._served.stop())
        try:
            await workers.leave(self._db.general, self.id)
        except Unavailable:
            _log.warning("leave_not_recorded", worker=str(self.id))
        await asyncio.gather(*(lane.connector.aclose() for lane in self._lanes.values()))

    async def _prove_progress(self) -> None:
        """Beat only while the loops move: a heart that beats beside a dead loop hides it."""
        still = [
            claimer.lane.channel
            for claimer in self.claimers
            if claimer.loop.still_for_s > STILL_MAX_S and not claimer.waits_for_room
        ]
        if self.promoter.loop.still_for_s > STILL_MAX_S:
            still.append("promoter")
        if self.settler.stuck_for_s > STILL_MAX_S:
            still.append("settler")
        if still:
            _log.error("no_progress", loops=still)
        else:
            await workers.beat(
                self._db.general,
                worker=self.id,
                host=socket.gethostname(),
                version=self._version,
                lanes=list(self._lanes),
                now=self._clock.now(),
            )
        await asyncio.sleep(BEAT_S)

    async def _mark_served(self) -> None:
        served: dict[tuple[int, int], int] = {}
        for claimer in self.claimers:
            served.update(claimer.served)
            claimer.served.clear()
        if served:
            await queue.mark_served(self._db.queue, served)
        await asyncio.sleep(SERVED_S)
