"""The database: two pools over one URL, one for ordinary plans and one whose plans are pinned.

This is the only file that imports asyncpg. json and jsonb are `str` both ways (encode and decode
with msgspec), timestamptz is an aware datetime in UTC, uuid is uuid.UUID, arrays are lists.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    asynccontextmanager,
    contextmanager,
    suppress,
)
from typing import Any, Protocol, Self, TypeAlias

import asyncpg
from asyncpg import Record
from asyncpg.pool import PoolConnectionProxy

from tocsin.store import failure
from tocsin.store.plans import PINNED_PLANS, SESSION_SETTINGS, STATEMENT_TIMEOUT_S, Sizes
from tocsin.store.query import Isolation, Query, Signature

__all__ = [
    "Connection",
    "Database",
    "Isolation",
    "Pool",
    "Query",
    "Record",
    "Session",
    "Signature",
    "Sizes",
    "open_session",
]

CONNECT_TIMEOUT_S = 10.0
ACQUIRE_TIMEOUT_S = 5.0
RELEASE_TIMEOUT_S = 5.0
# The client's own limit: only a connection that swallows bytes gets as far as this.
COMMAND_TIMEOUT_S = STATEMENT_TIMEOUT_S + 5.0
STATEMENTS_CACHED = 500
CONNECTION_QUERIES_MAX = 5_000_000
CONNECTION_IDLE_S = 600.0

_ARGUMENT = re.compile(r"\$\d+")

# TimeoutError is an OSError; a URL that cannot be read is a ClientConfigurationError.
_DRIVER_ERRORS = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
)

# Quoted where they take a parameter: these are generic in the stubs only.
_Driven: TypeAlias = "asyncpg.Connection[Record] | PoolConnectionProxy[Record]"


class Connection(Protocol):
    """What a query function asks for: a Pool, a Database, or the Session of one transaction."""

    async def rows(self, query: Query, *args: object) -> list[Record]: ...

    async def row(self, query: Query, *args: object) -> Record | None: ...

    async def value(self, query: Query, *args: object) -> Any: ...

    async def execute(self, query: Query, *args: object) -> int: ...


def _failure(error: Exception, query: str, *, closed: bool) -> Exception:
    match error:
        # The driver raises DataError itself, without a severity, for an argument's type.
        case asyncpg.PostgresError() if error.severity or not isinstance(error, asyncpg.DataError):
            state = error.sqlstate or "XX000"
            return failure.answered(query, state, error.constraint_name, error.message or "")
        case TimeoutError():
            return failure.slow()
        case OSError():
            return failure.lost()
        case _ if closed:
            return failure.lost()
        case _:
            found = _ARGUMENT.search(str(error))
            return failure.misused(query, found.group() if found else None)


def _is_closed(connection: _Driven) -> bool:
    try:
        return connection.is_closed()
    except asyncpg.InterfaceError:
        # The pool has already taken a broken connection away from us.
        return True


def _count(status: str) -> int:
    """Rows affected, from a command tag such as `INSERT 0 5`."""
    last = status.rpartition(" ")[2]
    return int(last) if last.isdigit() else 0


class Session:
    """One connection, in or out of a transaction. Made by Pool.transaction or open_session."""

    def __init__(self, connection: _Driven, spoil: Callable[[str], None] = lambda _: None) -> None:
        self._connection = connection
        self._spoil = spoil

    @contextmanager
    def _told(self, query: str) -> Iterator[None]:
        """Turn what the driver raises into our errors, without its text: it quotes values."""
        try:
            yield
        except _DRIVER_ERRORS as error:
            if isinstance(error, asyncpg.PostgresError):
                self._spoil(error.sqlstate)
            raise _failure(error, query, closed=_is_closed(self._connection)) from None

    async def rows(self, query: Query, *args: object) -> list[Record]:
        """All rows."""
        with self._told(query.name):
            return await self._connection.fetch(query.text, *args)

    async def row(self, query: Query, *args: object) -> Record | None:
        """The first row, if any."""
        with self._told(query.name):
            return await self._connection.fetchrow(query.text, *args)

    async def value(self, query: Query, *args: object) -> Any:
        """The first column of the first row; None without a row."""
        with self._told(query.name):
            return await self._connection.fetchval(query.text, *args)

    async def execute(self, query: Query, *args: object) -> int:
        """Run it; how many rows it touched."""
        with self._told(query.name):
            return _count(await self._connection.execute(query.text, *args))

    async def script(self, name: str, text: str) -> None:
        """Run several statements without parameters, in one implicit transaction."""
        with self._told(name):
            await self._connection.execute(text)

    async def signature(self, query: Query) -> Signature:
        """PREPARE it and read back its types; nothing is run."""
        with self._told(query.name):
            statement = await self._connection.prepare(query.text)
        return Signature(
            tuple(parameter.name for parameter in statement.get_parameters()),
            tuple((column.name, column.type.name) for column in statement.get_attributes()),
        )

    @asynccontextmanager
    async def transaction(
        self, isolation: Isolation = "read_committed", *, readonly: bool = False
    ) -> AsyncIterator["Session"]:
        """BEGIN … COMMIT, or ROLLBACK when the block raises. Inside one: a savepoint."""
        transaction = self._connection.transaction(isolation=isolation, readonly=readonly)
        with self._told("begin"):
            await transaction.start()
        try:
            yield self
        except BaseException:
            # A connection that broke has nothing left to roll back.
            with suppress(*_DRIVER_ERRORS):
                await transaction.rollback()
            raise
        with self._told("commit"):
            await transaction.commit()

    @property
    def backend_pid(self) -> int:
        """The process id of this session's PostgreSQL backend."""
        return self._connection.get_server_pid()

    @property
    def server_version(self) -> tuple[int, int]:
        """PostgreSQL's version, as (18, 6)."""
        version = self._connection.get_server_version()
        # From 10 on the second number is the minor release; asyncpg calls it micro.
        return version.major, version.micro

    async def listen(self, channel: str, heard: Callable[[int, str], None]) -> None:
        """LISTEN; `heard(backend pid of the sender, payload)` is called for each notification."""

        def callback(_: object, pid: int, __: str, payload: object) -> None:
            heard(pid, str(payload))

        with self._told("listen"):
            await self._connection.add_listener(channel, callback)

    def on_lost(self, callback: Callable[[], None]) -> None:
        """`callback()` once when the connection ends, for whatever reason."""
        self._connection.add_termination_listener(lambda _: callback())

    async def close(self) -> None:
        """End a session that open_session made; never raises."""
        with suppress(*_DRIVER_ERRORS):
            await self._connection.close(timeout=RELEASE_TIMEOUT_S)

    def terminate(self) -> None:
        """Drop the connection without a word to the server."""
        self._connection.terminate()


