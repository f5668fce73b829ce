"""The floor of enqueueing: the statements of a batch called directly, with rows that were made before."""

import time
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec

from tocsin.domain.content import Content
from tocsin.domain.ids import uuid7s
from tocsin.domain.priority import BULK, class_of
from tocsin.faces.cli.bench.ground import Ground
from tocsin.faces.cli.bench.subject import NEWS, people
from tocsin.faces.cli.bench.together import together
from tocsin.store import batch, lanes
from tocsin.store.batch import BatchRows

ATTEMPTS: Final = 5
KEYS_LAST: Final = timedelta(hours=24)
#: What the API stores of the same request.
CONTENT: Final = msgspec.json.encode(msgspec.convert(NEWS | {"marketing": True}, Content)).decode()


def batch_rows(ground: Ground, lane: int, jobs: int, due: datetime) -> Iterator[BatchRows]:
    """The rows of each call."""
    for ids in people(jobs):
        made = uuid7s(ground.clock.now(), 1 + len(ids))
        yield BatchRows(
            job_ids=made[1:],
            subscribers=ids,
            digests=[],
            content_id=made[0],
            project=ground.number,
            lane=lane,
            channel="email",
            priority=BULK,
            queue_class=class_of(BULK),
            max_attempts=ATTEMPTS,
            scheduled_at=due,
            expires_at=None,
            topic="news",
            workflow="",
            fingerprint=b"",
        )


async def store_batch(ground: Ground, rows: BatchRows, *, now: datetime) -> None:
    """One call's transaction."""
    async with ground.db.transaction() as tx:
        await batch.insert_content(tx, rows.content_id, ground.number, CONTENT)
        await batch.enqueue_batch(tx, rows, now=now, keys_until=now + KEYS_LAST)


async def rate(ground: Ground, jobs: int, clients: int, warm_up: int) -> float:
    """Jobs per second with that many transactions side by side, each after a small one to warm up."""
    now = ground.clock.now()
    lane = await lanes.ensure_lane(
        ground.db, channel="email", provider="log", account="default", now=now
    )
    first = [rows for _ in range(clients) for rows in batch_rows(ground, lane, warm_up, now)]
    await _store_all(ground, first, clients)
    calls = list(batch_rows(ground, lane, jobs, now))
    began = time.perf_counter()
    await _store_all(ground, calls, clients)
    return jobs / (time.perf_counter() - began)


async def _store_all(ground: Ground, calls: Sequence[BatchRows], clients: int) -> None:
    waiting = iter(calls)

    async def work() -> None:
        for rows in waiting:
            await store_batch(ground, rows, now=ground.clock.now())

    await together(work() for _ in range(clients))
