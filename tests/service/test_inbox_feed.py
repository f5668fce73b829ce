"""The feed under a storm: every follower gets every version once, whatever is lost on the way."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from tests.faces.http.conftest import opened_app
from tests.support.clock import MovableClock
from tocsin.domain.errors import Unavailable
from tocsin.domain.ids import uuid7
from tocsin.service import inbox_feed
from tocsin.service.app import App
from tocsin.service.inbox_feed import Change, Feed, Reader
from tocsin.store import inbox, inbox_changes
from tocsin.store.inbox_changes import hint_of
from tocsin.store.pool import Database

PEOPLE = ("ada", "bob", "cem")
BOUND_S = 30.0


class Follower:
    """What one client saw; `seen` grows over its reconnects."""

    def __init__(self, person: str) -> None:
        self.person = person
        self.seen: list[int] = []
        self.version = 0
        self.unread = 0
        self.resets = 0
        self.told = asyncio.Event()
        self.reader: Reader | None = None

    def changed(self, changes: Sequence[Change], version: int, unread: int) -> None:
        self.seen += [change.version for change in changes]
        self.version, self.unread = version, unread
        self.told.set()

    def reset(self, version: int, unread: int) -> None:
        self.resets += 1
        self.version, self.unread = version, unread
        self.told.set()

    async def until(self, version: int) -> None:
        async with asyncio.timeout(BOUND_S):
            while self.version < version:
                self.told.clear()
                await self.told.wait()


@pytest.fixture
async def app(db: Database, clock: MovableClock) -> AsyncIterator[App]:
    async with opened_app(db, clock) as opened:
        yield opened


@pytest.fixture
async def feed(app: App) -> AsyncIterator[Feed]:
    feed = Feed(app, sweep_s=0.05)
    feed.start()
    yield feed
    await feed.stop()


async def deliver(app: App, *people: str) -> None:
    """Without a hint."""
    new = [inbox.NewMessage(uuid7(app.clock.now()), 1, person, "x", "bell") for person in people]
    async with app.db.transaction() as tx:
        await inbox.insert_messages(tx, new, app.clock.now())


async def test_every_follower_sees_every_version_once_through_reconnects_and_lost_hints(
    app: App, feed: Feed
) -> None:
    chance = random.Random(11)
    followers = [Follower(person) for person in PEOPLE for _ in range(5)]
    for follower in followers:
        follower.reader = feed.join(1, follower.person, 0, follower)

    async def write() -> None:
        for _ in range(25):
            people = chance.choices(PEOPLE, k=4)
            await deliver(app, *people)
            app.notifier.hint(*(hint_of(1, person) for person in people if chance.random() < 0.5))

    async def reconnect(follower: Follower) -> None:
        for _ in range(12):
            follower.told.clear()
            async with asyncio.timeout(BOUND_S):
                await follower.told.wait()
            assert follower.reader is not None
            feed.leave(follower.reader)
            last = follower.seen[-1] if follower.seen else 0
            follower.reader = feed.join(1, follower.person, last, follower)

    async with asyncio.TaskGroup() as group:
        for _ in range(4):
            group.create_task(write())
        for follower in followers[::2]:
            group.create_task(reconnect(follower))

    for follower in followers:
        version, unread = await inbox.unread(app.db, 1, follower.person)
        await follower.until(version)
        assert follower.seen == list(range(1, version + 1))
        assert (follower.unread, follower.resets) == (unread, 0)


async def test_a_database_that_is_away_for_a_while_loses_nothing(
    app: App, feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inbox_feed, "RETRY_S", 0.01)
    follower = Follower("ada")
    feed.join(1, "ada", 0, follower)
    async with asyncio.timeout(BOUND_S):
        await follower.told.wait()
    real = inbox_changes.changes_after
    failures = asyncio.Event()

    async def away(*_: Any) -> list[Change]:
        failures.set()
        raise Unavailable("database_lost", "away")

    monkeypatch.setattr(inbox_changes, "changes_after", away)
    await deliver(app, "ada")
    app.notifier.hint(hint_of(1, "ada"))
    async with asyncio.timeout(BOUND_S):
        await failures.wait()
    monkeypatch.setattr(inbox_changes, "changes_after", real)

    await follower.until(1)
    assert follower.seen == [1]


async def test_a_follower_that_is_far_behind_gets_all_of_it_in_parts(app: App, feed: Feed) -> None:
    for _ in range(5):
        await deliver(app, *["ada"] * 60)
    follower = Follower("ada")
    feed.join(1, "ada", 0, follower)

    await follower.until(300)

    assert follower.seen == list(range(1, 301))


async def test_one_that_catches_up_repeats_nothing_for_one_that_is_there(
    app: App, feed: Feed
) -> None:
    await deliver(app, *["ada"] * 5)
    there, late = Follower("ada"), Follower("ada")
    feed.join(1, "ada", 0, there)
    await there.until(5)
    await deliver(app, "ada")
    feed.join(1, "ada", 2, late)
    app.notifier.hint(hint_of(1, "ada"))
    await there.until(6)
    await late.until(6)

    assert there.seen == [1, 2, 3, 4, 5, 6]
    assert late.seen == [3, 4, 5, 6]


async def test_a_follower_that_is_too_far_behind_is_told_to_fetch_the_list(
    app: App, feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inbox_feed, "REPLAY_MAX", 10)
    await deliver(app, *["ada"] * 12)
    far, near = Follower("ada"), Follower("ada")
    feed.join(1, "ada", 1, far)
    feed.join(1, "ada", 2, near)

    await far.until(12)
    await near.until(12)

    assert (far.resets, far.seen) == (1, [])
    assert (near.resets, near.seen) == (0, list(range(3, 13)))


async def test_one_query_reads_all_inboxes_that_were_hinted(
    app: App, feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    followers = [Follower(f"p{number}") for number in range(50)]
    for follower in followers:
        feed.join(1, follower.person, None, follower)
    for follower in followers:
        async with asyncio.timeout(BOUND_S):
            await follower.told.wait()
    queries = 0
    real = inbox_changes.changes_after

    async def counted(*args: Any) -> list[Change]:
        nonlocal queries
        queries += 1
        return await real(*args)

    monkeypatch.setattr(inbox_changes, "changes_after", counted)
    await deliver(app, *(follower.person for follower in followers))
    app.notifier.hint(*(hint_of(1, follower.person) for follower in followers))
    for follower in followers:
        await follower.until(1)

    assert queries <= 3


async def test_who_left_hears_nothing_more_and_leaving_twice_is_harmless(
    app: App, feed: Feed
) -> None:
    gone, here = Follower("ada"), Follower("ada")
    reader = feed.join(1, "ada", 0, gone)
    feed.join(1, "ada", 0, here)
    await deliver(app, "ada")
    app.notifier.hint(hint_of(1, "ada"))
    await gone.until(1)
    feed.leave(reader)
    feed.leave(reader)
    await deliver(app, "ada")
    app.notifier.hint(hint_of(1, "ada"))
    await here.until(2)

    assert gone.seen == [1]
    assert feed.followed(1, "ada") == 1