async def open_session(
    url: str,
    *,
    application_name: str,
    settings: dict[str, str] | None = None,
    command_timeout_s: float | None = COMMAND_TIMEOUT_S,
) -> Session:
    """A connection outside the pools: migrations, LISTEN. Raises Unavailable."""
    named = {"application_name": application_name}
    with _connecting():
        connection = await asyncpg.connect(
            url,
            timeout=CONNECT_TIMEOUT_S,
            command_timeout=command_timeout_s,
            server_settings=SESSION_SETTINGS | named | (settings or {}),
        )
    return Session(connection)


@contextmanager
def _connecting() -> Iterator[None]:
    """Turn what the driver raises while it connects into Unavailable."""
    try:
        yield
    except asyncpg.PostgresError as error:
        raise failure.unopened(error.sqlstate or "XX000") from None
    except ValueError:
        raise failure.unreadable() from None
    except _DRIVER_ERRORS:
        raise failure.unreachable() from None


async def _keep_session(_: "asyncpg.Connection[Record]") -> None:
    """Nothing to reset: no statement of ours leaves anything in a session behind.

    asyncpg's own reset is a round trip of four statements after every single use.
    """


class Pool:
    """A bounded set of connections with the same plans. Each method takes one and gives it back."""

    def __init__(self, pool: "asyncpg.Pool[Record]") -> None:
        self._pool = pool
        self._stale = False

    def _spoil(self, sqlstate: str) -> None:
        self._stale = self._stale or sqlstate in failure.STALE_STATES

    async def _acquire(self) -> "PoolConnectionProxy[Record]":
        try:
            async with asyncio.timeout(ACQUIRE_TIMEOUT_S):
                with _connecting():
                    return await self._pool.acquire()
        except TimeoutError:
            full = self._pool.get_size() >= self._pool.get_max_size()
            raise (failure.busy() if full else failure.unreachable()) from None

    async def _release(self, connection: "PoolConnectionProxy[Record]") -> None:
        if self._stale:
            self._stale = False
            await self._pool.expire_connections()
        # asyncpg has dropped the connection when giving it back fails; the answer stands.
        with suppress(*_DRIVER_ERRORS):
            await self._pool.release(connection, timeout=RELEASE_TIMEOUT_S)

    @asynccontextmanager
    async def session(self) -> AsyncIterator[Session]:
        """One connection for several statements that need no transaction."""
        connection = await self._acquire()
        try:
            yield Session(connection, self._spoil)
        finally:
            await self._release(connection)

    @asynccontextmanager
    async def transaction(
        self, isolation: Isolation = "read_committed", *, readonly: bool = False
    ) -> AsyncIterator[Session]:
        """A transaction; its Session has the same methods. Never hold one over a network call."""
        async with (
            self.session() as session,
            session.transaction(isolation, readonly=readonly) as inside,
        ):
            yield inside

    async def rows(self, query: Query, *args: object) -> list[Record]:
        """All rows."""
        async with self.session() as session:
            return await session.rows(query, *args)

    async def row(self, query: Query, *args: object) -> Record | None:
        """The first row, if any."""
        async with self.session() as session:
            return await session.row(query, *args)

    async def value(self, query: Query, *args: object) -> Any:
        """The first column of the first row; None without a row."""
        async with self.session() as session:
            return await session.value(query, *args)

    async def execute(self, query: Query, *args: object) -> int:
        """Run it; how many rows it touched."""
        async with self.session() as session:
            return await session.execute(query, *args)

    async def close(self) -> None:
        """Wait a moment for the connections in use, then drop them all."""
        try:
            async with asyncio.timeout(RELEASE_TIMEOUT_S):
                await self._pool.close()
        except _DRIVER_ERRORS:
            self._pool.terminate()


