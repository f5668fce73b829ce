import asyncio
import random
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import pytest

from tests.support.clock import START
from tocsin.domain.ids import uuid7, uuid7s
from tocsin.store import inbox, inbox_changes, upkeep
from tocsin.store.inbox import NewMessage, State, Touched
from tocsin.store.inbox_changes import Change, Cursor
from tocsin.store.pool import Database, Query

NOW = START
CHANGES = Query(
    "test_changes",
    "SELECT version, kind, message_id, unread FROM inbox_changes "
    "WHERE project = $1 AND subscriber_id = $2 ORDER BY version",
)
WAITING = Query(
    "test_waiting",
    "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()",
)


@pytest.fixture
async def store(db: Database) -> Database:
    await upkeep.ensure_partitions(db, NOW)
    return db


def message(person: str, job_id: UUID | None = None, project: int = 1) -> NewMessage:
    return NewMessage(job_id or uuid7(NOW), project, person, "body", "bell")


async def changes(db: Database, person: str, project: int = 1) -> list[tuple[object, ...]]:
    return [tuple(row) for row in await db.rows(CHANGES, project, person)]


async def insert(db: Database, messages: Sequence[NewMessage]) -> list[Touched]:
    async with db.transaction() as tx:
        return await inbox.insert_messages(tx, messages, NOW)


async def test_a_message_makes_an_inbox_of_version_one_with_one_unread(store: Database) -> None:
    new = message("ada")

    touched = await insert(store, [new])

    assert touched == [Touched(1, "ada", 1, 1)]
    assert await changes(store, "ada") == [(1, "new", new.job_id, 1)]
    assert await inbox.unread(store, 1, "ada") == (1, 1)


async def test_several_messages_of_one_inbox_in_one_call_get_consecutive_versions(
    store: Database,
) -> None:
    first, second, third = uuid7s(NOW, 3)
    await insert(store, [message("ada")])

    touched = await insert(
        store,
        [message("ada", third), message("bob"), message("ada", first), message("ada", second)],
    )

    assert sorted((t.subscriber_id, t.version, t.unread) for t in touched) == [
        ("ada", 4, 4), ("bob", 1, 1),
    ]  # fmt: skip
    assert [row[:2] for row in await changes(store, "ada")] == [(v, "new") for v in (1, 2, 3, 4)]
    assert [row[2] for row in await changes(store, "ada")][1:] == [first, second, third]
    assert [row[3] for row in await changes(store, "ada")] == [1, 2, 3, 4]


async def test_a_message_that_is_there_already_changes_nothing(store: Database) -> None:
    new, other = message("ada"), message("ada")
    await insert(store, [new])

    assert await insert(store, [new]) == []
    assert await insert(store, [new, other, other]) == [Touched(1, "ada", 2, 2)]
    assert await inbox.unread(store, 1, "ada") == (2, 2)
    assert [row[0] for row in await changes(store, "ada")] == [1, 2]


async def test_no_messages_touch_no_inbox(store: Database) -> None:
    assert await insert(store, []) == []


async def test_the_same_subscriber_id_in_two_projects_is_two_inboxes(store: Database) -> None:
    await insert(store, [message("ada", project=1), message("ada", project=2)])
    await insert(store, [message("ada", project=2)])

    assert await inbox.unread(store, 1, "ada") == (1, 1)
    assert await inbox.unread(store, 2, "ada") == (2, 2)


async def test_a_rolled_back_call_leaves_no_version_behind(store: Database) -> None:
    async def fail() -> None:
        async with store.transaction() as tx:
            await inbox.insert_messages(tx, [message("ada")], NOW)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await fail()

    assert await inbox.unread(store, 1, "ada") == (0, 0)
    assert await insert(store, [message("ada")]) == [Touched(1, "ada", 1, 1)]


async def test_the_pinned_pool_runs_the_statement_too(store: Database) -> None:
    async with store.queue.transaction() as tx:
        touched = await inbox.insert_messages(tx, [message("ada"), message("ada")], NOW)

    assert touched == [Touched(1, "ada", 2, 2)]


