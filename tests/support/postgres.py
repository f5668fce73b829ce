"""PostgreSQL for tests: a server per test process, a migrated database per test."""

import asyncio
import fcntl
import itertools
import os
import shutil
import tempfile
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit, urlunsplit

from tocsin.store.devserver import DevServer
from tocsin.store.migrate import migrate
from tocsin.store.pool import open_session

T = TypeVar("T")

TEMPLATE = "migrated"
SETTINGS = {"max_connections": "200", "max_wal_size": "256MB"}
PREFIX = "tocsin-tests-"
MEMORY = Path("/dev/shm")
MEMORY_BYTES_MIN = 2 << 30


def in_thread(work: Coroutine[Any, Any, T]) -> T:
    """Run it to its end in a loop of its own, from a fixture that has none."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


def renamed(url: str, database: str) -> str:
    """The URL of another database of the same server."""
    return urlunsplit(urlsplit(url)._replace(path=f"/{database}"))


async def run_on(url: str, *statements: str) -> None:
    """Run statements one by one, each outside of a transaction."""
    session = await open_session(url, application_name="tests")
    try:
        for statement in statements:
            await session.script("tests", statement)
    finally:
        await session.close()


class TestServer:
    """Hands out databases; each is a copy of one that was migrated once."""

    __test__ = False

    def __init__(self, server: DevServer) -> None:
        self.server = server
        self._numbers = itertools.count(1)
        self._migrated = False

    @property
    def url(self) -> str:
        """The owner's first database; nothing is migrated in it."""
        return self.server.url

    @contextmanager
    def database(self, *, migrated: bool = True) -> Iterator[str]:
        """The URL of a new database, dropped at the end whoever is still connected."""
        if migrated and not self._migrated:
            in_thread(run_on(self.url, f"CREATE DATABASE {TEMPLATE}"))
            in_thread(migrate(renamed(self.url, TEMPLATE)))
            self._migrated = True
        name = f"test_{next(self._numbers)}"
        template = TEMPLATE if migrated else "template1"
        copy = f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy"
        in_thread(run_on(self.url, copy))
        try:
            yield renamed(self.url, name)
        finally:
            in_thread(run_on(self.url, f"DROP DATABASE {name} WITH (FORCE)"))


@contextmanager
def running_server() -> Iterator[TestServer]:
    """A server with its data in a temporary directory; TOCSIN_PG_BIN chooses its programs."""
    # Not pytest's tmp_path: a server that root starts runs as somebody who cannot enter that.
    root = _memory() or Path(tempfile.gettempdir())
    _forget_killed_runs(root)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=root))
    folder.chmod(0o711)
    try:
        with DevServer(folder / "data", durable=False, settings=SETTINGS) as server:
            yield TestServer(server)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _forget_killed_runs(root: Path) -> None:
    """Remove what runs left that were killed: their servers died with them, and their locks."""
    for lock in root.glob(f"{PREFIX}*/data/tocsin.lock"):
        with suppress(OSError), lock.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(lock.parents[1], ignore_errors=True)


def _memory() -> Path | None:
    """Where files are memory, if there is room: a copy of a database takes a tenth of the time."""
    try:
        room = shutil.disk_usage(MEMORY).free >= MEMORY_BYTES_MIN
    except OSError:
        return None
    return MEMORY if room and os.access(MEMORY, os.W_OK) else None
