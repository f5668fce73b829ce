import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from tests.support.asgi import Client
from tests.support.clock import MovableClock
from tocsin.engine.intake import Intake
from tocsin.faces.http.app import make
from tocsin.faces.http.front import Front
from tocsin.faces.http.server import listen, serve
from tocsin.service.app import App
from tocsin.service.principal import ProjectKey
from tocsin.settings import parse
from tocsin.store import inbox, lanes, projects, upkeep
from tocsin.store.inbox_changes import hint_of
from tocsin.store.notifier import Notifier
from tocsin.store.pool import Database

ADMIN = "admin-key-of-the-tests-0123456789"
READER = "reader-key-of-the-tests-0123456789"
ORIGIN = "https://app.example.com"


@dataclass
class Api:
    """acme: a client with the key of a project without a rate limit; who: that project."""

    app: App
    clock: MovableClock
    front: Front
    admin: Client
    reader: Client
    nobody: Client
    acme: Client
    key: str
    who: ProjectKey

    async def project(self, project_id: str, **fields: Any) -> Client:
        """One more project; a client with its key."""
        body = {"id": project_id, "rate_limit_per_min": None} | fields
        made = await self.admin.post("/v1/admin/projects", body)
        return self.nobody.with_headers(x_api_key=made.json["project"]["api_key"])

    async def deliver(self, *messages: inbox.NewMessage) -> None:
        """Put messages into inboxes, as the settler does."""
        async with self.app.db.transaction() as tx:
            await inbox.insert_messages(tx, messages, self.clock.now())
        self.app.notifier.hint(*(hint_of(m.project, m.subscriber_id) for m in messages))

    async def token(self, subscriber_id: str, **fields: Any) -> str:
        made = await self.acme.post(
            "/v1/auth/subscriber-token", {"subscriber_id": subscriber_id} | fields
        )
        token: str = made.json["token"]
        return token


@asynccontextmanager
async def opened_app(db: Database, clock: MovableClock) -> AsyncIterator[App]:
    """Everything a face needs, with hints inside this process."""
    await upkeep.ensure_partitions(db, clock.now())
    notifier = Notifier(db.url, listen=False)
    intake = Intake(db, clock, notifier)
    intake.start()
    env = {"ADMIN_API_KEY": ADMIN, "READONLY_API_KEY": READER, "CORS_ORIGINS": ORIGIN}
    yield App(
        db=db,
        clock=clock,
        notifier=notifier,
        settings=parse(env, ""),
        intake=intake,
        lanes={
            channel: await lanes.ensure_lane(
                db, channel=channel, provider="log", account="default", now=clock.now()
            )
            for channel in ("email", "in_app")
        },
        signing_secret=b"s" * 32,
        version="test",
    )
    await intake.stop()
    await notifier.stop()


@pytest.fixture
async def app(db: Database, clock: MovableClock) -> AsyncIterator[App]:
    """An App on this test's database."""
    async with opened_app(db, clock) as opened:
        yield opened


@pytest.fixture
async def front(app: App) -> AsyncIterator[Front]:
    front = make(app, ping_s=0.05, sweep_s=0.1)
    await front.start()
    yield front
    await front.stop()


@pytest.fixture
async def api(app: App, front: Front, clock: MovableClock) -> Api:
    nobody = Client(front)
    admin = nobody.with_headers(x_api_key=ADMIN)
    made = await admin.post("/v1/admin/projects", {"id": "acme", "rate_limit_per_min": None})
    key = made.json["project"]["api_key"]
    project = await projects.read_project(app.db, "acme")
    assert project is not None
    return Api(
        app=app,
        clock=clock,
        front=front,
        admin=admin,
        reader=nobody.with_headers(x_api_key=READER),
        nobody=nobody,
        acme=nobody.with_headers(x_api_key=key),
        key=key,
        who=ProjectKey(project.number, "acme", ("email", "in_app"), None),
    )


@dataclass
class Served:
    """The face on a real socket. stop: begin the shutdown; done: it is over."""

    port: int
    stop: asyncio.Event
    done: asyncio.Task[None]


@pytest.fixture
async def served(app: App) -> AsyncIterator[Served]:
    front = make(app, ping_s=0.05, sweep_s=0.1)
    bound = listen("127.0.0.1", 0)
    stop = asyncio.Event()
    done = asyncio.create_task(serve(front, bound, stop, grace_s=5))
    yield Served(bound.getsockname()[1], stop, done)
    stop.set()
    await done