async def test_two_transactions_with_the_same_message_insert_it_once(store: Database) -> None:
    new = message("ada")
    async with store.transaction() as first:
        await inbox.insert_messages(first, [new], NOW)
        second = asyncio.create_task(insert(store, [new, message("bob")]))
        await somebody_waits(store)

    assert [t.subscriber_id for t in await second] == ["bob"]
    assert await inbox.unread(store, 1, "ada") == (1, 1)


async def somebody_waits(db: Database) -> None:
    """Return when a session of this database waits for a lock."""
    async with asyncio.timeout(10):
        while not await db.queue.value(WAITING):  # noqa: ASYNC110 - there is no event
            await asyncio.sleep(0)


async def test_versions_have_no_gap_and_commit_in_order_with_many_writers(store: Database) -> None:
    people = ["ada", "bob", "cem", "dan"]
    chance = random.Random(7)
    seen: dict[str, list[int]] = {person: [] for person in people}

    async def write(_: int) -> None:
        several = [message(chance.choice(people)) for _ in range(6)]
        for t in await insert(store, several):
            seen[t.subscriber_id].append(t.version)

    async def mark(_: int) -> None:
        async with store.transaction() as tx:
            await inbox.read_all(tx, 1, chance.choice(people), NOW)

    async with asyncio.TaskGroup() as group:
        for number in range(60):
            group.create_task(write(number))
            group.create_task(mark(number))

    for person in people:
        log = await changes(store, person)
        version, unread = await inbox.unread(store, 1, person)
        assert [row[0] for row in log] == list(range(1, version + 1))
        assert log[-1][3] == unread == await really_unread(store, person)


REALLY = Query(
    "test_really_unread",
    "SELECT count(*) FROM inbox_messages WHERE project = 1 AND subscriber_id = $1 "
    "AND read_at IS NULL AND archived_at IS NULL",
)


async def really_unread(db: Database, person: str) -> int:
    count: int = await db.value(REALLY, person)
    return count


async def test_writers_that_name_the_same_inboxes_in_any_order_never_deadlock(
    store: Database,
) -> None:
    people = [f"p{n}" for n in range(8)]
    ids = {person: uuid7s(NOW, 4) for person in people}
    chance = random.Random(3)

    async def write() -> None:
        same = [message(person, job_id) for person in people for job_id in ids[person]]
        chance.shuffle(same)
        await insert(store, same)

    async with asyncio.TaskGroup() as group:
        for _ in range(12):
            group.create_task(write())

    for person in people:
        assert await inbox.unread(store, 1, person) == (4, 4)


async def test_read_all_waits_for_a_writer_and_then_reads_its_message_too(
    store: Database,
) -> None:
    await insert(store, [message("ada")])
    async with store.transaction() as tx:
        await inbox.insert_messages(tx, [message("ada")], NOW)
        reading = asyncio.create_task(read_all(store, "ada"))
        await somebody_waits(store)

    assert await reading == 2
    assert await inbox.unread(store, 1, "ada") == (3, 0)


async def read_all(db: Database, person: str) -> int:
    async with db.transaction() as tx:
        return await inbox.read_all(tx, 1, person, NOW)


async def test_read_all_of_a_read_inbox_makes_no_version(store: Database) -> None:
    await insert(store, [message("ada")])

    assert await read_all(store, "ada") == 1
    assert await read_all(store, "ada") == 0
    assert await read_all(store, "nobody") == 0
    assert [row[1] for row in await changes(store, "ada")] == ["new", "read_all"]


async def test_a_written_message_logs_each_kind_with_a_version_of_its_own(store: Database) -> None:
    new = message("ada")
    await insert(store, [new])
    async with store.transaction() as tx:
        state = await inbox.lock_message(tx, 1, "ada", new.job_id)
        assert state == State(1, 1, None, None, is_todo=False)
        after = State(3, 0, NOW, NOW, is_todo=False)
        version = await inbox.write_message(
            tx, 1, "ada", new.job_id, after=after, kinds=["read", "archived"], at=NOW
        )

    assert version == 3
    assert [row[:2] for row in await changes(store, "ada")] == [
        (1, "new"), (2, "read"), (3, "archived"),
    ]  # fmt: skip


