"""Doctor: everything that can be wrong with a deployment, looked at once and told with what to do."""

from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Final

from tocsin.domain.errors import Conflict, TocsinError
from tocsin.domain.priority import CLASSES
from tocsin.service import deliveries, symptoms
from tocsin.service.deliveries import OVERDUE_MAX, RECENT
from tocsin.service.finding import Finding
from tocsin.service.symptoms import HELD_MAX
from tocsin.settings import Settings
from tocsin.store import lanes, progress, queue, vitals, workers
from tocsin.store.clock import DatabaseClock
from tocsin.store.invariants import violations
from tocsin.store.migrate import missing
from tocsin.store.notifier import Notifier
from tocsin.store.pool import Database, Sizes

_SIZES: Final = Sizes(general=2, queue=1)


async def examine(
    settings: Settings, url: str, *, invariants: bool = False
) -> AsyncIterator[Finding]:
    """What is found, one by one as it is looked at; it never raises for what is wrong outside.

    invariants: also read the whole queue, some seconds for a million jobs.
    """
    try:
        db = await Database.open(url, sizes=_SIZES, application_name="tocsin doctor")
    except TocsinError as error:
        for finding in symptoms.of_settings(settings):
            yield finding
        yield Finding("critical", error.code, error.detail, error.remedy)
        return
    async with db:
        for finding in symptoms.of_settings(settings, await _serving(db)):
            yield finding
        try:
            async for finding in _database(db, invariants=invariants):
                yield finding
        except TocsinError as error:
            yield Finding("critical", error.code, error.detail, error.remedy)


async def _serving(db: Database) -> set[str]:
    """The providers through which running workers deliver email; none where that cannot be read."""
    with suppress(TocsinError):
        clock = DatabaseClock(db)
        await clock.resync()
        alive = await workers.alive(db, now=clock.now())
        served = {lane for worker in alive for lane in worker.lanes}
        known = await lanes.lanes(db)
        return {row.provider for row in known if row.channel == "email" and row.id in served}
    return set()


async def _database(db: Database, *, invariants: bool) -> AsyncIterator[Finding]:
    for finding in symptoms.of_server(await vitals.server(db)):
        yield finding
    clock = DatabaseClock(db)
    await clock.resync()
    yield symptoms.of_clock((clock.now() - datetime.now(UTC)).total_seconds())
    yield symptoms.of_listening(heard=await _hears(db.url))
    now = clock.now()
    for finding in symptoms.of_holders(await vitals.holders(db, now=now, older_than=HELD_MAX), now):
        yield finding
    try:
        todo = await missing(db)
    except Conflict as error:
        yield Finding("critical", error.code, error.detail, error.remedy)
        return
    yield symptoms.of_migrations(todo)
    if todo:
        return
    async for finding in _queue(db, now):
        yield finding
    if invariants:
        for finding in symptoms.of_violations(await violations(db)):
            yield finding


async def _queue(db: Database, now: datetime) -> AsyncIterator[Finding]:
    yield symptoms.of_partitions(
        await vitals.missing_partitions(db, [now.date()]),
        await vitals.missing_partitions(db, [(now + timedelta(days=1)).date()]),
    )
    alive = await workers.alive(db, now=now)
    backlogs = await vitals.backlogs(db, classes=CLASSES)
    names = {lane.lane: deliveries.name_of(lane) for lane in backlogs}
    recent = await progress.recent(db, since=now - RECENT, now=now)
    reasons = await progress.reasons(db, since=now - RECENT)
    for finding in (
        *deliveries.of_workers(alive, names, now),
        *deliveries.of_lanes(backlogs, recent, alive, now),
        *deliveries.of_providers(backlogs, recent, reasons),
    ):
        yield finding
    next_due = await queue.next_due(db.queue, classes=CLASSES)
    stale = await vitals.stale_leases(db, before=now - OVERDUE_MAX)
    for finding in deliveries.of_overdue(next_due, stale, now):
        yield finding


async def _hears(url: str) -> bool:
    """Whether a notification of ours comes back to us."""
    notifier = Notifier(url)
    await notifier.start()
    try:
        return notifier.listening
    finally:
        await notifier.stop()
