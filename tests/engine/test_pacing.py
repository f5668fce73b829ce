"""Pacing: exact over all replicas, whatever they ask for and give back."""

from datetime import timedelta

from tests.support.clock import MovableClock
from tests.support.scripted import Scripted
from tests.support.world import world
from tocsin.store import lanes, pacing
from tocsin.store.pool import Database


async def paced_lane(db: Database, clock: MovableClock, calls_per_s: float) -> int:
    return await lanes.ensure_lane(
        db,
        channel="email",
        provider="scripted",
        account="default",
        now=clock.now(),
        calls_per_s=calls_per_s,
    )


async def test_grants_in_any_window_are_at_most_rate_times_window_plus_burst(
    db: Database, clock: MovableClock
) -> None:
    lane = await paced_lane(db, clock, 50.0)
    granted = [0]
    for _ in range(200):
        got = await pacing.grant(db, lane=lane, calls=7, now=clock.now())
        granted.append(got.calls)
        clock.advance(milliseconds=10)

    assert sum(granted) == 5 + 2 * 50 - 1
    assert max(sum(granted[at : at + 100]) for at in range(100)) <= 50 + 5


async def test_a_lane_without_room_says_when_the_next_call_may_be_made(
    db: Database, clock: MovableClock
) -> None:
    lane = await paced_lane(db, clock, 2.0)
    await pacing.grant(db, lane=lane, calls=1, now=clock.now())

    refused = await pacing.grant(db, lane=lane, calls=1, now=clock.now())

    assert (refused.calls, refused.again_at) == (0, clock.now() + timedelta(seconds=0.5))
    clock.advance(seconds=0.5)
    assert (await pacing.grant(db, lane=lane, calls=1, now=clock.now())).calls == 1


async def test_what_is_given_back_can_be_used_by_another(db: Database, clock: MovableClock) -> None:
    lane = await paced_lane(db, clock, 100.0)
    granted = await pacing.grant(db, lane=lane, calls=100, now=clock.now())
    await pacing.give_back(db, lane=lane, calls=granted.calls - 1)

    again = await pacing.grant(db, lane=lane, calls=100, now=clock.now())

    assert (granted.calls, again.calls) == (10, 9)


async def test_two_workers_share_one_rate(database_url: str) -> None:
    async with world(database_url, Scripted(), workers=0) as w:
        await paced_lane(w.db, w.clock, 20.0)
        people = [f"s{i}" for i in range(30)]
        await w.subscribers(people)
        await w.batch(channel="email", subscribers=people, body="x")
        for lane in w.lanes:
            lane.paced = lane.channel == "email"
        w.start_worker()
        w.start_worker()

        for ticks in range(15):
            for _ in range(2):
                await w.provider().begun.acquire()
            await w.settled(0)
            await w.settled(1)
            assert len(w.provider().sent) == 2 * (ticks + 1)
            await w.tick(seconds=0.1)
        await w.idle()

        assert len(set(w.provider().sent)) == 30
