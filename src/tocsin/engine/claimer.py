"""Claimer: takes batches of one lane as long as there is work and room, each under one lease."""

import asyncio
import random
from datetime import timedelta
from uuid import UUID

from tocsin.domain.clock import Clock
from tocsin.domain.priority import CLASSES
from tocsin.engine.dispatcher import Dispatcher
from tocsin.engine.lane import Lane
from tocsin.engine.loop import Loop
from tocsin.engine.settler import Settler
from tocsin.store import queue
from tocsin.store.notifier import Notifier
from tocsin.store.pool import Database
from tocsin.store.queue import Lease

#: How long a lease lasts unless it is renewed.
LEASE_S = 30.0
#: Leases of one lane delivered at one time: the next is assembled while one is on the wire.
LEASES_MAX = 3
#: The truth behind every hint. Without LISTEN it is all there is.
POLL_S = 1.0
POLL_ALONE_S = 0.1
#: A look below the cursors at least this often keeps late commits reachable.
SWEEP_S = 1.0


class Claimer:
    """One lane's loop. Cursors keep a claim from walking over the dead entries of what was taken."""

    def __init__(
        self,
        lane: Lane,
        *,
        db: Database,
        clock: Clock,
        notifier: Notifier,
        settler: Settler,
        dispatcher: Dispatcher,
        worker: UUID,
        lease_s: float = LEASE_S,
    ) -> None:
        self.lane = lane
        self.loop = Loop(f"claimer {lane.channel}", self._turn)
        self._db = db
        self._clock = clock
        self._notifier = notifier
        self._settler = settler
        self._dispatcher = dispatcher
        self._worker = worker
        self._lease_s = lease_s
        self._hints = notifier.subscribe(f"lane:{lane.id}", "lanes")
        self._slots = asyncio.Semaphore(LEASES_MAX)
        self._cursors = dict.fromkeys(CLASSES, 0)
        self._swept_at = 0.0
        self.tasks: set[asyncio.Task[None]] = set()
        self.waits_for_room = False
        self.served: dict[tuple[int, int], int] = {}

    def start(self) -> None:
        self.loop.start()

    async def stop(self) -> None:
        """Claim nothing more, and return when every lease in hand has ended."""
        await self.loop.stop()
        if self.tasks:
            await asyncio.wait(self.tasks)
        self._hints.close()

    async def _turn(self) -> None:
        self.waits_for_room = True
        await self._settler.room()
        async with self._slots:
            self.waits_for_room = False
        claiming = asyncio.ensure_future(self._claim())
        try:
            lease = await asyncio.shield(claiming)
        except asyncio.CancelledError:
            # What was claimed while we were told to stop must be given back, not left to run out.
            if (lease := await claiming) is not None:
                await self._begin(lease)
            raise
        if lease is None:
            await self._rest()
        else:
            await self._begin(lease)

    async def _begin(self, lease: Lease) -> None:
        await self._slots.acquire()
        task = asyncio.create_task(self._deliver(lease), name=f"lease {lease.id}")
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _deliver(self, lease: Lease) -> None:
        loop = asyncio.get_running_loop()
        began_at = loop.time()
        try:
            await self._dispatcher.run(lease, self.lane)
        finally:
            self._slots.release()
            self.lane.adapt(len(lease.job_ids), loop.time() - began_at)

    async def _claim(self) -> Lease | None:
        """A bounded look first; below the cursors when that is due or found nothing."""
        self._hints.take()
        size = self.lane.claim_size
        now_s = asyncio.get_running_loop().time()
        if now_s - self._swept_at < SWEEP_S:
            lease = await self._take(self._cursors, size)
            if lease is not None:
                if len(lease.job_ids) < size:
                    self._swept_at = 0.0
                return lease
        self._swept_at = now_s
        lease = await self._take(dict.fromkeys(CLASSES, 0), size)
        if lease is None or len(lease.job_ids) < size:
            self._swept_at = 0.0
        return lease

    async def _take(self, cursors: dict[int, int], size: int) -> Lease | None:
        now = self._clock.now()
        claim = await queue.claim(
            self._db.queue,
            lane=self.lane.id,
            cursors=list(cursors.items()),
            limit=size,
            worker=self._worker,
            now=now,
            expires_at=now + timedelta(seconds=self._lease_s),
        )
        if claim.paused_until is not None:
            self.lane.rest(claim.paused_until)
        if claim.lease is None:
            return None
        for queue_class, tag in zip(claim.lease.classes, claim.lease.tags, strict=True):
            self._cursors[queue_class] = max(self._cursors[queue_class], tag)
        for queue_class in set(claim.lease.classes):
            self.served[self.lane.id, queue_class] = self._cursors[queue_class]
        return claim.lease

    async def _rest(self) -> None:
        """Wait for a hint, the poll, or the end of a pause."""
        wait_s = POLL_S if self._notifier.listening else POLL_ALONE_S
        wait_s *= 0.8 + 0.4 * random.random()
        now = self._clock.now()
        if self.lane.rests_until is not None and self.lane.rests_until > now:
            wait_s = min(wait_s, (self.lane.rests_until - now).total_seconds() + 0.001)
        await self._hints.wait(wait_s)
