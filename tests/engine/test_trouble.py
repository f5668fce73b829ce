"""A provider that fails is in the log: at once, in few lines, with numbers and never an address."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import structlog

from tests.support.scripted import Scripted
from tests.support.world import world
from tocsin.domain.outcome import (
    Accepted,
    ContentRejected,
    Misconfigured,
    RecipientPermanent,
    Suppressed,
    Throttled,
    Transient,
    Unknown,
)
from tocsin.engine.lane import Lane
from tocsin.engine.settlement import Pause
from tocsin.engine.trouble import CODES_MAX, TELL_EVERY_S, Troubles

DOWN = Transient("smtp_refused", "nobody@example.com was not to be had")


class Timers:
    """Callbacks that a test lets come due."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []

    def later(self, seconds: float, callback: Callable[[], None]) -> None:
        assert seconds == TELL_EVERY_S
        self.waiting.append(callback)

    def fire(self) -> None:
        due, self.waiting = self.waiting, []
        for callback in due:
            callback()


def email(number: int = 1) -> Lane:
    return Lane(number, "email", Scripted())


async def test_the_first_failure_is_told_at_once_and_the_next_together() -> None:
    timers = Timers()
    troubles = Troubles(timers.later)
    lane = email()
    with structlog.testing.capture_logs() as lines:
        troubles.note(lane, [DOWN])
        assert [line["event"] for line in lines] == ["provider_fails"]
        for _ in range(500):
            troubles.note(lane, [DOWN, Unknown("smtp_closed"), DOWN])
        assert len(lines) == 1
        timers.fire()

    assert lines[0] == {
        "event": "provider_fails", "log_level": "warning", "provider": "scripted",
        "channel": "email", "code": "smtp_refused", "calls": 1, "messages": 1,
    }  # fmt: skip
    assert (lines[1]["calls"], lines[1]["messages"]) == (500, 1500)
    assert lines[1]["code"] == "smtp_refused"
    assert "example.com" not in str(lines)


async def test_a_provider_that_works_again_has_no_line_and_the_next_failure_has_one_at_once() -> (
    None
):
    timers = Timers()
    troubles = Troubles(timers.later)
    lane = email()
    with structlog.testing.capture_logs() as lines:
        troubles.note(lane, [DOWN])
        troubles.note(lane, [Accepted("ok")])
        timers.fire()
        assert len(lines) == 1
        assert timers.waiting == []
        troubles.note(lane, [DOWN])

    assert [line["calls"] for line in lines] == [1, 1]


async def test_each_lane_has_lines_of_its_own() -> None:
    troubles = Troubles(Timers().later)
    with structlog.testing.capture_logs() as lines:
        troubles.note(email(1), [DOWN])
        troubles.note(email(2), [DOWN])

    assert len(lines) == 2


async def test_what_is_refused_for_its_recipient_or_words_is_no_warning() -> None:
    troubles = Troubles(Timers().later)
    with structlog.testing.capture_logs() as lines:
        troubles.note(email(), [RecipientPermanent("smtp_550", "gone"), ContentRejected("spam")])

    assert [(line["event"], line["log_level"]) for line in lines] == [("refused", "info")]
    assert lines[0]["messages"] == 2


async def test_what_was_planned_so_is_no_trouble() -> None:
    troubles = Troubles(Timers().later)
    with structlog.testing.capture_logs() as lines:
        troubles.note(email(), [Accepted(), Throttled(1.0), Misconfigured("key"), Suppressed("no")])

    assert lines == []


async def test_codes_without_end_are_counted_within_a_bound() -> None:
    timers = Timers()
    troubles = Troubles(timers.later)
    lane = email()
    with structlog.testing.capture_logs() as lines:
        troubles.note(lane, [DOWN])
        for number in range(CODES_MAX * 3):
            troubles.note(lane, [Transient(f"code_{number}")])
        assert len(troubles._tallies[lane.id].codes) == CODES_MAX
        timers.fire()

    assert lines[1]["messages"] == CODES_MAX * 3


async def test_a_rest_that_goes_on_is_told_seldom_and_another_reason_at_once() -> None:
    troubles = Troubles(Timers().later)
    lane, start = email(), datetime(2026, 3, 2, 12, 0, tzinfo=UTC)

    def rests(code: str, after_s: float) -> None:
        now = start + timedelta(seconds=after_s)
        pause = Pause(lane.id, now + timedelta(seconds=5), code, "down")
        troubles.note_rest(lane, pause, now)
        lane.rest(pause.until)

    with structlog.testing.capture_logs() as lines:
        for seconds in (0, 1, 5, 9.9, 15):
            rests("smtp_refused", seconds)
        rests("smtp_auth", 20)

    assert [line["code"] for line in lines] == ["smtp_refused", "smtp_refused", "smtp_auth"]


async def test_a_worker_whose_provider_is_down_says_so(database_url: str) -> None:
    with structlog.testing.capture_logs() as lines:
        async with world(database_url, Scripted(DOWN)) as w:
            await w.job(channel="email", to="ada@example.com", body="Hello")
            await w.idle()

    (line,) = [line for line in lines if line["event"] == "provider_fails"]
    assert line["code"] == "smtp_refused"
    assert "example.com" not in str(lines)


async def test_a_rest_is_told_once_for_all_calls_in_flight(database_url: str) -> None:
    refused = [Misconfigured("smtp_auth", "wrong password")] * 4
    with structlog.testing.capture_logs() as lines:
        async with world(database_url, Scripted(*refused, in_flight_max=4)) as w:
            w.provider().hold()
            people = [f"s{number}" for number in range(4)]
            await w.subscribers(people)
            await w.batch(channel="email", subscribers=people, body="Hello")
            for _ in people:
                await w.provider().begun.acquire()
            w.provider().release()
            await w.settled()

    rests = [line for line in lines if line["event"] == "lane_rests"]
    assert [(line["provider"], line["code"]) for line in rests] == [("scripted", "smtp_auth")]


async def test_repeating_a_call_that_was_kept_for_that_is_no_warning(database_url: str) -> None:
    provider = Scripted(Unknown("http_502"), dedupes=True)
    with structlog.testing.capture_logs() as lines:
        async with world(database_url, provider) as w:
            job = await w.job(channel="email", to="ada@example.com", body="Hello")
            await provider.begun.acquire()
            await w.settled()
            await w.tick(seconds=10)
            await w.idle()

    assert provider.sent == [job, job]
    assert [line["event"] for line in lines if line["log_level"] == "warning"] == ["provider_fails"]
