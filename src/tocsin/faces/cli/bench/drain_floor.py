"""The floor of a drain: the same statements with the same arrays, and nothing of the product around them."""

import asyncio
import time
from datetime import timedelta
from typing import Final
from uuid import UUID

from tocsin.domain.ids import uuid7
from tocsin.domain.job import State
from tocsin.domain.priority import BULK, CLASSES, class_of
from tocsin.faces.cli.bench.enqueue_floor import batch_rows, store_batch
from tocsin.faces.cli.bench.ground import Ground, checkpoint
from tocsin.faces.cli.bench.spoiled import Spoiled
from tocsin.faces.cli.bench.together import together
from tocsin.store import lanes, prefetch, projects, queue
from tocsin.store.outcomes import SETTLE
from tocsin.store.pool import Connection

#: As the engine's own: jobs of a lease, leases side by side, leases of a commit, jobs promoted at once.
CLAIM_MAX: Final = 500
LEASES: Final = 3
LEASES_SETTLED_MAX: Final = 4
LEASE: Final = timedelta(seconds=30)
PROMOTE_MAX: Final = 5_000
IDLE_S: Final = 0.001
BOUND_S: Final = 600.0
_CLASS: Final = class_of(BULK)


async def rate(ground: Ground, jobs: int) -> float:
    """Jobs per second, from the first promotion to the last commit."""
    lane = await lanes.ensure_lane(
        ground.db, channel="email", provider="log", account="default", now=ground.clock.now()
    )
    await _enqueue(ground, lane, jobs)
    await checkpoint(ground)
    bare = _Bare(ground, lane, jobs)
    began = time.perf_counter()
    try:
        async with asyncio.timeout(BOUND_S):
            await bare.run()
    except TimeoutError:
        raise Spoiled(f"the floor took longer than {BOUND_S:.0f} s") from None
    return jobs / (time.perf_counter() - began)


async def _enqueue(ground: Ground, lane: int, jobs: int) -> None:
    """What the product's calls store, due since now."""
    due = ground.clock.now()
    # Seen from a moment before, so that it is scheduled, as a campaign is.
    for rows in batch_rows(ground, lane, jobs, due):
        await store_batch(ground, rows, now=due - timedelta(seconds=1))


class _Bare:
    """Promotes, claims, reads and settles; what is in between is a list."""

    def __init__(self, ground: Ground, lane: int, jobs: int) -> None:
        self._db: Connection = ground.db.queue
        self._clock = ground.clock
        self._project = ground.number
        self._lane = lane
        self._jobs = jobs
        self._worker: UUID = uuid7(ground.clock.now())
        self._cursors = dict.fromkeys(CLASSES, 0)
        self._claiming = asyncio.Lock()
        self._claimed = 0
        self._read: list[queue.Lease] = []
        self._work = asyncio.Event()

    async def run(self) -> None:
        """Return when every job has its outcome."""
        takers = (self._take() for _ in range(LEASES))
        await together([self._promote(), self._settle(), *takers])

    async def _promote(self) -> None:
        moved = 0
        while moved < self._jobs:
            found = await queue.promote(
                self._db, classes=CLASSES, now=self._clock.now(), limit=PROMOTE_MAX
            )
            moved += sum(found.values())

    async def _take(self) -> None:
        while (lease := await self._claim()) is not None:
            ids = lease.job_ids
            await self._db.rows(prefetch.PREFETCH, ids, min(ids), max(ids), "email")
            await self._db.rows(projects.SENDERS, [self._project])
            self._read.append(lease)
            self._work.set()

    async def _claim(self) -> queue.Lease | None:
        """The next lease; None when everything was claimed."""
        async with self._claiming:
            while self._claimed < self._jobs:
                now = self._clock.now()
                claim = await queue.claim(
                    self._db,
                    lane=self._lane,
                    cursors=list(self._cursors.items()),
                    limit=CLAIM_MAX,
                    worker=self._worker,
                    now=now,
                    expires_at=now + LEASE,
                )
                if claim.lease is not None:
                    self._claimed += len(claim.lease.job_ids)
                    self._cursors[_CLASS] = max(claim.lease.tags)
                    return claim.lease
                await asyncio.sleep(IDLE_S)
        return None

    async def _settle(self) -> None:
        settled = 0
        while settled < self._jobs:
            await self._work.wait()
            self._work.clear()
            while self._read:
                leases = self._read[:LEASES_SETTLED_MAX]
                del self._read[:LEASES_SETTLED_MAX]
                await self._db.rows(SETTLE, *self._arrays(leases))
                settled += sum(len(lease.job_ids) for lease in leases)

    def _arrays(self, leases: list[queue.Lease]) -> list[object]:
        ids = [job_id for lease in leases for job_id in lease.job_ids]
        count = len(ids)
        nothing = [None] * count
        closing = [lease.id for lease in leases]
        return [
            closing,
            self._worker,
            [lease.id for lease in leases for _ in lease.job_ids],
            ids,
            [attempt for lease in leases for attempt in lease.attempts],
            [tries + 1 for lease in leases for tries in lease.tries],
            [int(State.SENT)] * count,
            nothing,
            [self._project] * count,
            [self._lane] * count,
            [queue_class for lease in leases for queue_class in lease.classes],
            nothing,
            nothing,
            ["log_" + job_id.hex[-12:] for job_id in ids],
            self._clock.now(),
            closing,
            0,
        ]
