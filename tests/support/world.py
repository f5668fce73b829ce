"""World: the real engine on a real database, scripted providers, a clock that moves only when told."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import msgspec

from tests.support.clock import MovableClock
from tests.support.scripted import Scripted
from tocsin.connectors.base import Connector
from tocsin.connectors.inapp import InApp
from tocsin.domain.clock import Clock
from tocsin.domain.message import Mailbox
from tocsin.domain.request import BatchRequest, SendRequest
from tocsin.engine.assembly import Defaults
from tocsin.engine.intake import Intake
from tocsin.engine.lane import Lane
from tocsin.engine.timing import Timing
from tocsin.engine.worker import Worker
from tocsin.service import jobs
from tocsin.service.app import App
from tocsin.service.batch import batch
from tocsin.service.principal import ProjectKey
from tocsin.service.reply import Reply
from tocsin.service.send import send
from tocsin.settings import Settings
from tocsin.store import lanes, projects, templates, upkeep
from tocsin.store.invariants import violations
from tocsin.store.notifier import Notifier
from tocsin.store.pool import Database
from tocsin.store.query import Query

BOUND_S = 15.0

OPEN_WORK = Query(
    "open_work",
    """
SELECT (SELECT count(*) FROM ready), (SELECT count(*) FROM scheduled WHERE due_at <= $1),
       (SELECT count(*) FROM leases)
""",
)
ADD_SUBSCRIBERS = Query(
    "add_subscribers",
    """
INSERT INTO subscribers (project, id, email, first_name, data, created_at, updated_at)
SELECT $1, w.id, w.email, $4, $5, $6, $6 FROM unnest($2::text[], $3::text[]) AS w(id, email)
""",
)
PREFER = Query(
    "prefer",
    """
INSERT INTO preferences (project, subscriber_id, channel, topic, enabled, updated_at)
VALUES ($1, $2, $3, $4, $5, $6)
""",
)
JOBS_STORED = Query("jobs_stored", "SELECT count(*) FROM jobs")
INBOX = Query(
    "inbox_ids",
    "SELECT id FROM inbox_messages WHERE project = $1 AND subscriber_id = $2 ORDER BY created_at, id",
)
COUNTS = Query(
    "counts",
    "SELECT state, count(*) FROM outcomes GROUP BY state ORDER BY state",
)


@dataclass
class World:
    """who: the project of every call. providers: by channel."""

    app: App
    db: Database
    clock: MovableClock
    notifier: Notifier
    who: ProjectKey
    lanes: list[Lane]
    workers: list[Worker] = field(default_factory=list)
    timing: Timing = field(default_factory=Timing)

    def provider(self, channel: str = "email") -> Scripted:
        found = next(lane.connector for lane in self.lanes if lane.channel == channel)
        assert isinstance(found, Scripted)
        return found

    def start_worker(self) -> Worker:
        """One more worker, with its own view of the same lanes."""
        worker = Worker(
            [Lane(lane.id, lane.channel, lane.connector, paced=lane.paced) for lane in self.lanes],
            db=self.db,
            clock=self.clock,
            notifier=self.notifier,
            defaults=Defaults(Mailbox("tests@example.com", "Tests"), lambda *_: None),
            version="test",
            timing=self.timing,
        )
        worker.start()
        self.workers.append(worker)
        return worker

    async def subscriber(self, subscriber_id: str, **fields: Any) -> None:
        await add_subscribers(self.db, self.who.number, [subscriber_id], self.clock, **fields)

    async def subscribers(
        self, ids: Sequence[str], *, who: ProjectKey | None = None, **fields: Any
    ) -> None:
        await add_subscribers(self.db, (who or self.who).number, ids, self.clock, **fields)

    async def prefer(
        self, subscriber_id: str, channel: str, *, topic: str = "", enabled: bool
    ) -> None:
        """A person's choice."""
        at = self.clock.now()
        await self.db.execute(PREFER, self.who.number, subscriber_id, channel, topic, enabled, at)

    async def template(self, template_id: str, *, body: str, subject: str) -> None:
        """The email variant of a template."""
        at = self.clock.now()
        template = templates.Template(template_id, "email", subject, body, None, None, at, at)
        await templates.upsert(self.db, self.who.number, template)

    async def project(self, project_id: str, *, weight: int = 1) -> ProjectKey:
        """One more project."""
        return await add_project(self.db, project_id, self.clock, weight=weight)

    async def jobs_stored(self) -> int:
        stored: int = await self.db.value(JOBS_STORED)
        return stored

    async def inbox(self, subscriber_id: str) -> list[UUID]:
        """The messages in a person's inbox, oldest first."""
        rows = await self.db.rows(INBOX, self.who.number, subscriber_id)
        return [row[0] for row in rows]

    async def send(
        self, *, key: str | None = None, who: ProjectKey | None = None, **fields: Any
    ) -> Reply:
        return await send(self.app, who or self.who, msgspec.convert(fields, SendRequest), key)

    async def job(self, **fields: Any) -> UUID:
        """Send on one channel; the job's id."""
        reply = msgspec.json.decode((await self.send(**fields)).body)
        return UUID(reply["job_ids"][0])

    async def batch(
        self, *, key: str | None = None, who: ProjectKey | None = None, **fields: Any
    ) -> Reply:
        return await batch(self.app, who or self.who, msgspec.convert(fields, BatchRequest), key)

    async def status(self, job_id: UUID) -> str:
        return (await jobs.get(self.app, self.who, job_id)).status

    async def attempts(self, job_id: UUID) -> int:
        """Attempts that counted before the last one."""
        return (await jobs.get(self.app, self.who, job_id)).attempts - 1

    async def tick(self, **by: float) -> None:
        """Move the clock and wake whoever waits for it."""
        self.clock.advance(**by)
        self.wake()

    def wake(self) -> None:
        self.notifier.hint("scheduled", *(f"lane:{lane.id}" for lane in self.lanes))

    async def idle(self) -> None:
        """Return when nothing is ready, due or leased; what is scheduled for later may stay."""
        hints = self.notifier.subscribe(prefixes=("lane:", "scheduled", "inbox:"))
        async with asyncio.timeout(BOUND_S):
            while True:
                row = await self.db.row(OPEN_WORK, self.clock.now())
                assert row is not None
                if not any(row):
                    break
                await hints.wait(0.02)
        hints.close()

    async def settled(self, at: int = 0) -> None:
        """Return when this worker has ended the leases it holds, and written that down."""
        worker = self.workers[at]
        async with asyncio.timeout(BOUND_S):
            while tasks := {t for c in worker.claimers for t in c.tasks} | worker.reaper.tasks:
                await asyncio.wait(tasks)
            await worker.settler.drained()

    async def counts(self) -> dict[int, int]:
        """Outcomes by state."""
        return {row[0]: row[1] for row in await self.db.rows(COUNTS)}


