"""Both pools on a real PostgreSQL, and what their failures look like from above."""

import asyncio
from datetime import UTC, datetime

import pytest

from tests.support.eventually import eventually
from tests.support.postgres import renamed
from tocsin.domain.errors import Unavailable
from tocsin.domain.ids import uuid7s
from tocsin.store import failure, pool
from tocsin.store.failure import (
    Contended,
    ForeignKeyViolation,
    LockTimeout,
    StatementFailed,
    UniqueViolation,
)
from tocsin.store.plans import Sizes
from tocsin.store.pool import Database, open_session
from tocsin.store.query import Query

BOUND_S = 20.0

MAKE = Query("make", "CREATE TABLE things (id int PRIMARY KEY, word text, said json)")
MAKE_PARTS = Query("make_parts", "CREATE TABLE parts (thing int REFERENCES things (id))")
PUT = Query("put", "INSERT INTO things (id, word) VALUES ($1, $2)")
PUT_PART = Query("put_part", "INSERT INTO parts (thing) VALUES ($1)")
CHANGE = Query("change", "UPDATE things SET word = $2 WHERE id = $1")
WORDS = Query("words", "SELECT id, word FROM things ORDER BY id")
COUNT = Query("count", "SELECT count(*) FROM things")
ECHO = Query("echo", "SELECT $1::int")
SETTING = Query("setting", "SELECT current_setting($1)")
PID = Query("pid", "SELECT pg_backend_pid()")
END = Query("end", "SELECT pg_terminate_backend($1)")
SLEEP = Query("sleep", "SELECT pg_sleep($1)")


@pytest.fixture
async def db(empty_database_url: str):
    async with await Database.open(empty_database_url, sizes=Sizes(general=3, queue=2)) as database:
        yield database


@pytest.fixture
async def things(db: Database) -> Database:
    await db.execute(MAKE)
    await db.execute(MAKE_PARTS)
    return db


async def test_rows_row_value_and_count_come_back_as_asked(things: Database) -> None:
    assert await things.execute(PUT, 1, "one") == 1
    assert await things.execute(PUT, 2, "two") == 1

    assert [tuple(row) for row in await things.rows(WORDS)] == [(1, "one"), (2, "two")]
    first = await things.row(WORDS)
    assert first is not None
    assert first["word"] == "one"
    assert await things.value(COUNT) == 2
    nobody = Query("nobody", "SELECT id FROM things WHERE id < 0")
    assert (await things.row(nobody), await things.value(nobody)) == (None, None)


async def test_json_is_text_and_times_are_aware(things: Database) -> None:
    say = Query("say", "INSERT INTO things (id, said) VALUES (1, $1) RETURNING said, $1::jsonb")
    row = await things.row(say, '{"a": "\\u00e9"}')
    assert row is not None
    assert [type(value) for value in row] == [str, str]

    at = datetime(2026, 5, 1, 12, tzinfo=UTC)
    read = await things.value(Query("at", "SELECT $1::timestamptz"), at)
    assert (read, read.tzinfo) == (at, UTC)


async def test_thousands_of_rows_go_in_as_arrays_in_one_statement(db: Database) -> None:
    count = 5_000
    query = Query(
        "many",
        "SELECT count(DISTINCT id), sum(length(word)), sum(n) FROM"
        " unnest($1::uuid[], $2::text[], $3::int[], $4::json[]) AS t (id, word, n, said)",
    )
    ids = uuid7s(datetime.now(UTC), count)
    row = await db.queue.row(query, ids, ["word"] * count, list(range(count)), ["{}"] * count)

    assert row is not None
    assert tuple(row) == (count, 4 * count, sum(range(count)))


async def test_each_pool_has_its_own_plans_and_both_have_limits(db: Database) -> None:
    pinned = {
        "plan_cache_mode": "force_generic_plan",
        "jit": "off",
        "enable_seqscan": "off",
        "enable_bitmapscan": "off",
        "enable_sort": "off",
        "enable_hashjoin": "off",
        "enable_mergejoin": "off",
    }
    for name, value in pinned.items():
        assert await db.queue.value(SETTING, name) == value
        assert await db.general.value(SETTING, name) == ("auto" if "mode" in name else "on")
    for each in (db.queue, db.general):
        assert await each.value(SETTING, "search_path") == "tocsin,public"
        assert await each.value(SETTING, "statement_timeout") == "30s"
        assert await each.value(SETTING, "idle_in_transaction_session_timeout") == "30s"
    assert await db.queue.value(SETTING, "application_name") == "tocsin queue"


