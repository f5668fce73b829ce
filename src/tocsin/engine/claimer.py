"""Claimer: takes batches of one lane as long as there is work and room, each under one lease."""

import asyncio
import random
from datetime import datetime, timedelta
from uuid import UUID

from tocsin.domain.clock import Clock
from tocsin.domain.priority import CLASSES
from tocsin.engine.dispatcher import Dispatcher
from tocsin.engine.lane import Lane, Turn
from tocsin.engine.loop import Loop
from tocsin.engine.settler import Settler
from tocsin.engine.timing import Timing
from tocsin.store import pacing, queue
from tocsin.store.notifier import Notifier
from tocsin.store.pool import Database
from tocsin.store.queue import Lease

#: Leases of one lane delivered at one time: the next is assembled while one is on the wire.
LEASES_MAX = 3
#: The poll is the truth behind every hint; without LISTEN it is all there is, and comes this often.
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
        timing: Timing,
    ) -> None:
        self.lane = lane
        self.loop = Loop(f"claimer {lane.channel}", self._turn)
        self._db = db
        self._clock = clock
        self._notifier = notifier
        self._settler = settler
        self._dispatcher = dispatcher
        self._worker = worker
        self._timing = timing
        self._hints = notifier.subscribe(f"lane:{lane.id}", "lanes")
        self._slots = asyncio.Semaphore(LEASES_MAX)
        self._cursors = dict.fromkeys(CLASSES, 0)
        self._swept_at = 0.0
        self._again_at: datetime | None = None
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
        task = asyncio.create_task(
            self._deliver(lease, self.lane.next_turn()), name=f"lease {lease.id}"
        )
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _deliver(self, lease: Lease, turn: Turn) -> None:
        loop = asyncio.get_running_loop()
        began_at = loop.time()
        try:
            await self._dispatcher.run(lease, self.lane, turn)
        finally:
            self._slots.release()
            self.lane.adapt(len(lease.job_ids), loop.time() - began_at)

    async def _claim(self) -> Lease | None:
        """Take what the lane's rate allows now; what was granted and not used is given back."""
        self._hints.take()
        if not self.lane.paced:
            return await self._look(self.lane.claim_size)
        batch = self.lane.connector.spec.batch_max
        granted = await pacing.grant(
            self._db.queue,
            lane=self.lane.id,
            calls=-(-self.lane.claim_size // batch),
            now=self._clock.now(),
        )
        if granted.calls == 0:
            self._again_at = granted.again_at
            return None
        lease = await self._look(granted.calls * batch)
        used = 0 if lease is None else -(-len(lease.job_ids) // batch)
        if used < granted.calls:
            calls = granted.calls - used
            await pacing.give_back(self._db.queue, lane=self.lane.id, calls=calls)
        return lease

    async def _look(self, size: int) -> Lease | None:
        """A bounded look first; below the cursors when that is due or found nothing."""
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
            expires_at=now + timedelta(seconds=self._timing.lease_s),
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
        wait_s = (
            self._timing.poll_s
            if self._notifier.listening
            else min(self._timing.poll_s, POLL_ALONE_S)
        )
        wait_s *= 0.8 + 0.4 * random.random()
        now = self._clock.now()
        for until in (self.lane.rests_until, self._again_at):
            if until is not None and until > now:
                wait_s = min(wait_s, (until - now).total_seconds() + 0.001)
        if self._again_at is not None:
            # Work may well be there: only its time has not come.
            self._again_at = None
            await asyncio.sleep(wait_s)
        else:
            await self._hints.wait(wait_s)
