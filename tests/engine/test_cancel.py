"""Cancel: after a success no provider call starts; and what can be done with a job that has ended."""

import asyncio

import pytest

from tests.support.scripted import Scripted
from tests.support.world import world
from tocsin.domain.errors import Conflict, NotFound
from tocsin.domain.outcome import ContentRejected, Transient
from tocsin.service import jobs
from tocsin.service.principal import ProjectKey


async def test_a_scheduled_job_that_is_cancelled_is_never_sent(database_url: str) -> None:
    async with world(database_url, Scripted()) as w:
        job = await w.job(
            channel="email", to="a@example.com", body="x", scheduled_at="2026-03-02T13:00:00Z"
        )
        await jobs.cancel(w.app, w.who, job)

        await w.tick(hours=2)
        await w.idle()

        assert w.provider().sent == []
        assert await w.status(job) == "cancelled"


async def test_a_ready_job_that_is_cancelled_is_never_sent(database_url: str) -> None:
    async with world(database_url, Scripted(), workers=0) as w:
        job = await w.job(channel="email", to="a@example.com", body="x")
        await jobs.cancel(w.app, w.who, job)
        assert await w.status(job) == "cancelled"

        w.start_worker()
        await w.idle()

        assert w.provider().sent == []
        assert await w.status(job) == "cancelled"


async def test_a_cancel_that_comes_during_delivery_says_so_and_stops_the_next_attempt(
    database_url: str,
) -> None:
    async with world(database_url, Scripted(Transient("down"))) as w:
        w.provider().hold()
        job = await w.job(channel="email", to="a@example.com", body="x")
        await w.provider().begun.acquire()

        with pytest.raises(Conflict) as refused:
            await jobs.cancel(w.app, w.who, job)
        w.provider().release()
        await w.settled()
        await w.tick(seconds=40)
        await w.idle()

        assert refused.value.code == "job_in_delivery"
        assert w.provider().sent == [job]
        assert await w.status(job) == "cancelled"


async def test_a_sent_job_cannot_be_cancelled(database_url: str) -> None:
    async with world(database_url, Scripted()) as w:
        job = await w.job(channel="email", to="a@example.com", body="x")
        await w.idle()

        with pytest.raises(Conflict):
            await jobs.cancel(w.app, w.who, job)


async def test_a_cancelled_job_frees_its_key(database_url: str) -> None:
    async with world(database_url, Scripted(), workers=0) as w:
        job = await w.job(key="k", channel="email", to="a@example.com", body="x")
        await jobs.cancel(w.app, w.who, job)

        again = await w.job(key="k", channel="email", to="a@example.com", body="x")
        w.start_worker()
        await w.idle()

        assert w.provider().sent == [again]


async def test_a_failed_job_can_be_tried_again_with_all_its_attempts(database_url: str) -> None:
    async with world(database_url, Scripted(ContentRejected("spam"))) as w:
        job = await w.job(channel="email", to="a@example.com", body="x")
        await w.idle()
        assert await w.status(job) == "failed"

        retried = await jobs.retry(w.app, w.who, job)
        await w.idle()

        assert retried.job.status == "retry"
        assert w.provider().sent == [job, job]
        assert await w.status(job) == "sent"


async def test_a_job_of_another_project_does_not_exist(database_url: str) -> None:
    async with world(database_url, Scripted()) as w:
        job = await w.job(channel="email", to="a@example.com", body="x")
        stranger = ProjectKey(w.who.number + 1, "other", (), None)

        for call in (jobs.get, jobs.cancel, jobs.retry):
            with pytest.raises(NotFound):
                await call(w.app, stranger, job)


async def test_a_cancelled_job_that_is_tried_again_keeps_its_time(database_url: str) -> None:
    async with world(database_url, Scripted()) as w:
        job = await w.job(
            channel="email", to="a@example.com", body="x", scheduled_at="2026-03-02T13:00:00Z"
        )
        await jobs.cancel(w.app, w.who, job)
        await jobs.retry(w.app, w.who, job)
        await w.idle()
        assert w.provider().sent == []

        await w.tick(hours=1)
        await w.idle()

        assert w.provider().sent == [job]


async def test_two_cancels_at_once_agree(database_url: str) -> None:
    async with world(database_url, Scripted()) as w:
        for _ in range(30):
            job = await w.job(channel="email", to="a@example.com", body="x")
            both = [jobs.cancel(w.app, w.who, job) for _ in range(2)]
            answers = await asyncio.gather(*both, return_exceptions=True)
            await w.idle()

            cancelled = await w.status(job) == "cancelled"
            assert {not isinstance(a, Exception) for a in answers} == {cancelled}
            assert (job in w.provider().sent) != cancelled
