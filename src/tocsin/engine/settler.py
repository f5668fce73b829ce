"""Settler: outcomes, retries, counters and inbox rows of many leases in one commit, fenced by them."""

import asyncio
from collections.abc import Sequence
from uuid import UUID

import structlog

from tocsin.domain.clock import Clock
from tocsin.domain.errors import Unavailable
from tocsin.domain.ids import uuid7
from tocsin.domain.job import State
from tocsin.engine.settlement import DeadAddress, Settlement
from tocsin.store import inbox, lanes, leases, outcomes, suppressions
from tocsin.store.inbox import Touched
from tocsin.store.inbox_changes import hint_of
from tocsin.store.notifier import Notifier
from tocsin.store.outcomes import Fact
from tocsin.store.pool import Connection, Database

#: Facts of one commit.
FACTS_MAX = 2_000
#: Facts waiting; past it the dispatcher claims nothing new.
WAITING_MAX = 10_000
#: A small commit waits this long for company.
GATHER_S = 0.004
GATHER_FACTS = 400
RETRY_FIRST_S = 0.1
RETRY_MAX_S = 2.0
SLOTS = 8

_log = structlog.get_logger()


class Settler:
    """Takes settlements without waiting; a loop commits whatever gathered."""

    def __init__(self, db: Database, clock: Clock, notifier: Notifier, worker: UUID) -> None:
        self._db = db
        self._clock = clock
        self._notifier = notifier
        self._worker = worker
        self._waiting: list[Settlement] = []
        self._facts = 0
        self._work = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._idle = asyncio.Event()
        self._idle.set()
        self._stopping = False
        self.task: asyncio.Task[None] | None = None
        self.flushed_at = 0.0

    def start(self) -> None:
        self.task = asyncio.create_task(self._run(), name="settler")

    async def stop(self) -> None:
        """Write what was handed over, then end."""
        self._stopping = True
        self._work.set()
        if self.task is not None:
            await self.task

    def put(self, settlement: Settlement) -> None:
        """Hand over; written within milliseconds, in the order given."""
        self._waiting.append(settlement)
        self._facts += len(settlement.facts)
        if self._facts > WAITING_MAX:
            self._room.clear()
        self._idle.clear()
        self._work.set()

    async def room(self) -> None:
        """Return when there is room for more work."""
        await self._room.wait()

    async def drained(self) -> None:
        """Return when everything handed over so far is committed."""
        await self._idle.wait()

    @property
    def stuck_for_s(self) -> float:
        """Seconds since the last commit while something waits; 0 when nothing does."""
        if self._idle.is_set():
            return 0.0
        return asyncio.get_running_loop().time() - self.flushed_at

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            if not self._waiting:
                self._idle.set()
                if self._stopping:
                    return
                self._work.clear()
                await self._work.wait()
                self.flushed_at = loop.time()
                continue
            if self._facts < GATHER_FACTS and not self._stopping:
                await asyncio.sleep(GATHER_S)
            taken = self._take()
            await self._write(taken)
            self.flushed_at = loop.time()
            if self._facts <= WAITING_MAX:
                self._room.set()

    def _take(self) -> list[Settlement]:
        count = 0
        for at, settlement in enumerate(self._waiting):
            count += len(settlement.facts)
            if count > FACTS_MAX and at:
                taken, self._waiting = self._waiting[:at], self._waiting[at:]
                break
        else:
            taken, self._waiting = self._waiting, []
        self._facts -= sum(len(s.facts) for s in taken)
        return taken

    async def _write(self, settlements: list[Settlement]) -> None:
        """Commit, for as long as it takes: an outcome that is known must not be lost."""
        wait_s = RETRY_FIRST_S
        while True:
            try:
                await self._commit(settlements)
            except Unavailable as error:
                _log.warning("settle_waits", code=error.code, settlements=len(settlements))
                if self._stopping and wait_s >= RETRY_MAX_S:
                    # The leases run out and the reaper goes on from what is committed.
                    return
                await asyncio.sleep(wait_s)
                wait_s = min(wait_s * 2, RETRY_MAX_S)
            except Exception:  # noqa: BLE001 - one bad settlement must not stop the others
                if len(settlements) == 1:
                    _log.exception(
                        "settle_failed", jobs=[str(f.job_id) for f in settlements[0].facts]
                    )
                    return
                # One of them cannot be written: let it stand alone, so that it spoils no other.
                for settlement in settlements:
                    await self._write([settlement])
                return
            else:
                return

    async def _commit(self, settlements: list[Settlement]) -> None:
        plain = all(
            not (s.messages or s.freed_keys or s.dead_addresses or s.pauses)
            and (s.ending is None or not (s.ending.returned or s.ending.park_until))
            for s in settlements
        )
        if plain:
            held = await self._settle(self._db.queue, settlements)
            touched: list[Touched] = []
        else:
            async with self._db.queue.transaction() as tx:
                held = await self._settle(tx, settlements)
                touched = await self._write_effects(tx, settlements, held)
        await self._note_late(settlements, held)
        if touched:
            self._notifier.hint(*(hint_of(t.project, t.subscriber_id) for t in touched))
        if any(f.next_at is not None for s in settlements for f in s.facts):
            self._notifier.hint("scheduled")

    async def _settle(self, db: Connection, settlements: Sequence[Settlement]) -> set[int]:
        facts = [fact for s in settlements for fact in s.facts]
        closing = [
            s.ending.lease
            for s in settlements
            if s.ending is not None and not s.ending.returned and s.ending.park_until is None
        ]
        involved = {fact.lease for fact in facts}
        involved.update(s.ending.lease for s in settlements if s.ending is not None)
        return await outcomes.settle(
            db,
            facts,
            worker=self._worker,
            leases=sorted(involved),
            closing=closing,
            now=self._clock.now(),
            slot=self._worker.int % SLOTS,
        )

    async def _write_effects(
        self, tx: Connection, settlements: Sequence[Settlement], held: set[int]
    ) -> list[Touched]:
        """All that follows from facts that stood; in the same commit."""
        now = self._clock.now()
        stood = {f.job_id for s in settlements for f in s.facts if f.lease in held}
        freed = [key for s in settlements for key in s.freed_keys if key[2] in stood]
        if freed:
            await outcomes.free_keys(tx, freed)
        for pause in (p for s in settlements for p in s.pauses):
            await lanes.pause_lane(
                tx, lane=pause.lane, until=pause.until, code=pause.code, reason=pause.reason
            )
        for dead in (d for s in settlements for d in s.dead_addresses if d.job_id in stood):
            await self._suppress(tx, dead)
        for ending in (s.ending for s in settlements if s.ending is not None):
            if ending.thawed:
                await leases.thaw(tx, ending.lease, ending.thawed)
            if ending.returned:
                await leases.return_unstarted(
                    tx,
                    ending.lease,
                    self._worker,
                    ending.returned,
                    closes=ending.park_until is None,
                )
            if ending.park_until is not None and ending.lease in held:
                if ending.returned:
                    await leases.shrink(tx, ending.lease, ending.returned)
                await leases.park(
                    tx,
                    ending.lease,
                    self._worker,
                    until=ending.park_until,
                    counts=ending.park_counts,
                )
        # Last, so that the locks on inboxes are held for the shortest time.
        messages = [m for s in settlements for m in s.messages if m.job_id in stood]
        return await inbox.insert_messages(tx, messages, now) if messages else []

    async def _suppress(self, tx: Connection, dead: DeadAddress) -> None:
        now = self._clock.now()
        wanted = suppressions.Suppression(
            id=uuid7(now),
            channel=dead.channel,
            address=dead.address,
            scope="all",
            reason="bounce",
            detail=dead.code,
            created_at=now,
            released_at=None,
        )
        await suppressions.upsert(tx, dead.project, wanted, job_id=dead.job_id)

    async def _note_late(self, settlements: Sequence[Settlement], held: set[int]) -> None:
        late: list[Fact] = [f for s in settlements for f in s.facts if f.lease not in held]
        if not late:
            return
        _log.warning("late_outcomes", jobs=[str(f.job_id) for f in late[:20]], count=len(late))
        sent = [(f.job_id, f.project) for f in late if f.state == State.SENT]
        # A local delivery is its own commit: one that was late did not happen.
        local = {m.job_id for s in settlements for m in s.messages}
        sent = [job for job in sent if job[0] not in local]
        if sent:
            await outcomes.already_sent(self._db.queue, sent, now=self._clock.now())
