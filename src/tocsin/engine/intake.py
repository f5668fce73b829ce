"""Intake: single sends gathered into one commit; nothing is acknowledged before it is durable (law 1)."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from uuid import UUID

import msgspec
from msgspec import Struct

from tocsin.domain.clock import Clock
from tocsin.domain.errors import Conflict, Invalid
from tocsin.domain.ids import uuid7s
from tocsin.engine.order import Order, Plan, Receipt, digests_of, plan
from tocsin.store import intake as statements
from tocsin.store import templates
from tocsin.store.group_commit import GroupCommit
from tocsin.store.intake import KeptAnswer
from tocsin.store.notifier import Notifier
from tocsin.store.people import people
from tocsin.store.pool import Database

ORDERS_MAX = 500
WAITING_MAX = 20_000
#: How long a key stands for its first request.
KEY_LIFE = timedelta(hours=24)
IN_FLIGHT_RETRY_S = 1

#: How the reasons of a channel without a provider, or not allowed to the project, end.
_CLOSED = ("not configured", "the project's channels")
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Receipt).decode


class Taken(Struct, frozen=True):
    """The answer to a send as JSON; replayed: it is the first request's."""

    answer: bytes
    replayed: bool = False


class Intake:
    """Owns the group commit of sends."""

    def __init__(self, db: Database, clock: Clock, notifier: Notifier) -> None:
        self._db = db
        self._clock = clock
        self._notifier = notifier
        self._in_flight: set[tuple[int, str, str]] = set()
        self._commits: GroupCommit[Order, Taken] = GroupCommit(
            self._commit, rows_max=ORDERS_MAX, queue_max=WAITING_MAX, name="sends"
        )

    def start(self) -> None:
        self._commits.start()

    async def stop(self) -> None:
        """Take nothing more; return when all that was taken is answered."""
        await self._commits.stop()

    async def submit(self, order: Order) -> Taken:
        """Commit the order's jobs; Conflict when its key stands for another request, or is in flight."""
        if order.key is None:
            return await self._commits.submit(order)
        with self.holding(order.project, "send", order.key):
            return await self._commits.submit(order)

    @contextmanager
    def holding(self, project: int, scope: str, key: str) -> Iterator[None]:
        """Conflict while another request of this process with the same key is being stored."""
        held = (project, scope, key)
        if held in self._in_flight:
            raise Conflict(
                "idempotency_key_in_flight",
                "the first request with this idempotency key is still being stored",
                remedy="send it again after the time in Retry-After; the answer will be replayed",
                field="idempotency_key",
                retry_after_s=IN_FLIGHT_RETRY_S,
            )
        self._in_flight.add(held)
        try:
            yield
        finally:
            self._in_flight.discard(held)

    async def _commit(self, orders: list[Order]) -> list[Taken | Exception]:
        now = self._clock.now()
        plans = await self._plan(orders, now)
        kept = await self._kept(orders, now)
        answers: dict[int, Taken | Exception] = {}
        fresh: list[Plan] = []
        for at, made in enumerate(plans):
            refused = _refusal(made, kept)
            if refused is not None:
                answers[at] = refused
            elif made.jobs:
                fresh.append(made)
        created: set[UUID] = set()
        if fresh:
            created = await statements.enqueue(
                self._db.general,
                [made.content for made in fresh],
                [job for made in fresh for job in made.jobs],
                now=now,
                keys_until=now + KEY_LIFE,
            )
            self._hint(fresh, created, now)
            if any(job.id not in created for made in fresh for job in made.jobs):
                # A key was held, perhaps only since a moment ago by another process.
                kept = await self._kept(orders, now)
        for at, made in enumerate(plans):
            if at not in answers:
                answers[at] = _answer(made, created, kept)
        return [answers[at] for at in range(len(orders))]

    async def _plan(self, orders: Sequence[Order], now: datetime) -> list[Plan]:
        wanted = {(o.project, o.subscriber_id) for o in orders if o.subscriber_id is not None}
        known = await people(self._db.general, list(wanted)) if wanted else {}
        named = {(o.project, o.content.template, c) for o in orders for c, _ in o.lanes}
        asked = [(project, name, c) for project, name, c in named if name is not None]
        wordings = await templates.wordings(self._db.general, asked) if asked else {}
        ids = iter(uuid7s(now, sum(1 + len(order.lanes) for order in orders)))
        plans = []
        for order in orders:
            own = [next(ids) for _ in range(1 + len(order.lanes))]
            person = (
                None
                if order.subscriber_id is None
                else known.get((order.project, order.subscriber_id))
            )
            plans.append(plan(order, person, wordings, own, now))
        return plans

    async def _kept(
        self, orders: Sequence[Order], now: datetime
    ) -> dict[tuple[int, bytes], KeptAnswer]:
        keys = [(order.project, mark) for order in orders for mark in digests_of(order)]
        return await statements.kept(self._db.general, keys, now=now) if keys else {}

    def _hint(self, plans: Sequence[Plan], created: set[UUID], now: datetime) -> None:
        jobs = [job for made in plans for job in made.jobs if job.id in created]
        names = {f"lane:{job.lane}" for job in jobs if job.scheduled_at <= now}
        if any(job.scheduled_at > now for job in jobs):
            names.add("scheduled")
        if names:
            self._notifier.hint(*names)


def _refusal(made: Plan, kept: dict[tuple[int, bytes], KeptAnswer]) -> Exception | None:
    """The error of an order whose key stands for another request, or that has nowhere to go."""
    order = made.order
    for mark in digests_of(order):
        held = kept.get((order.project, mark))
        if held is not None and held.fingerprint != order.fingerprint:
            return Conflict(
                "idempotency_key_reused",
                "this idempotency key was used for another request",
                remedy="use a new key for a new request; repeat the first one unchanged to get its answer",
                field="idempotency_key",
            )
    if not made.jobs and any(s.reason.startswith("template ") for s in made.receipt.skipped):
        return Invalid(
            "template_not_found",
            "the template does not exist, or has no variant for the channels of this send",
            remedy="store it with POST /v1/templates, or send a body",
            field="template",
        )
    unconfigured = [s for s in made.receipt.skipped if s.reason.endswith(_CLOSED)]
    if not made.jobs and unconfigured:
        return Invalid(
            "channel_not_configured",
            "no channel of this send has a provider and is among the project's channels",
            remedy="configure a provider, allow the channel to the project, or send on another",
            field="channels",
            extra={"skipped": [msgspec.to_builtins(s) for s in made.receipt.skipped]},
        )
    return None


def _answer(made: Plan, created: set[UUID], kept: dict[tuple[int, bytes], KeptAnswer]) -> Taken:
    """The receipt: new, the first request's, or of both where a failed channel had freed its key."""
    old = [job for job in made.jobs if job.id not in created]
    if not old:
        return Taken(made.answer)
    found = {job.id: kept.get((job.project, job.digest or b"")) for job in old}
    if len(old) == len(made.jobs):
        first = next((held for held in found.values() if held and held.answer), None)
        if first is not None and first.answer is not None:
            return Taken(first.answer, replayed=True)
    ids = [held.job_id if (held := found.get(job.id)) is not None else job.id for job in made.jobs]
    return Taken(_encode(msgspec.structs.replace(made.receipt, job_ids=ids)))
