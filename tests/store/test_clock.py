"""The database's clock, against a monotonic clock that only these tests move."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.domain.errors import Unavailable
from tocsin.store.clock import READ_CLOCK, DatabaseClock
from tocsin.store.failure import lost
from tocsin.store.pool import Database

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


class Pair:
    """A database's clock and ours: reading the first takes time on the second."""

    def __init__(self) -> None:
        self.ours = 1000.0
        self.theirs = EPOCH
        self.delays = [0.0]
        self.away = False

    def monotonic(self) -> float:
        return self.ours

    def pass_time(self, seconds: float) -> None:
        self.ours += seconds
        self.theirs += timedelta(seconds=seconds)

    async def value(self, query, *args):
        assert query is READ_CLOCK
        if self.away:
            raise lost()
        delay = self.delays[0] if len(self.delays) == 1 else self.delays.pop(0)
        # The answer is on its way back for longer than the question was on its way there.
        self.pass_time(delay * 0.25)
        read = self.theirs
        self.pass_time(delay * 0.75)
        return read


def seconds_off(clock: DatabaseClock, pair: Pair) -> float:
    return (clock.now() - pair.theirs).total_seconds()


async def synced(pair: Pair) -> DatabaseClock:
    clock = DatabaseClock(pair, monotonic=pair.monotonic)
    await clock.resync()
    return clock


async def test_now_is_the_databases_time_and_aware_in_utc() -> None:
    pair = Pair()
    clock = await synced(pair)
    pair.pass_time(12.5)

    assert clock.now() == EPOCH + timedelta(seconds=12.5)
    assert clock.now().tzinfo is UTC


async def test_the_quickest_of_several_round_trips_decides() -> None:
    pair = Pair()
    pair.delays = [0.8, 0.4, 0.004, 0.9, 0.6]
    clock = await synced(pair)

    assert abs(seconds_off(clock, pair)) <= 0.002


async def test_a_clock_behind_the_database_steps_forward_at_once() -> None:
    pair = Pair()
    clock = await synced(pair)
    pair.theirs += timedelta(hours=1)

    assert await clock.resync() == pytest.approx(3600)
    assert seconds_off(clock, pair) == pytest.approx(0, abs=1e-5)


async def test_a_clock_ahead_of_the_database_slows_down_until_it_is_caught() -> None:
    pair = Pair()
    clock = await synced(pair)
    before = clock.now()
    pair.theirs -= timedelta(seconds=10)
    await clock.resync()

    assert clock.now() == before
    pair.pass_time(10)
    assert clock.now() == before + timedelta(seconds=5)
    pair.pass_time(10)
    assert seconds_off(clock, pair) == pytest.approx(0, abs=1e-5)


async def test_an_unreachable_database_leaves_the_clock_going() -> None:
    pair = Pair()
    clock = await synced(pair)
    pair.away = True
    with pytest.raises(Unavailable):
        await clock.resync()
    pair.pass_time(3)

    assert seconds_off(clock, pair) == pytest.approx(0, abs=1e-5)


@given(
    steps=st.lists(
        st.tuples(st.floats(0, 5000), st.floats(-5000, 5000), st.booleans()), max_size=30
    )
)
async def test_it_never_goes_backwards_however_the_database_jumps(steps) -> None:
    pair = Pair()
    clock = await synced(pair)
    last = clock.now()
    for passed, jump, resync in steps:
        pair.pass_time(passed)
        pair.theirs += timedelta(seconds=jump)
        if resync:
            await clock.resync()
        # Both sides are rounded to the microsecond.
        assert clock.now() >= last - timedelta(microseconds=1)
        last = clock.now()


async def test_it_agrees_with_a_real_database(db: Database) -> None:
    clock = DatabaseClock(db)
    await clock.resync()
    before = clock.now()
    read = await db.value(READ_CLOCK)
    after = clock.now()

    slack = timedelta(milliseconds=250)
    assert before - slack <= read <= after + slack
