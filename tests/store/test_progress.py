"""What a lane came to lately: counted from the rollups, and explained by the newest attempts."""

from datetime import timedelta

import structlog

from tests.support.postgres import run_on
from tests.support.scripted import Scripted
from tests.support.world import World, world
from tocsin.domain.outcome import ContentRejected, Transient, Unknown
from tocsin.service.doctor import examine
from tocsin.settings import parse
from tocsin.store import progress
from tocsin.store.progress import Recent

MINUTES = timedelta(minutes=10)


async def told(w: World) -> tuple[Recent, dict[int, progress.Reason]]:
    """What the email lane came to, and the reasons of all lanes."""
    now = w.clock.now()
    lane = next(lane.id for lane in w.lanes if lane.channel == "email")
    found = await progress.recent(w.db, since=now - MINUTES, now=now)
    return found[lane], await progress.reasons(w.db, since=now - MINUTES)


async def test_what_was_sent_and_what_failed_is_counted_and_the_commonest_code_is_named(
    database_url: str,
) -> None:
    answers = [Transient("a_down"), Transient("b_down"), Transient("b_down")]
    async with world(database_url, Scripted(*answers)) as w:
        for number in range(5):
            job = await w.job(channel="email", to=f"a{number}@example.com", body="Hello")
            await w.idle()

        recent, reasons = await told(w)
        await w.tick(minutes=11)
        await w.idle()
        later, _ = await told(w)

    assert (recent.sent, recent.bad, recent.parked, recent.held_since) == (2, 3, 0, None)
    (reason,) = reasons.values()
    assert (reason.lane, reason.code) == (recent.lane, "b_down")
    assert job.version == 7
    # What is older than ten minutes is history; the retries have gone out meanwhile.
    assert (later.sent, later.bad) == (3, 0)


async def test_a_final_failure_has_a_reason_too(database_url: str) -> None:
    async with world(database_url, Scripted(ContentRejected("http_422"))) as w:
        job = await w.job(channel="email", to="a@example.com", body="Hello")
        await w.idle()

        recent, reasons = await told(w)

    assert recent.bad == 1
    assert reasons[recent.lane].job == str(job)


async def test_calls_that_are_kept_to_be_repeated_are_counted_though_nothing_ended(
    database_url: str,
) -> None:
    provider = Scripted(Unknown("http_502"), batch_max=100, dedupes=True)
    async with world(database_url, provider) as w:
        people = [f"s{number}" for number in range(4)]
        await w.subscribers(people)
        await w.batch(channel="email", subscribers=people, body="Hello")
        await w.provider().begun.acquire()
        await w.settled()

        recent, _ = await told(w)
        await w.tick(seconds=60)
        await w.idle()

    assert (recent.sent, recent.bad, recent.parked) == (0, 0, 4)


async def test_a_call_that_does_not_come_back_has_been_under_way_since_it_was_claimed(
    database_url: str,
) -> None:
    async with world(database_url, Scripted()) as w:
        w.provider().hold()
        claimed_at = w.clock.now()
        await w.job(channel="email", to="a@example.com", body="Hello")
        await w.provider().begun.acquire()

        recent, _ = await told(w)
        w.provider().release()
        await w.idle()

    assert recent.held_since == claimed_at


async def test_the_doctor_tells_of_a_provider_that_takes_nothing(database_url: str) -> None:
    down = [Transient("smtp_refused")] * 3
    with structlog.testing.capture_logs():
        async with world(database_url, Scripted(*down)) as w:
            for number in range(3):
                await w.job(channel="email", to=f"a{number}@example.com", body="Hello")
            await w.idle()
            # The doctor goes by the database's clock; the world's is another.
            await run_on(
                database_url,
                "UPDATE tocsin.rollups SET minute = date_trunc('minute', now())",
                "UPDATE tocsin.outcomes SET at = now()",
            )
            found = [f async for f in examine(parse({}, ""), database_url)]

    (failing,) = [f for f in found if f.code == "provider_failing"]
    assert failing.severity == "critical"
    assert "3 of 3 attempts of email (scripted)" in failing.message
    assert "smtp_refused" in failing.message
    assert "example.com" not in failing.message
