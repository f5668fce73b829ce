"""Numbered SQL files, each applied once and in order, by one replica at a time.

A file is `migrations/NNNN_name.sql` and runs in a transaction of its own. With `-- no-transaction`
as its first line it runs outside of one: it then holds a single statement that may be repeated
(CREATE INDEX CONCURRENTLY IF NOT EXISTS …). An applied file never changes; add another.
"""

import asyncio
import hashlib
import random
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from importlib.resources import files
from importlib.resources.abc import Traversable

from msgspec import Struct

import tocsin
from tocsin.domain.errors import Conflict, TocsinError, Unavailable
from tocsin.store.failure import LockTimeout
from tocsin.store.pool import Connection, Session, open_session
from tocsin.store.query import Query

# Any constant, as long as it is always the same one: "tocsin" in ASCII.
ADVISORY_LOCK = 0x746F6373696E
TURN_WAIT_S = 600.0
TURN_POLL_S = 0.1
LOCK_TIMEOUT_MS = 2_000
LOCK_TRIES = 15
LOCK_PAUSE_S = 0.5

_FILE = re.compile(r"(\d{4})_([a-z0-9_]+)\.sql")
_NO_TRANSACTION = "-- no-transaction"

TAKE_TURN = Query("take_migration_turn", "SELECT pg_try_advisory_lock($1)")
END_TURN = Query("end_migration_turn", "SELECT pg_advisory_unlock($1)")
HAS_HISTORY = Query(
    "has_migration_history", "SELECT to_regclass('tocsin.schema_migrations') IS NOT NULL"
)
HAS_SCHEMA = Query("has_schema", "SELECT to_regnamespace('tocsin') IS NOT NULL")
CREATE_SCHEMA = "CREATE SCHEMA tocsin"
CREATE_HISTORY = """
CREATE TABLE tocsin.schema_migrations (
    id         int PRIMARY KEY,
    name       text NOT NULL,
    sha256     text NOT NULL,
    version    text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
)"""
HISTORY = Query(
    "migration_history",
    "SELECT id, name, sha256, version FROM tocsin.schema_migrations ORDER BY id",
)
RECORD = Query(
    "record_migration",
    "INSERT INTO tocsin.schema_migrations (id, name, sha256, version) VALUES ($1, $2, $3, $4)",
)


class Migration(Struct, frozen=True):
    """One file. `text` is what is run, `sha256` the hash of its bytes."""

    id: int
    name: str
    text: str
    sha256: str
    in_transaction: bool

    @property
    def title(self) -> str:
        """Its file's name without the ending."""
        return f"{self.id:04}_{self.name}"


def known_migrations(folder: Traversable | None = None) -> tuple[Migration, ...]:
    """The files of this version, in order. Raises ValueError for a badly named or double one."""
    folder = folder or files("tocsin.store") / "migrations"
    found: dict[int, Migration] = {}
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        if not file.name.endswith(".sql"):
            continue
        named = _FILE.fullmatch(file.name)
        if named is None or int(named[1]) in found:
            raise ValueError(f"{file.name}: name it NNNN_words.sql with a number of its own")
        content = file.read_bytes()
        text = content.decode()
        first_line = text.partition("\n")[0].strip()
        found[int(named[1])] = Migration(
            id=int(named[1]),
            name=named[2],
            text=text,
            sha256=hashlib.sha256(content).hexdigest(),
            in_transaction=first_line != _NO_TRANSACTION,
        )
    return tuple(found.values())