async def test_a_transaction_commits_whole_or_leaves_nothing(things: Database) -> None:
    async with things.transaction() as inside:
        await inside.execute(PUT, 1, "one")
        assert await things.value(COUNT) == 0
    assert await things.value(COUNT) == 1

    async def give_up() -> None:
        async with things.queue.transaction() as inside:
            await inside.execute(PUT, 2, "two")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await give_up()
    assert await things.value(COUNT) == 1


async def test_a_failure_inside_a_savepoint_leaves_the_transaction_usable(things: Database) -> None:
    async with things.transaction() as outer:
        await outer.execute(PUT, 1, "one")
        with pytest.raises(UniqueViolation):
            async with outer.transaction() as inner:
                await inner.execute(PUT, 1, "again")
        await outer.execute(PUT, 2, "two")

    assert await things.value(COUNT) == 2


async def test_a_readonly_transaction_refuses_to_write(things: Database) -> None:
    with pytest.raises(Unavailable) as caught:
        async with things.transaction("repeatable_read", readonly=True) as inside:
            await inside.execute(PUT, 1, "one")
    assert caught.value.code == "database_read_only"


async def test_violations_are_told_apart_and_name_their_constraint(things: Database) -> None:
    await things.execute(PUT, 1, "one")
    with pytest.raises(UniqueViolation) as unique:
        await things.execute(PUT, 1, "again")
    with pytest.raises(ForeignKeyViolation) as foreign:
        await things.execute(PUT_PART, 9)

    assert (unique.value.query, unique.value.constraint) == ("put", "things_pkey")
    assert foreign.value.constraint == "parts_thing_fkey"


SPOILED = {
    "a key that is taken": (PUT, (1, "hidden")),
    "an argument's type": (PUT, ("hidden", "x")),
    "a byte that text cannot hold": (PUT, (1, "hidden\0")),
    "too few arguments": (PUT, ("hidden",)),
    "a cast": (Query("cast", "SELECT $1::text::int"), ("hidden",)),
    "a json that is none": (Query("parse", "SELECT ('[' || $1)::json"), ("hidden",)),
}


@pytest.mark.parametrize("spoiled", SPOILED)
async def test_no_failure_quotes_a_value_or_the_statement(things: Database, spoiled: str) -> None:
    query, arguments = SPOILED[spoiled]
    await things.execute(PUT, 1, "one")
    with pytest.raises(StatementFailed) as caught:
        await things.rows(query, *arguments)

    told = f"{caught.value} {caught.value.detail} {caught.value.remedy} {caught.value.extra}"
    assert "hidden" not in told
    assert "INSERT" not in told
    assert caught.value.__suppress_context__
    assert query.name in told


async def test_a_deadlock_is_contention_and_a_lock_not_to_be_had_a_lock_timeout(
    things: Database,
) -> None:
    await things.execute(PUT, 1, "one")
    await things.execute(PUT, 2, "two")
    met = asyncio.Barrier(2)

    async def cross(first: int, second: int) -> None:
        async with things.transaction() as inside:
            await inside.execute(CHANGE, first, "x")
            await met.wait()
            await inside.execute(CHANGE, second, "y")

    async with asyncio.timeout(BOUND_S):
        ends = await asyncio.gather(cross(1, 2), cross(2, 1), return_exceptions=True)
    assert sorted(type(end).__name__ for end in ends) == ["Contended", "NoneType"]
    assert issubclass(Contended, StatementFailed)

    nowait = Query("nowait", "SELECT id FROM things WHERE id = 1 FOR UPDATE NOWAIT")
    async with things.transaction() as holder:
        await holder.execute(CHANGE, 1, "held")
        with pytest.raises(LockTimeout):
            await things.queue.rows(nowait)


async def test_a_statement_beyond_its_time_limit_is_unavailable(db: Database) -> None:
    async with db.transaction() as inside:
        await inside.execute(Query("limit", "SET LOCAL statement_timeout = '20ms'"))
        with pytest.raises(Unavailable) as caught:
            async with inside.transaction():
                await inside.rows(SLEEP, 60.0)
    assert caught.value.code == "database_slow"
    assert await db.value(ECHO, 5) == 5


async def test_a_connection_that_never_answers_is_given_up(
    empty_database_url: str, monkeypatch
) -> None:
    monkeypatch.setattr(pool, "COMMAND_TIMEOUT_S", 0.05)
    async with await Database.open(empty_database_url) as db:
        with pytest.raises(Unavailable) as caught:
            await db.rows(SLEEP, 60.0)
        assert caught.value.code == "database_slow"
        assert await db.value(ECHO, 5) == 5


async def test_a_terminated_backend_is_unavailable_once_and_then_replaced(db: Database) -> None:
    with pytest.raises(Unavailable) as caught:
        async with db.transaction() as inside:
            await inside.value(END, await inside.value(PID))
    assert caught.value.code == "database_lost"
    assert caught.value.retry_after_s == 1
    assert "idempotency key" in caught.value.remedy
    assert await db.value(ECHO, 5) == 5


