"""`kill -9` in the middle of a batch of 10,000, and a restart: nothing acknowledged is lost, all is explained."""

import asyncio
import random
import signal
import sys
from asyncio.subprocess import PIPE
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import UUID

import msgspec
import pytest

from tests.support.eventually import eventually
from tests.support.program import (
    Program,
    environment,
    gone,
    postmaster_of,
    temporary_folder,
    tocsin,
)
from tests.support.world import add_subscribers
from tocsin.domain.job import State
from tocsin.faces.cli.demo.api import Api
from tocsin.faces.cli.demo.missed import Missed
from tocsin.faces.cli.ports import DevReady
from tocsin.simulators.smtp_mail import Mail
from tocsin.store.clock import DatabaseClock
from tocsin.store.invariants import violations
from tocsin.store.pool import Database
from tocsin.store.query import Query

PEOPLE = 10_000
CALL = 5_000
LEASE_S = "2"
#: Two kills, a lease's time after each, and the deliveries.
BOUND_S = 120.0

PROJECT = Query("project", "SELECT number FROM projects")
ENDED = Query(
    "ended",
    """
SELECT (SELECT count(*) FROM jobs), (SELECT count(DISTINCT job_id) FROM outcomes WHERE state = 1),
       (SELECT count(*) FROM ready) + (SELECT count(*) FROM scheduled) + (SELECT count(*) FROM leases)
""",
)
BY_CHANNEL = Query(
    "by_channel",
    "SELECT l.channel, count(*) FROM jobs j JOIN lanes l ON l.id = j.lane GROUP BY l.channel",
)
INBOXES = Query("inboxes", "SELECT count(*), count(DISTINCT subscriber_id) FROM inbox_messages")
UNKNOWN = Query("unknown", "SELECT job_id, count(*) FROM outcomes WHERE state = $1 GROUP BY job_id")


@asynccontextmanager
async def mail_server(journal: Path) -> AsyncIterator[str]:
    """A server of its own, so that a kill of Tocsin does not touch it; its port."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tocsin.simulators.smtp", "--fast", "--port", "0",
        "--journal", str(journal), env=environment(), stdout=PIPE,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        yield str(msgspec.json.decode(await process.stdout.readline())["port"])
    finally:
        process.terminate()
        await process.wait()


def mails(journal: Path) -> list[Mail]:
    # What stands behind the last line break is still being written.
    lines = journal.read_bytes().split(b"\n")[:-1] if journal.exists() else []
    return [msgspec.json.decode(line, type=Mail) for line in lines]


async def reached(journal: Path, count: int) -> None:
    async def enough() -> bool:
        return await asyncio.to_thread(lambda: len(mails(journal))) >= count

    await eventually(enough, within_s=BOUND_S)


async def kill(program: Program, data: Path) -> None:
    server = postmaster_of(data)
    program.process.send_signal(signal.SIGKILL)
    await program.process.wait()
    await gone(server)


async def store_batches(ready: DevReady) -> int:
    """Both calls at once; how many jobs were acknowledged before the server was gone."""
    assert ready.api_key is not None
    api = Api(ready.url, ready.api_key)

    async def call(start: int) -> int:
        people = [f"p{i}" for i in range(start, start + CALL)]
        reply = await api.post(
            "/v1/batch", channels=["email", "in_app"], subscribers=people,
            subject="News", body="Hello {{first_name}}",
        )  # fmt: skip
        return int(reply["jobs_created"])

    calls = [call(start) for start in range(0, PEOPLE, CALL)]
    stored = await asyncio.gather(*calls, return_exceptions=True)
    await api.aclose()
    lost = [e for e in stored if isinstance(e, BaseException) and not isinstance(e, Missed)]
    assert lost == []
    return sum(n for n in stored if isinstance(n, int))


async def add_people(ready: DevReady) -> None:
    async with await Database.open(ready.database_url) as db:
        clock = DatabaseClock(db)
        await clock.resync()
        people = [f"p{i}" for i in range(PEOPLE)]
        await add_subscribers(db, await db.value(PROJECT), people, clock, first_name="Ada")


async def assert_whole(ready: DevReady, acknowledged: int, journal: Path) -> None:
    async with await Database.open(ready.database_url) as db:

        async def all_ended() -> bool:
            jobs, sent, places = await db.row(ENDED)  # type: ignore[misc]
            return bool(jobs == sent and places == 0)

        await eventually(all_ended, within_s=BOUND_S)
        by_channel = {row[0]: row[1] for row in await db.rows(BY_CHANNEL)}
        messages, people = await db.row(INBOXES)  # type: ignore[misc]
        unknown: Counter[UUID] = Counter(
            {row[0]: row[1] for row in await db.rows(UNKNOWN, int(State.UNKNOWN))}
        )
        assert await violations(db) == []
    assert sum(by_channel.values()) >= acknowledged
    assert messages == people == by_channel["in_app"]
    sends = Counter(UUID(mail.job_id) for mail in mails(journal) if mail.job_id)
    assert len(sends) == by_channel["email"]
    # Each mail beyond the first is one that a kill left without an answer.
    assert all(count <= 1 + unknown[job_id] for job_id, count in sends.items())


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", [1, 2])
async def test_a_killed_process_loses_nothing_and_doubles_nothing_unexplained(seed: int) -> None:
    chance = random.Random(seed)
    with temporary_folder() as folder:
        journal, data = folder / "mails", folder / "data"
        async with mail_server(journal) as port:
            env = {
                "EMAIL_PROVIDER": "smtp", "SMTP_HOST": "127.0.0.1", "SMTP_PORT": port,
                "SMTP_SECURITY": "none", "EMAIL_FROM": "news@example.com", "WORKER_LEASE_SECS": LEASE_S,
            }  # fmt: skip
            command = ("dev", "--data", str(data), "--json", "--port", "0")
            async with tocsin(*command, **env) as program:
                ready = await program.ready(DevReady)
                await add_people(ready)
                storing = asyncio.create_task(store_batches(ready))
                await reached(journal, chance.randrange(1, PEOPLE // 2))
                await kill(program, data)
                acknowledged = await storing
            seen = len(mails(journal))
            async with tocsin(*command, **env) as program:
                await program.ready(DevReady)
                await reached(journal, seen + chance.randrange(1, PEOPLE // 10))
                await kill(program, data)
            async with tocsin(*command, **env) as program:
                await assert_whole(await program.ready(DevReady), acknowledged, journal)