async def missing(
    connection: Connection, migrations: Sequence[Migration] | None = None
) -> list[Migration]:
    """What this version has and the database has not. Raises Conflict if the two do not fit."""
    known = {m.id: m for m in (known_migrations() if migrations is None else migrations)}
    if not await connection.value(HAS_HISTORY):
        return list(known.values())
    applied: set[int] = set()
    for number, name, sha256, version in await connection.rows(HISTORY):
        ours = known.get(number)
        if ours is None:
            raise Conflict(
                "database_newer",
                f"the database has migration {number:04}_{name}, made by Tocsin {version}; "
                f"this is Tocsin {tocsin.__version__}, which does not know it",
                remedy=f"run Tocsin {version} or newer, or restore a backup from before it",
            )
        if ours.sha256 != sha256:
            raise Conflict(
                "migration_changed",
                f"migration {ours.title} was changed after Tocsin {version} applied it",
                remedy="put the file back as it was; write a new migration for the difference",
            )
        applied.add(number)
    todo = [m for m in known.values() if m.id not in applied]
    newest = max(applied, default=0)
    if todo and todo[0].id < newest:
        raise Conflict(
            "migration_out_of_order",
            f"migration {todo[0].title} was added below {newest:04}, which is applied",
            remedy=f"give it a number above {newest:04}",
        )
    return todo


async def migrate(
    url: str,
    *,
    migrations: Sequence[Migration] | None = None,
    on_step: Callable[[Migration], None] = lambda _: None,
) -> list[Migration]:
    """Bring the database to this version; what was applied. Safe with any number of replicas.

    Raises Conflict when database and files do not fit, Unavailable when the database is away,
    another replica migrates for longer than TURN_WAIT_S, or a table stays locked by others.
    """
    session = await open_session(
        url,
        application_name="tocsin migrate",
        settings={"lock_timeout": str(LOCK_TIMEOUT_MS), "statement_timeout": "0"},
        command_timeout_s=None,
    )
    try:
        async with _turn(session):
            await _create_history(session)
            todo = await missing(session, migrations)
            for migration in todo:
                on_step(migration)
                await _apply_patiently(session, migration)
            return todo
    finally:
        await session.close()


@asynccontextmanager
async def _turn(session: Session) -> AsyncIterator[None]:
    # Not pg_advisory_lock: a statement that waits holds a snapshot, and CREATE INDEX
    # CONCURRENTLY of whoever has the lock would wait for that snapshot for ever.
    try:
        async with asyncio.timeout(TURN_WAIT_S):
            while not await session.value(TAKE_TURN, ADVISORY_LOCK):  # noqa: ASYNC110 - no event tells
                await asyncio.sleep(TURN_POLL_S)
    except TimeoutError:
        raise Unavailable(
            "migration_running",
            f"another replica has been migrating this database for {TURN_WAIT_S:.0f} s",
            remedy="wait for it, or end its session (application_name 'tocsin migrate')",
        ) from None
    try:
        yield
    finally:
        # Closing the session would free it too, but only once the server has noticed.
        with suppress(TocsinError):
            await session.value(END_TURN, ADVISORY_LOCK)


async def _create_history(session: Session) -> None:
    if not await session.value(HAS_SCHEMA):
        await session.script("create_schema", CREATE_SCHEMA)
    if not await session.value(HAS_HISTORY):
        await session.script("create_migration_history", CREATE_HISTORY)


async def _apply_patiently(session: Session, migration: Migration) -> None:
    """Try for a lock for a moment only, many times: whoever queues behind us waits with us."""
    for tried in range(1, LOCK_TRIES + 1):
        try:
            return await _apply(session, migration)
        except LockTimeout:
            if tried < LOCK_TRIES:
                await asyncio.sleep(LOCK_PAUSE_S * random.uniform(0.5, 1.5))
    raise Unavailable(
        "migration_locked_out",
        f"migration {migration.title} could not lock its tables in {LOCK_TRIES} tries",
        remedy="end the long transactions on this database and migrate again",
    )


async def _apply(session: Session, migration: Migration) -> None:
    recorded = (migration.id, migration.name, migration.sha256, tocsin.__version__)
    if migration.in_transaction:
        async with session.transaction():
            await session.script(migration.title, migration.text)
            await session.execute(RECORD, *recorded)
    else:
        await session.script(migration.title, migration.text)
        await session.execute(RECORD, *recorded)
