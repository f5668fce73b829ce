"""Who goes first: strict classes, and projects by turns within one."""

from tests.support.scripted import Scripted
from tests.support.world import world


async def test_a_critical_message_passes_a_backlog(database_url: str) -> None:
    async with world(database_url, Scripted(in_flight_max=1), workers=0) as w:
        people = [f"s{i}" for i in range(300)]
        await w.subscribers(people)
        await w.batch(channel="email", subscribers=people, body="news")
        code = await w.job(channel="email", to="a@example.com", body="code", priority="critical")

        w.start_worker()
        await w.idle()

        assert w.provider().sent[0] == code


async def test_a_second_project_does_not_wait_for_the_first_ones_backlog(
    database_url: str,
) -> None:
    async with world(database_url, Scripted(in_flight_max=1), workers=0) as w:
        people = [f"s{i}" for i in range(1000)]
        await w.subscribers(people)
        await w.batch(channel="email", subscribers=people, body="news")
        other = await w.project("other")
        theirs = [
            await w.job(who=other, channel="email", to="b@example.com", body="x", priority="bulk")
            for _ in range(20)
        ]

        w.start_worker()
        await w.idle()

        last = max(w.provider().sent.index(job) for job in theirs)
        assert last < 2 * len(theirs) + 2


async def test_a_project_of_weight_three_gets_three_turns(database_url: str) -> None:
    async with world(database_url, Scripted(in_flight_max=1), workers=0) as w:
        heavy = await w.project("heavy", weight=3)
        light = await w.project("light")
        await w.subscribers([f"s{i}" for i in range(60)], who=heavy)
        await w.subscribers([f"s{i}" for i in range(60)], who=light)
        people = [f"s{i}" for i in range(60)]
        await w.batch(who=light, channel="email", subscribers=people, body="light")
        await w.batch(who=heavy, channel="email", subscribers=people, body="heavy")

        w.start_worker()
        await w.idle()

        texts = [call.messages[0].text for call in w.provider().calls[:40]]  # type: ignore[union-attr]
        assert texts.count("heavy") == 30
