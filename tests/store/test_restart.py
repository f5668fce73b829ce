"""What lives through an end of its PostgreSQL: the pools, the hints, the group commits above."""

import asyncio
from pathlib import Path

import pytest

from tests.support.eventually import eventually
from tocsin.domain.errors import Unavailable
from tocsin.store.devserver import DevServer
from tocsin.store.group_commit import GroupCommit
from tocsin.store.notifier import Notifier
from tocsin.store.pool import Database
from tocsin.store.query import Query
from tocsin.store.subscription import EVERYTHING, Heard

BOUND_S = 30.0

MAKE = Query("make", "CREATE TABLE kept (number int PRIMARY KEY)")
KEEP = Query("keep", "INSERT INTO kept SELECT * FROM unnest($1::int[]) RETURNING number")
KEPT = Query("kept", "SELECT number FROM kept")


async def test_after_a_restart_all_go_on_and_nothing_acknowledged_is_lost(folder: Path) -> None:
    server = DevServer(folder / "restarted", durable=False)
    server.start()
    db = await Database.open(server.url)
    notifier = Notifier(server.url)
    await notifier.start()
    await db.execute(MAKE)

    async def commit(rows: list[int]) -> list[int]:
        return [row["number"] for row in await db.queue.rows(KEEP, rows)]

    commits = GroupCommit(commit, rows_max=10, queue_max=1000)
    commits.start()
    before = await asyncio.gather(*(commits.submit(number) for number in range(50)))
    server.stop()
    during = await asyncio.gather(
        *(commits.submit(number) for number in range(50, 100)), return_exceptions=True
    )
    with pytest.raises(Unavailable):
        await db.value(KEPT)
    server.start()

    assert {type(answer) for answer in during} == {Unavailable}
    with notifier.subscribe("lane:1") as listener:
        assert await listener.wait(BOUND_S) == EVERYTHING
        notifier.hint("lane:1")
        assert await listener.wait(BOUND_S) == Heard(frozenset({"lane:1"}))
    await eventually(lambda: answers(db))
    after = await asyncio.gather(*(commits.submit(number) for number in range(100, 150)))
    assert {row["number"] for row in await db.rows(KEPT)} >= {*before, *after}

    await commits.stop()
    await notifier.stop()
    await db.close()
    server.stop()


async def answers(db: Database) -> bool:
    try:
        await db.general.rows(KEPT)
        await db.queue.rows(KEPT)
    except Unavailable:
        return False
    return True