async def _open_pool(url: str, size: int, application_name: str, settings: dict[str, str]) -> Pool:
    with _connecting():
        pool = await asyncpg.create_pool(
            url,
            init_size=1,
            min_size=0,
            max_size=size,
            max_queries=CONNECTION_QUERIES_MAX,
            max_inactive_connection_lifetime=CONNECTION_IDLE_S,
            reset=_keep_session,
            timeout=CONNECT_TIMEOUT_S,
            command_timeout=COMMAND_TIMEOUT_S,
            statement_cache_size=STATEMENTS_CACHED,
            max_cached_statement_lifetime=0,
            max_cacheable_statement_size=0,
            server_settings=SESSION_SETTINGS | {"application_name": application_name} | settings,
        )
    return Pool(pool)


class Database:
    """Both pools. Its own methods run on `general`; the queue's statements ask for `queue`."""

    def __init__(self, url: str, general: Pool, queue: Pool, version: tuple[int, int]) -> None:
        self.url = url
        self.general = general
        self.queue = queue
        self.version = version

    @classmethod
    async def open(
        cls, url: str, *, sizes: Sizes | None = None, application_name: str = "tocsin"
    ) -> Self:
        """Connect, or raise Unavailable saying what to do."""
        sizes = sizes or Sizes()
        general = await _open_pool(url, sizes.general, application_name, {})
        try:
            async with general.session() as session:
                version = session.server_version
            failure.refuse_old(version[0])
            queue = await _open_pool(url, sizes.queue, f"{application_name} queue", PINNED_PLANS)
        except BaseException:
            await general.close()
            raise
        return cls(url, general, queue, version)

    async def close(self) -> None:
        """Close both pools."""
        await asyncio.gather(self.queue.close(), self.general.close())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def transaction(
        self, isolation: Isolation = "read_committed", *, readonly: bool = False
    ) -> AbstractAsyncContextManager[Session]:
        """A transaction on the general pool."""
        return self.general.transaction(isolation, readonly=readonly)

    async def rows(self, query: Query, *args: object) -> list[Record]:
        """All rows, from the general pool."""
        return await self.general.rows(query, *args)

    async def row(self, query: Query, *args: object) -> Record | None:
        """The first row, if any, from the general pool."""
        return await self.general.row(query, *args)

    async def value(self, query: Query, *args: object) -> Any:
        """The first column of the first row, from the general pool."""
        return await self.general.value(query, *args)

    async def execute(self, query: Query, *args: object) -> int:
        """Run it on the general pool; how many rows it touched."""
        return await self.general.execute(query, *args)
