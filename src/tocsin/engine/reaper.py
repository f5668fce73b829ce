"""Reaper: leases whose time ran out. Repeats frozen calls, requeues what never left, owns up to the rest."""

import asyncio
import random
from collections.abc import Mapping
from datetime import datetime, timedelta
from uuid import UUID

import structlog

from tocsin.domain.clock import Clock
from tocsin.domain.outcome import Unknown
from tocsin.domain.verdict import judge
from tocsin.engine.assembly import Assembled, Assembler
from tocsin.engine.dispatcher import Dispatcher
from tocsin.engine.lane import Lane
from tocsin.engine.loop import Loop
from tocsin.engine.settler import SLOTS
from tocsin.engine.timing import Timing
from tocsin.store import leases, reap
from tocsin.store.leases import DeadLease, FrozenCall
from tocsin.store.notifier import Notifier
from tocsin.store.pool import Connection, Database
from tocsin.store.queue import Lease
from tocsin.store.reap import Lost

EVERY_S = 1.0
#: Leases taken in one turn.
LEASES_MAX = 10
DETAIL = "the worker stopped between the send and its record; it may have been delivered"

_log = structlog.get_logger()


class Reaper:
    """Any number may run: a dead lease is locked by one, and gone or renewed when that one is done."""

    def __init__(
        self,
        lanes: Mapping[int, Lane],
        *,
        db: Database,
        clock: Clock,
        notifier: Notifier,
        dispatcher: Dispatcher,
        assembler: Assembler,
        worker: UUID,
        timing: Timing,
    ) -> None:
        self.loop = Loop("reaper", self._turn)
        self._lanes = lanes
        self._db = db
        self._clock = clock
        self._notifier = notifier
        self._dispatcher = dispatcher
        self._assembler = assembler
        self._worker = worker
        self._lease_s = timing.lease_s
        self.tasks: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        self.loop.start()

    async def stop(self) -> None:
        """Take no further lease, and return when those adopted have ended."""
        await self.loop.stop()
        if self.tasks:
            await asyncio.wait(self.tasks)

    async def _turn(self) -> None:
        if await self.reap_once() < LEASES_MAX:
            await asyncio.sleep(EVERY_S * (0.8 + 0.4 * random.random()))

    async def reap_once(self) -> int:
        """Deal with up to LEASES_MAX dead leases; how many there were."""
        now = self._clock.now()
        adopted: list[tuple[Lease, list[FrozenCall], set[UUID]]] = []
        async with self._db.queue.transaction() as tx:
            found = await leases.dead(tx, now=now, lanes=list(self._lanes), limit=LEASES_MAX)
            for dead in found:
                calls = await leases.calls_of(tx, dead.lease.id)
                reported = await leases.reported(tx, dead.lease.job_ids, dead.lease.attempts)
                if calls:
                    lease = await self._without_uncalled(tx, dead, calls, reported)
                    until = now + timedelta(seconds=self._lease_s)
                    await leases.adopt(tx, dead.lease.id, worker=self._worker, now=now, until=until)
                    adopted.append((lease, calls, reported & set(lease.job_ids)))
                else:
                    await self._end(tx, dead.lease, reported, now)
        if found:
            died = sum(not dead.parked for dead in found)
            # A parked lease whose time has come is work as planned.
            say = _log.warning if died else _log.debug
            say("leases_reaped", count=len(found), died=died, adopted=len(adopted))
            self._notifier.hint("scheduled", *{f"lane:{dead.lease.lane}" for dead in found})
        for lease, calls, closed in adopted:
            repeat = self._dispatcher.repeat(lease, self._lanes[lease.lane], calls, closed)
            task = asyncio.create_task(repeat, name=f"lease {lease.id} again")
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)
        return len(found)

    async def _without_uncalled(
        self, tx: Connection, dead: DeadLease, calls: list[FrozenCall], reported: set[UUID]
    ) -> Lease:
        """The lease with the jobs of its frozen calls alone; those in no call never left and go back.

        A parked lease gave its own back in the commit that parked it.
        """
        called = {job_id for call in calls for job_id in call.job_ids}
        uncalled = [job_id for job_id in dead.lease.job_ids if job_id not in called]
        if not uncalled:
            return dead.lease
        if not dead.parked:
            await self._put_back(tx, dead.lease, set(uncalled) - reported)
        await leases.shrink(tx, dead.lease.id, uncalled)
        return dead.lease.without(set(uncalled))

    async def _put_back(self, tx: Connection, lease: Lease, jobs: set[UUID]) -> None:
        rows = [
            (queue_class, tag, job_id, attempt - 1, tries)
            for queue_class, tag, job_id, attempt, tries in zip(
                lease.classes, lease.tags, lease.job_ids, lease.attempts, lease.tries, strict=True
            )
            if job_id in jobs
        ]
        if rows:
            await reap.requeue(tx, lease.lane, rows)

    async def _end(self, tx: Connection, lease: Lease, reported: set[UUID], now: datetime) -> None:
        """No call was frozen: either nothing left (it goes back), or nobody can know (law 6)."""
        jobs = set(lease.job_ids) - reported
        spec = self._lanes[lease.lane].connector.spec
        if jobs and (spec.local or spec.dedupes):
            await self._put_back(tx, lease, jobs)
        elif jobs:
            assembled = await self._assembler.assemble(
                [job_id for job_id in lease.job_ids if job_id in jobs],
                channel=spec.channel,
                now=now,
            )
            lost = [
                _lost(lease, at, assembled.get(job_id), now)
                for at, job_id in enumerate(lease.job_ids)
                if job_id in jobs
            ]
            await reap.lose(tx, lease.lane, lost, now=now, slot=self._worker.int % SLOTS)
        await leases.drop(tx, lease.id)


def _lost(lease: Lease, at: int, assembled: Assembled | None, now: datetime) -> Lost:
    verdict = judge(
        Unknown("worker_lost", DETAIL),
        tries=lease.tries[at],
        attempts_max=assembled.job.max_attempts if assembled else 1,
        chance=random.random(),
        resend_unknown=assembled.content.resend_unknown if assembled else False,
    )
    return Lost(
        job_id=lease.job_ids[at],
        attempt=lease.attempts[at],
        tries=lease.tries[at] + verdict.counts,
        next_at=None if verdict.next_s is None else now + timedelta(seconds=verdict.next_s),
        queue_class=lease.classes[at],
        detail=DETAIL,
    )
