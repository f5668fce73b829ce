"""Ground: the database that a benchmark runs on: a private PostgreSQL's, or one that was named."""

import itertools
import secrets
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from tocsin.domain.errors import Conflict, TocsinError
from tocsin.faces.cli.bench.process import server_of
from tocsin.service.keys import hash_key, new_project_key
from tocsin.store import gauges, projects, upkeep
from tocsin.store.clock import DatabaseClock
from tocsin.store.devserver import DevServer
from tocsin.store.migrate import migrate
from tocsin.store.pool import Database, Sizes

PREFIX: Final = "bench-"
CONNECTIONS: Final = 16


class Ground(Struct, frozen=True):
    """A migrated database with one project and its people.

    number, key: of the project. server: PostgreSQL's first process, None if it cannot be seen.
    """

    url: str
    db: Database
    clock: DatabaseClock
    number: int
    key: str
    server: int | None


class Place:
    """Where grounds are made. data: PostgreSQL's directory, None if it cannot be reached."""

    def __init__(
        self, folder: Path, url: str, data: Path | None, *, private: bool, version: tuple[int, int]
    ) -> None:
        self.folder = folder
        self.data = data
        self.version = version
        self._url = url
        self._private = private
        self._numbers = itertools.count(1)

    @asynccontextmanager
    async def ground(self, people: int) -> AsyncIterator[Ground]:
        """A new database of a private server, or the named one; nothing of it is left."""
        async with AsyncExitStack() as stack:
            url = self._url
            if self._private:
                name = f"bench_{next(self._numbers)}"
                url = await gauges.create_database(self._url, name)
                stack.push_async_callback(gauges.drop_database, self._url, name)
            await migrate(url)
            sizes = Sizes(general=CONNECTIONS, queue=CONNECTIONS)
            opened = await Database.open(url, sizes=sizes, application_name="tocsin bench")
            db = await stack.enter_async_context(opened)
            ground = await _with_project(db, url)
            if not self._private:
                stack.push_async_callback(_erase, ground)
            await gauges.seed(db, ground.number, people, ground.clock.now())
            yield ground


@asynccontextmanager
async def place(url: str | None, *, despite_others: bool) -> AsyncIterator[Place]:
    """A private PostgreSQL with its defaults, or the server of `url`; gone or as it was afterwards.

    despite_others: run even where other projects have their work.
    """
    with ExitStack() as stack:
        folder = _folder(stack)
        if url is not None:
            yield await _named(folder, url, despite_others=despite_others)
            return
        async with DevServer(folder / "data") as server:
            # Not below our folder where the server's account cannot enter that.
            data = server.data_dir
            stack.callback(shutil.rmtree, data, ignore_errors=True)
            yield Place(folder, server.url, data, private=True, version=server.version)


def _folder(stack: ExitStack) -> Path:
    """A new directory, removed with everything in it when the stack unwinds."""
    folder = Path(tempfile.mkdtemp(prefix="tocsin-bench-"))
    stack.callback(shutil.rmtree, folder, ignore_errors=True)
    # PostgreSQL runs as another user when we are root, and must be able to enter.
    folder.chmod(0o711)
    return folder


async def checkpoint(ground: Ground) -> None:
    """Let every page's next change be logged whole, as after any checkpoint, and files be of full size."""
    # A database of somebody else's may not permit it.
    with suppress(TocsinError):
        await gauges.checkpoint(ground.db)


async def _named(folder: Path, url: str, *, despite_others: bool) -> Place:
    await migrate(url)
    async with await Database.open(url, application_name="tocsin bench") as db:
        others = await gauges.other_projects(db, PREFIX)
        if (others or await gauges.is_busy(db)) and not despite_others:
            what = f"{others} projects" if others else "work in its queue"
            raise Conflict(
                "database_in_use",
                f"the database holds {what}: the benchmark would disturb it, and it the figures",
                remedy="name an empty database, or leave --database-url out; --yes runs it anyway",
            )
        data = None
        with suppress(TocsinError):
            data = Path(await gauges.data_directory(db))
        local = (await gauges.backend(db)).local
        return Place(folder, url, data if local else None, private=False, version=db.version)


async def _with_project(db: Database, url: str) -> Ground:
    clock = DatabaseClock(db)
    await clock.resync()
    now = clock.now()
    await upkeep.ensure_partitions(db, now)
    name = PREFIX + secrets.token_hex(4)
    key = new_project_key(name)
    project = await projects.insert_project(
        db,
        projects.NewProject(
            id=name,
            name="Benchmark",
            channels=["email", "in_app"],
            key_hash=hash_key(key),
            rate_limit_per_min=None,
            weight=1,
            settings="{}",
            from_email=None,
            from_name=None,
        ),
        now,
    )
    assert project is not None
    backend = await gauges.backend(db)
    server = server_of(backend.pid) if backend.local else None
    return Ground(url, db, clock, project.number, key, server)


async def _erase(ground: Ground) -> None:
    await gauges.erase(ground.db, ground.number)
    await gauges.vacuum(ground.db)
