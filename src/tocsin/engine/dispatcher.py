"""Dispatcher: one lease from its jobs to its outcomes: assemble, freeze, call, judge, hand over."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from uuid import UUID

import structlog

from tocsin.connectors.base import Call
from tocsin.domain.clock import Clock
from tocsin.domain.errors import TocsinError, Unavailable
from tocsin.domain.ids import uuid7
from tocsin.domain.message import Message
from tocsin.domain.outcome import Cancelled, Outcome, Unknown
from tocsin.engine.assembly import Assembler
from tocsin.engine.judgement import Judged, settlement_of, sort_outcomes, verdict_of
from tocsin.engine.lane import Lane, Turn
from tocsin.engine.outbox import Outbox
from tocsin.engine.run import Run
from tocsin.engine.settlement import Ending, Settlement
from tocsin.engine.settler import Settler
from tocsin.engine.trouble import Troubles
from tocsin.store import leases
from tocsin.store.leases import FrozenCall
from tocsin.store.pool import Database
from tocsin.store.queue import Lease

ASSEMBLE_TRIES = 3
ASSEMBLE_WAIT_S = 0.3
#: A frozen call that could not be repeated now is looked at again after this long.
AGAIN_S = 1.0

_log = structlog.get_logger()


class Dispatcher:
    """Delivers leases; once `stopping` says so it starts nothing new and gives the rest back."""

    def __init__(
        self,
        db: Database,
        clock: Clock,
        settler: Settler,
        assembler: Assembler,
        worker: UUID,
        stopping: Callable[[], bool],
    ) -> None:
        self._db = db
        self._clock = clock
        self._settler = settler
        self._assembler = assembler
        self._worker = worker
        self._stopping = stopping
        self._troubles = Troubles()
        self.running: dict[int, Run] = {}

    async def run(self, lease: Lease, lane: Lane, turn: Turn) -> None:
        """Deliver a fresh lease; returns when every job is settled, given back or frozen."""
        run = Run(lease, lane, turn=turn)
        async with _Tracked(self, run):
            if not await self._assemble(run):
                run.returned = list(lease.job_ids)
                return
            outbox = Outbox(run, self._to_send(run), self._assembler)
            await self._deliver_all(run, lambda: self._next_call(run, outbox), len(outbox))

    async def repeat(
        self, lease: Lease, lane: Lane, calls: Sequence[FrozenCall], reported: set[UUID]
    ) -> None:
        """Repeat the frozen calls of an adopted lease: the same bytes under the same keys (law 4)."""
        run = Run(lease, lane, repeats=True, reported=frozenset(reported))
        async with _Tracked(self, run):
            if not await self._assemble(run):
                run.park(AGAIN_S)
                return
            frozen = [call for call in calls if not reported.issuperset(call.job_ids)]
            waiting = iter(frozen)

            async def next_call() -> Call | None:
                for call in waiting:
                    return Call(call.key, tuple(call.job_ids), frozen=call.body)
                return None

            await self._deliver_all(run, next_call, len(frozen))

    def end(self, run: Run) -> None:
        """Hand over how the lease ends; a lost one ends without us."""
        self.running.pop(run.lease.id, None)
        if run.lost or not run.is_accounted_for:
            # Something may have left that we know nothing of: the reaper decides when the time is up.
            _log.warning("lease_left_to_reaper", lease=run.lease.id, lane=run.lane.id)
            return
        until = None
        if run.park_s is not None:
            until = self._clock.now() + timedelta(seconds=run.park_s)
        ending = Ending(
            run.lease.id, tuple(run.returned), until, run.park_counts, tuple(run.thawed)
        )
        self._settler.put(Settlement(ending=ending))

    async def _assemble(self, run: Run) -> bool:
        for attempt in range(ASSEMBLE_TRIES):
            try:
                run.assembled = await self._assembler.assemble(
                    run.lease.job_ids, channel=run.spec.channel, now=self._clock.now()
                )
            except Unavailable as error:
                _log.warning("assemble_waits", lease=run.lease.id, code=error.code)
                await asyncio.sleep(ASSEMBLE_WAIT_S * (attempt + 1))
            except TocsinError as error:
                _log.error("assemble_failed", lease=run.lease.id, code=error.code)
                return False
            else:
                return True
        return False

    def _to_send(self, run: Run) -> list[UUID]:
        """The jobs that are to be sent, in claim order; the others are settled here."""
        wanted: list[UUID] = []
        done: list[Judged] = []
        for job_id in run.lease.job_ids:
            assembled = run.assembled.get(job_id)
            if assembled is None:
                done.append((job_id, verdict_of(run, job_id, Cancelled("job_gone"))))
            elif assembled.refusal is not None:
                done.append((job_id, verdict_of(run, job_id, assembled.refusal)))
            else:
                wanted.append(job_id)
        if done:
            self._settle(run, done)
        return wanted

    async def _next_call(self, run: Run, outbox: Outbox) -> Call | None:
        """Compose the next call and, where the provider dedupes, write it down first (law 4)."""
        messages: list[Message] = []
        while outbox and not messages:
            if self._holds(run):
                run.returned.extend(outbox.rest())
                return None
            messages, refused = outbox.take(self._clock.now())
            if refused:
                judged = [(job_id, verdict_of(run, job_id, outcome)) for job_id, outcome in refused]
                self._settle(run, judged)
        if not messages:
            return None
        ids = tuple([message.job_id for message in messages])
        key = str(ids[0]) if len(ids) == 1 else str(uuid7(self._clock.now()))
        if run.spec.local:
            run.composed.update(zip(ids, messages, strict=True))
        if not run.spec.dedupes:
            return Call(key, ids, tuple(messages))
        body = run.lane.connector.freeze(messages)
        frozen = FrozenCall(key, list(ids), body)
        if not await leases.freeze(self._db.queue, run.lease.id, self._worker, frozen):
            run.lost = True
            return None
        return Call(key, ids, tuple(messages), frozen=body)

    def _holds(self, run: Run) -> bool:
        """Whether nothing new may start now."""
        return self._stopping() or run.lane.rests(self._clock.now())

    async def _deliver_all(
        self, run: Run, next_call: Callable[[], Awaitable[Call | None]], most: int
    ) -> None:
        """most: no more calls than that will come."""

        async def pull() -> None:
            while not run.lost and (call := await next_call()) is not None:
                async with run.lane.calls:
                    if self._holds(run):
                        run.put_back(call, AGAIN_S)
                        continue
                    outcomes = await self._deliver(run, call)
                self._take(run, call, outcomes)
            run.turn.ends()

        await run.turn.comes()
        width = min(run.spec.in_flight_max, -(-most // run.spec.batch_max))
        if width == 1:
            await pull()
        elif width:
            await asyncio.gather(*(pull() for _ in range(width)))

    async def _deliver(self, run: Run, call: Call) -> list[Outcome]:
        try:
            outcomes = await run.lane.connector.deliver(call)
        except Exception as error:  # noqa: BLE001 - a connector's bug must not take the lane with it
            # Never the error's own text: it may hold an address or a body.
            _log.error("connector_bug", provider=run.spec.name, error=type(error).__name__)
            outcomes = []
        if len(outcomes) != len(call.job_ids):
            lost = Unknown("connector_bug", "the connector gave no outcome; see the worker's log")
            return [lost] * len(call.job_ids)
        return outcomes

    def _take(self, run: Run, call: Call, outcomes: Sequence[Outcome]) -> None:
        now = self._clock.now()
        self._troubles.note(run.lane, outcomes)
        settled, pause = sort_outcomes(run, call, outcomes, now)
        if pause is not None:
            self._troubles.note_rest(run.lane, pause, now)
            # At once here; on the other replicas with the commit.
            run.lane.rest(pause.until)
            self._settler.put(Settlement(pauses=(pause,)))
        if settled:
            self._settle(run, settled)

    def _settle(self, run: Run, judged: Sequence[Judged]) -> None:
        run.settled += len(judged)
        self._settler.put(settlement_of(run, judged, self._clock.now()))


class _Tracked:
    """The run is known to the renewer while it lasts, and always comes to an end."""

    def __init__(self, dispatcher: Dispatcher, run: Run) -> None:
        self._dispatcher = dispatcher
        self._run = run

    async def __aenter__(self) -> None:
        self._dispatcher.running[self._run.lease.id] = self._run

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._run.turn.ends()
        if kind is not None:
            self._run.lost = True
        self._dispatcher.end(self._run)
