"""Leases: what a crash, a pause and a stop leave behind, and what the next worker makes of it."""

import asyncio

from tests.support.scripted import Scripted
from tests.support.world import world
from tocsin.domain.job import State
from tocsin.domain.outcome import Accepted, Misconfigured, Throttled, Transient, Unknown
from tocsin.engine.worker import Worker
from tocsin.store.query import Query

LISTED = Query("listed", "SELECT job_ids FROM leases ORDER BY id")
RENAME = Query("rename", "UPDATE subscribers SET first_name = 'Eve'")


def kill(worker: Worker) -> None:
    """As SIGKILL would: every task ends where it stands, nothing is written."""
    for claimer in worker.claimers:
        for task in (*claimer.tasks, claimer.loop.task):
            if task is not None:
                task.cancel()
    for loop in worker.loops:
        if loop.task is not None:
            loop.task.cancel()
    assert worker.settler.task is not None
    worker.settler.task.cancel()


async def test_a_crash_after_the_send_ends_in_unknown_and_one_more_send(database_url: str) -> None:
    async with world(database_url, Scripted()) as w:
        w.provider().hold()
        job = await w.job(channel="email", to="a@example.com", body="Hello")
        await w.provider().begun.acquire()
        kill(w.workers.pop())
        w.provider().release()

        await w.tick(seconds=31)
        w.start_worker()
        await w.idle()
        await w.tick(seconds=5)
        await w.idle()

        assert w.provider().sent == [job, job]
        assert await w.counts() == {State.SENT: 1, State.UNKNOWN: 1}
        assert await w.status(job) == "sent"


async def test_a_message_that_must_not_go_twice_stays_unknown_after_a_crash(
    database_url: str,
) -> None:
    async with world(database_url, Scripted()) as w:
        w.provider().hold()
        job = await w.job(
            channel="email",
            to="a@example.com",
            body="Hello",
            tags=[{"name": "category", "value": "campaign"}],
        )
        await w.provider().begun.acquire()
        kill(w.workers.pop())
        w.provider().release()

        await w.tick(seconds=31)
        w.start_worker()
        await w.idle()

        assert w.provider().sent == [job]
        assert await w.status(job) == "unknown"


async def test_a_crashed_call_of_a_deduping_provider_is_repeated_byte_for_byte_under_its_key(
    database_url: str,
) -> None:
    async with world(database_url, Scripted(batch_max=100, dedupes=True)) as w:
        people = [f"s{i}" for i in range(30)]
        await w.subscribers(people, first_name="Ada")
        w.provider().hold()
        await w.batch(channel="email", subscribers=people, body="Hello {{first_name}}")
        await w.provider().begun.acquire()
        kill(w.workers.pop())
        await w.db.execute(RENAME)
        w.provider().release()

        await w.tick(seconds=31)
        w.start_worker()
        await w.idle()

        first, second = w.provider().calls
        assert (first.key, first.frozen) == (second.key, second.frozen)
        assert await w.counts() == {State.SENT: 30}


async def test_a_lease_taken_over_holds_no_more_than_the_calls_that_may_have_left(
    database_url: str,
) -> None:
    """What never left is given back once: after a second crash it may be in another lease by then."""
    async with world(database_url, Scripted(dedupes=True, in_flight_max=1), workers=0) as w:
        people = ["a", "b", "c"]
        await w.subscribers(people)
        w.provider().hold()
        await w.batch(channel="email", subscribers=people, body="Hello")
        for lane in (c.lane for c in w.start_worker().claimers):
            lane.claim_size = 10
        await w.provider().begun.acquire()
        (listed,) = await w.db.rows(LISTED)
        kill(w.workers.pop())
        w.clock.advance(seconds=31)
        await w.start_worker().reaper.reap_once()
        await w.provider().begun.acquire()
        first, *_ = await w.db.rows(LISTED)
        assert (len(listed[0]), first[0]) == (3, w.provider().sent[:1])

        kill(w.workers.pop())
        w.provider().release()
        await w.tick(seconds=31)
        w.start_worker()
        await w.idle()

        assert len(set(w.provider().sent)) == 3
        assert await w.counts() == {State.SENT: 3}


