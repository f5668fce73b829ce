"""The floor of every wake-up: a commit, and PostgreSQL's NOTIFY heard by a LISTEN of another session."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from tocsin.domain.ids import uuid7
from tocsin.faces.cli.bench.enqueue_floor import CONTENT
from tocsin.faces.cli.bench.ground import Ground
from tocsin.faces.cli.bench.trips import Arrivals, bounded, spaced
from tocsin.store import batch
from tocsin.store.notifier import NOTIFY
from tocsin.store.pool import Connection, Session, open_session

CHANNEL: Final = "tocsin_bench"


async def round_trips(ground: Ground, count: int, *, inside: bool) -> list[float]:
    """From the statement that stores one row to the notification, in ms; spaced as the product's trips.

    inside: the row's own transaction notifies, as a trigger would; else a second session does, after it.
    """
    arrivals = Arrivals()

    async with (
        _session(ground, {}) as ear,
        _session(ground, {"synchronous_commit": "off"}) as mouth,
    ):
        await ear.listen(CHANNEL, lambda _, payload: arrivals.note(payload))

        async def trip(number: int) -> float:
            name = str(number)
            began = time.perf_counter()
            async with ground.db.transaction() as tx:
                await _store_row(tx, ground)
                if inside:
                    await tx.rows(NOTIFY, CHANNEL, [name])
            if not inside:
                await mouth.rows(NOTIFY, CHANNEL, [name])
            async with bounded("a notification"):
                return await arrivals.of(name) - began

        return await spaced(count, trip)


async def _store_row(db: Connection, ground: Ground) -> None:
    await batch.insert_content(db, uuid7(ground.clock.now()), ground.number, CONTENT)


@asynccontextmanager
async def _session(ground: Ground, settings: dict[str, str]) -> AsyncIterator[Session]:
    session = await open_session(
        ground.url, application_name="tocsin bench notify", settings=settings
    )
    try:
        yield session
    finally:
        await session.close()