async def add_subscribers(
    db: Database, project: int, ids: Sequence[str], clock: Clock, **fields: Any
) -> None:
    """Store people in one statement; without an email field each gets one of its own."""
    emails = [fields.get("email", f"{subscriber_id}@example.com") for subscriber_id in ids]
    await db.execute(
        ADD_SUBSCRIBERS,
        project,
        ids,
        emails,
        fields.get("first_name"),
        msgspec.json.encode(fields.get("data", {})).decode(),
        clock.now(),
    )


async def add_project(
    db: Database, project_id: str, clock: Clock, *, weight: int = 1
) -> ProjectKey:
    key_hash = hashlib.sha256(project_id.encode()).digest()
    channels = ["email", "in_app"]
    new = projects.NewProject(
        project_id, project_id, channels, key_hash, None, weight, "{}", None, None
    )
    project = await projects.insert_project(db, new, clock.now())
    assert project is not None
    return ProjectKey(project.number, project_id, tuple(channels), None)


@asynccontextmanager
async def world(
    url: str,
    *connectors: Connector,
    workers: int = 1,
    listen: bool = True,
) -> AsyncIterator[World]:
    """Leaving it stops the workers and asserts every invariant of the database."""
    clock = MovableClock()
    async with await Database.open(url, application_name="world") as db:
        await upkeep.ensure_partitions(db, clock.now())
        notifier = Notifier(url, listen=listen)
        await notifier.start()
        serving = []
        for connector in (*connectors, InApp()):
            spec = connector.spec
            lane = await lanes.ensure_lane(
                db, channel=spec.channel, provider=spec.name, account="default", now=clock.now()
            )
            serving.append(Lane(lane, spec.channel, connector))
        intake = Intake(db, clock, notifier)
        intake.start()
        app = App(
            db=db,
            clock=clock,
            notifier=notifier,
            settings=Settings(),
            intake=intake,
            lanes={lane.channel: lane.id for lane in serving},
            signing_secret=b"s" * 32,
            version="test",
        )
        who = await add_project(db, "acme", clock)
        made = World(app, db, clock, notifier, who, serving)
        for _ in range(workers):
            made.start_worker()
        try:
            yield made
        finally:
            await asyncio.gather(*(worker.stop() for worker in made.workers))
            await intake.stop()
            await notifier.stop()
        assert await violations(db) == []
