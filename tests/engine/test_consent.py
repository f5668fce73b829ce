"""Consent, read immediately before the send: suppressions, preferences, cancelled projects, expiry."""

from tests.support.scripted import Scripted
from tests.support.world import world
from tocsin.domain.job import State
from tocsin.domain.outcome import RecipientPermanent
from tocsin.service import subscribers
from tocsin.store import projects


async def test_a_dead_mailbox_is_suppressed_for_every_later_send(database_url: str) -> None:
    dead = RecipientPermanent("no_such_mailbox", suppress=True)
    async with world(database_url, Scripted(dead)) as w:
        first = await w.job(channel="email", to="Gone@example.com", body="x")
        await w.idle()
        await w.job(channel="email", to="gone@example.com", body="x")
        await w.idle()

        assert w.provider().sent == [first]
        assert await w.counts() == {State.FAILED: 1, State.SKIPPED: 1}


async def test_an_opt_out_after_the_enqueue_still_stops_the_send(database_url: str) -> None:
    async with world(database_url, Scripted(), workers=0) as w:
        await w.subscribers(["a", "b"])
        await w.send(channel="email", subscriber_id="a", body="x")
        code = await w.job(channel="email", subscriber_id="b", body="x", transactional=True)
        await w.prefer("a", "email", enabled=False)
        await w.prefer("b", "*", enabled=False)

        w.start_worker()
        await w.idle()

        assert w.provider().sent == [code]


async def test_an_opt_out_of_everything_is_not_undone_by_an_opt_in_to_a_topic(
    database_url: str,
) -> None:
    async with world(database_url, Scripted()) as w:
        await w.subscribers(["a"])
        await w.prefer("a", "*", enabled=False)
        await w.prefer("a", "email", topic="news", enabled=True)

        await w.send(channel="email", subscriber_id="a", topic="news", body="x")
        await w.batch(channel="email", subscribers=["a"], topic="news", body="x")
        await w.idle()

        assert w.provider().sent == []


async def test_a_message_that_is_too_late_is_not_sent(database_url: str) -> None:
    async with world(database_url, Scripted(), workers=0) as w:
        job = await w.job(
            channel="email", to="a@example.com", body="code", expires_at="2026-03-02T12:05:00Z"
        )
        await w.tick(minutes=6)
        w.start_worker()
        await w.idle()

        assert w.provider().sent == []
        assert await w.status(job) == "failed"


async def test_what_a_deleted_project_left_is_not_sent(database_url: str) -> None:
    async with world(database_url, Scripted(), workers=0) as w:
        await w.send(channel="email", to="a@example.com", body="x")
        await projects.delete_project(w.db, "acme", w.clock.now())

        w.start_worker()
        await w.idle()

        assert w.provider().sent == []
        assert await w.counts() == {State.CANCELLED: 1}


async def test_what_was_enqueued_for_a_person_who_was_deleted_is_not_sent(
    database_url: str,
) -> None:
    async with world(database_url, Scripted(), workers=0) as w:
        await w.subscribers(["a", "b"])
        gone = await w.job(channel="email", subscriber_id="a", body="x")
        await w.batch(channels=["email", "in_app"], subscribers=["a", "b"], body="x")
        w.clock.advance(seconds=1)
        await subscribers.delete(w.app, w.who, "a")
        await w.subscribers(["a"])
        w.clock.advance(seconds=1)
        after = await w.job(channel="email", subscriber_id="a", body="x")

        w.start_worker()
        await w.idle()

        assert gone not in w.provider().sent
        assert after in w.provider().sent
        assert len(w.provider().sent) == 2
        assert await w.inbox("a") == []


async def test_a_person_stored_after_a_send_to_their_address_still_gets_it(
    database_url: str,
) -> None:
    async with world(database_url, Scripted(), workers=0) as w:
        job = await w.job(channel="email", to="a@example.com", subscriber_id="a", body="x")
        w.clock.advance(seconds=1)
        await w.subscribers(["a"])
        w.start_worker()
        await w.idle()

        assert w.provider().sent == [job]


async def test_a_suppressed_address_gets_no_copy_either(database_url: str) -> None:
    dead = RecipientPermanent("no_such_mailbox", suppress=True)
    async with world(database_url, Scripted(dead)) as w:
        await w.send(channel="email", to="gone@example.com", body="x")
        await w.idle()
        copies = ["Gone@example.com", "here@example.com"]
        await w.send(channel="email", to="a@example.com", cc=copies, body="x")
        await w.idle()

        (message,) = w.provider().calls[1].messages
        assert message.cc == ("here@example.com",)  # type: ignore[union-attr]