async def test_a_backend_terminated_while_idle_is_replaced_unnoticed(
    db: Database, empty_database_url: str
) -> None:
    other = await open_session(empty_database_url, application_name="other")
    mine = await db.value(PID)
    await other.rows(END, mine)

    async def noticed() -> bool:
        await other.value(ECHO, 1)
        return db.general._pool.get_size() == 0

    await eventually(noticed)
    await other.close()

    assert await db.value(PID) != mine


async def test_a_server_that_takes_no_writes_any_more_costs_all_connections(
    things: Database,
) -> None:
    before = {await things.value(PID)}
    demote = Query("demote", "SET default_transaction_read_only = on")
    async with things.general.session() as session:
        await session.execute(demote)
    with pytest.raises(Unavailable) as caught:
        await things.execute(PUT, 1, "one")

    assert caught.value.code == "database_read_only"
    assert await things.value(PID) not in before
    assert await things.execute(PUT, 1, "one") == 1


async def test_a_pool_with_nothing_free_says_so_within_its_bound(db: Database, monkeypatch) -> None:
    async with db.queue.session(), db.queue.session():
        monkeypatch.setattr(pool, "ACQUIRE_TIMEOUT_S", 0.05)
        with pytest.raises(Unavailable) as caught:
            await db.queue.value(ECHO, 1)
        assert caught.value.code == "database_busy"
        monkeypatch.undo()
        assert await db.general.value(ECHO, 1) == 1
    assert await db.queue.value(ECHO, 1) == 1


async def test_a_cancelled_statement_gives_its_connection_back(db: Database) -> None:
    running = [asyncio.create_task(db.queue.rows(SLEEP, 60.0)) for _ in range(2)]
    active = Query(
        "active",
        "SELECT count(*) = 2 FROM pg_stat_activity WHERE application_name = 'tocsin queue'"
        " AND state = 'active' AND datname = current_database()",
    )
    await eventually(lambda: db.value(active))
    for task in running:
        task.cancel()
    async with asyncio.timeout(BOUND_S):
        await asyncio.wait(running)
        assert await asyncio.gather(*(db.queue.value(ECHO, n) for n in range(4))) == [0, 1, 2, 3]


async def test_nothing_a_statement_did_survives_in_the_session(db: Database) -> None:
    async with db.queue.transaction() as inside:
        await inside.execute(Query("local", "SET LOCAL work_mem = '1MB'"))
    assert await db.queue.value(SETTING, "work_mem") == "4MB"
    with pytest.raises(StatementFailed):
        await db.queue.rows(Query("bad", "SELECT nothing_like_it"))
    idle = Query("idle", "SELECT state FROM pg_stat_activity WHERE pid = pg_backend_pid()")
    assert await db.queue.value(idle) == "active"


UNUSABLE = {
    "no server": (lambda _: "postgresql://nobody@127.0.0.1:1/x", "database_unreachable"),
    "no database": (lambda url: renamed(url, "not_there"), "database_refused"),
    "bad password": (lambda url: url.replace("tocsin:", "tocsin:wrong"), "database_refused"),
    "no address": (lambda _: "what is this", "database_url_invalid"),
    "other scheme": (lambda _: "http://example.com/x", "database_url_invalid"),
}


@pytest.mark.parametrize("why", UNUSABLE)
async def test_a_database_that_cannot_be_opened_says_what_to_do(
    empty_database_url: str, why: str
) -> None:
    change, code = UNUSABLE[why]
    with pytest.raises(Unavailable) as caught:
        await Database.open(change(empty_database_url))

    assert caught.value.code == code
    assert caught.value.remedy
    with pytest.raises(Unavailable):
        await open_session(change(empty_database_url), application_name="x")


async def test_a_server_that_is_too_old_is_refused_by_version() -> None:
    failure.refuse_old(15)
    with pytest.raises(Unavailable, match="PostgreSQL 14") as caught:
        failure.refuse_old(14)
    assert "15" in caught.value.remedy


async def test_the_version_of_the_server_is_known(db: Database) -> None:
    number = int(await db.value(SETTING, "server_version_num"))

    assert db.version == (number // 10_000, number % 10_000)


async def test_closing_ends_every_connection(empty_database_url: str) -> None:
    db = await Database.open(empty_database_url, application_name="closing")
    await asyncio.gather(*(db.value(ECHO, n) for n in range(5)))
    await db.close()
    watcher = await open_session(empty_database_url, application_name="watcher")
    none_left = Query(
        "none_left",
        "SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name LIKE 'closing%'",
    )
    await eventually(lambda: watcher.value(none_left))
    await watcher.close()