async def test_a_message_of_another_inbox_cannot_be_locked(store: Database) -> None:
    new = message("ada")
    await insert(store, [new, message("bob")])

    assert await inbox.lock_message(store, 1, "bob", new.job_id) is None
    assert await inbox.lock_message(store, 2, "ada", new.job_id) is None


async def test_many_inboxes_are_read_in_one_query_each_from_its_own_version(
    store: Database,
) -> None:
    await insert(store, [message("ada"), message("ada"), message("bob"), message("cem")])

    found = await inbox_changes.changes_after(
        store, [Cursor(1, "ada", 1), Cursor(1, "bob", 0), Cursor(1, "cem", 1), Cursor(1, "x", 0)]
    )

    assert [(c.subscriber_id, c.version, c.kind) for c in found] == [
        ("ada", 2, "new"), ("bob", 1, "new"),
    ]  # fmt: skip
    assert all(c.body == "body" and c.created_at == NOW for c in found)


async def test_changes_come_in_order_and_no_more_than_asked(store: Database) -> None:
    await insert(store, [message("ada") for _ in range(5)])

    found: list[Change] = await inbox_changes.changes_after(store, [Cursor(1, "ada", 0)], limit=3)

    assert [c.version for c in found] == [1, 2, 3]


async def test_only_inboxes_that_moved_are_told_with_their_version(store: Database) -> None:
    await insert(store, [message("ada"), message("bob")])

    moved = await inbox_changes.moved(
        store, [Cursor(1, "ada", 1), Cursor(1, "bob", 0), Cursor(1, "new", 0), Cursor(1, "old", 9)]
    )

    assert sorted(moved, key=lambda c: c.subscriber_id) == [
        Cursor(1, "bob", 1), Cursor(1, "old", 0),
    ]  # fmt: skip


async def test_a_reader_is_told_where_its_inbox_stands_and_what_comes_next(
    store: Database,
) -> None:
    await insert(store, [message("ada"), message("ada")])

    first, behind, unknown = await inbox_changes.starts(
        store, [(1, "ada", None), (1, "ada", 1), (1, "nobody", 7)]
    )

    assert (first.version, first.unread, first.next) == (2, 2, None)
    assert (behind.after, behind.next) == (1, 2)
    assert (unknown.version, unknown.unread, unknown.next) == (0, 0, None)


async def test_a_deleted_inbox_leaves_nothing_behind(store: Database) -> None:
    await insert(store, [message("ada"), message("bob")])
    async with store.transaction() as tx:
        await inbox.delete_inbox(tx, 1, "ada")

    assert await inbox.unread(store, 1, "ada") == (0, 0)
    assert await changes(store, "ada") == []
    assert await really_unread(store, "ada") == 0
    assert await inbox.unread(store, 1, "bob") == (1, 1)


async def page(db: Database, **asked: object) -> tuple[int, list[object]]:
    wanted: dict[str, object] = {"chosen": "all", "pattern": None, "limit": 20, "offset": 0}
    rows = await inbox.messages(db, 1, "ada", **(wanted | asked))  # type: ignore[arg-type]
    return rows[0]["total"], [row["id"] for row in rows if row["id"] is not None]


async def test_the_filter_and_the_words_apply_before_the_limit_and_the_total_knows(
    store: Database,
) -> None:
    older = datetime(2026, 3, 2, 11, 0, tzinfo=NOW.tzinfo)
    plain, special = uuid7(older), uuid7(NOW)
    async with store.transaction() as tx:
        await inbox.insert_messages(tx, [message("ada", plain)], older)
        await inbox.insert_messages(
            tx, [NewMessage(special, 1, "ada", "100% off", "bell", subject="Sale_now")], NOW
        )
        after = State(3, 1, NOW, None, is_todo=True)
        await inbox.write_message(tx, 1, "ada", special, after=after, kinds=["read"], at=NOW)

    assert await page(store) == (2, [special, plain])
    assert await page(store, limit=1) == (2, [special])
    assert await page(store, limit=1, chosen="unread") == (1, [plain])
    assert await page(store, chosen="todo") == (1, [special])
    assert await page(store, pattern=r"%\%%") == (1, [special])
    assert await page(store, pattern=r"%e\_n%") == (1, [special])
    assert await page(store, offset=9) == (2, [])