async def test_an_unknown_answer_of_a_deduping_provider_is_asked_again_under_the_same_key(
    database_url: str,
) -> None:
    answers = (Unknown("timeout"), Transient("http_500"))
    async with world(database_url, Scripted(*answers, dedupes=True)) as w:
        job = await w.job(channel="email", to="a@example.com", body="Hello")
        for seconds in (3, 300):
            await w.provider().begun.acquire()
            await w.settled()
            await w.tick(seconds=seconds)
            await w.workers[0].reaper.reap_once()
        await w.idle()

        assert len({(call.key, call.frozen) for call in w.provider().calls}) == 1
        assert len(w.provider().calls) == 3
        assert await w.status(job) == "sent"


async def test_a_429_pauses_the_lane_and_costs_no_attempt(database_url: str) -> None:
    async with world(database_url, Scripted(Throttled(7.0))) as w:
        first = await w.job(channel="email", to="a@example.com", body="Hello")
        await w.provider().begun.acquire()
        await w.settled()
        second = await w.job(channel="email", to="b@example.com", body="Hello")
        await w.tick(seconds=6.9)
        assert len(w.provider().calls) == 1

        await w.tick(seconds=0.2)
        await w.idle()

        assert w.provider().sent == [first, first, second]
        assert await w.counts() == {State.SENT: 2}
        assert await w.attempts(first) == 0


async def test_a_provider_that_cannot_be_reached_costs_no_attempt_and_work_resumes(
    database_url: str,
) -> None:
    async with world(database_url, Scripted(*[Transient("refused", down=True)] * 6)) as w:
        first = await w.job(channel="email", to="a@example.com", body="Hello")
        for _ in range(6):
            await w.provider().begun.acquire()
            await w.settled()
            await w.tick(seconds=6)
        await w.idle()

        assert w.provider().sent == [first] * 7
        assert await w.counts() == {State.SENT: 1}
        assert await w.attempts(first) == 0


async def test_a_refused_account_fails_no_job_and_work_resumes(database_url: str) -> None:
    async with world(database_url, Scripted(Misconfigured("bad_key", "the key is refused"))) as w:
        job = await w.job(channel="email", to="a@example.com", body="Hello")
        await w.provider().begun.acquire()
        await w.settled()
        assert await w.status(job) == "pending"

        await w.tick(seconds=31)
        await w.idle()

        assert await w.status(job) == "sent"


async def test_a_stop_gives_back_what_was_not_started_without_using_an_attempt(
    database_url: str,
) -> None:
    async with world(database_url, Scripted(in_flight_max=1)) as w:
        people = [f"s{i}" for i in range(20)]
        await w.subscribers(people)
        w.provider().hold()
        await w.batch(channel="email", subscribers=people, body="Hello")
        await w.provider().begun.acquire()

        stopping = asyncio.create_task(w.workers.pop().stop())
        await asyncio.sleep(0)
        w.provider().release()
        await stopping
        assert len(w.provider().calls) == 1
        assert await w.counts() == {State.SENT: 1}

        w.start_worker()
        await w.idle()

        assert len(w.provider().calls) == 20
        assert len(set(w.provider().sent)) == 20
        assert await w.counts() == {State.SENT: 20}


async def test_a_worker_that_outlived_its_lease_does_not_send_its_twin_again(
    database_url: str,
) -> None:
    async with world(database_url, Scripted()) as w:
        slow = w.workers[0]
        w.provider().hold()
        job = await w.job(channel="email", to="a@example.com", body="Hello")
        await w.provider().begun.acquire()
        await slow.reaper.stop()
        w.clock.advance(seconds=31)
        rival = w.start_worker()
        await rival.reaper.reap_once()
        w.provider().release()
        await w.settled()

        await w.tick(seconds=5)
        await w.idle()

        assert w.provider().sent == [job]
        assert await w.status(job) == "sent"


async def test_accepted_calls_settle_whatever_the_order_in_which_they_end(
    database_url: str,
) -> None:
    answers = [Accepted(str(n)) for n in range(50)]
    async with world(database_url, Scripted(*answers), workers=2) as w:
        people = [f"s{i}" for i in range(50)]
        await w.subscribers(people)

        await w.batch(channel="email", subscribers=people, body="Hello")
        await w.idle()

        assert sorted(w.provider().sent) == sorted(set(w.provider().sent))
        assert await w.counts() == {State.SENT: 50}
