"""What a lane's numbers mean: whether mail leaves, and if not, what is to be done."""

from datetime import UTC, datetime, timedelta

import pytest

from tocsin.domain.ids import uuid7
from tocsin.service import deliveries
from tocsin.service.finding import Finding
from tocsin.store.progress import Reason, Recent
from tocsin.store.vitals import Backlog, Stale
from tocsin.store.workers import WorkerRow

NOW = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def codes(findings) -> list[tuple[str, str]]:
    return [(f.severity, f.code) for f in findings if f.severity != "ok"]


def lane(**fields) -> Backlog:
    known = {
        "lane": 1, "channel": "email", "provider": "smtp", "account": "default",
        "paused_until": None, "pause_code": None, "pause_reason": None, "ready": 0, "oldest": None,
    }  # fmt: skip
    return Backlog(**known | fields)


def came_to(sent: int = 0, bad: int = 0, parked: int = 0, held_since=None) -> dict[int, Recent]:
    return {1: Recent(1, sent, bad, parked, held_since)}


def worker(*lanes: int) -> WorkerRow:
    return WorkerRow(uuid7(NOW), "host", "0.1.0", list(lanes), NOW, NOW)


def of_lane(found: Backlog, recent=None, alive=None, now: datetime = NOW) -> list[Finding]:
    serving = [worker(1)] if alive is None else alive
    return list(deliveries.of_lanes([found], recent or came_to(sent=1), serving, now))


def test_without_a_worker_nothing_is_delivered_and_that_is_critical() -> None:
    assert codes(deliveries.of_workers([], {}, NOW)) == [("critical", "no_worker")]


def test_workers_are_told_with_the_lanes_they_serve_and_when_they_were_seen() -> None:
    (found,) = deliveries.of_workers(
        [worker(1, 9)], {1: "email (smtp)"}, NOW + timedelta(seconds=7)
    )

    assert found.severity == "ok"
    assert found.message.endswith("serves email (smtp), lane 9; seen 7 s ago")


def test_due_jobs_in_a_lane_that_no_worker_serves_are_critical() -> None:
    waiting = lane(ready=7, oldest=NOW)

    assert codes(of_lane(waiting, alive=[worker(2)])) == [("critical", "lane_without_worker")]
    assert codes(of_lane(waiting, alive=[worker(1)])) == []
    assert codes(of_lane(lane(), alive=[])) == []


@pytest.mark.parametrize("code", ["throttled", "daily_quota_exceeded", "smtp_daily_quota"])
def test_a_pause_that_the_provider_asked_for_says_until_when_and_why(code: str) -> None:
    paused = lane(ready=7, paused_until=NOW + 5 * MINUTE, pause_code=code, pause_reason="slow down")

    (found,) = of_lane(paused)

    assert (found.severity, found.code) == ("warning", "lane_paused")
    assert "email (smtp) rests for 5 min" in found.message
    assert "slow down" in found.message
    assert codes(of_lane(paused, now=NOW + 5 * MINUTE)) == []


@pytest.mark.parametrize("code", ["smtp_535_5.7.8", "smtp_refused", "http_401"])
def test_a_lane_that_rests_because_nothing_can_be_sent_is_critical_and_names_settings(
    code: str,
) -> None:
    until = NOW + timedelta(seconds=5)
    refused = lane(ready=7, paused_until=until, pause_code=code, pause_reason="not you")

    (found,) = of_lane(refused)

    assert (found.severity, found.code) == ("critical", "lane_refused")
    assert code in found.message
    assert "SMTP_PASSWORD" in found.action
    # Between two tries it is no better.
    assert codes(of_lane(refused, now=until + timedelta(seconds=9)))
    assert codes(of_lane(refused, now=until + timedelta(seconds=10))) == []


def test_a_served_lane_whose_oldest_job_waits_over_a_minute_is_behind() -> None:
    assert codes(of_lane(lane(ready=1, oldest=NOW - MINUTE))) == []
    late = lane(ready=1, oldest=NOW - MINUTE - timedelta(seconds=1))
    assert codes(of_lane(late)) == [("warning", "lane_behind")]


def test_a_lane_that_is_behind_and_sends_nothing_needs_no_more_workers() -> None:
    (found,) = of_lane(lane(ready=290, oldest=NOW - 2 * MINUTE), came_to(sent=0))

    assert (found.severity, found.code) == ("critical", "lane_stuck")
    assert "SMTP_HOST" in found.action
    assert "more workers" not in found.action


def test_calls_that_do_not_come_back_are_told() -> None:
    assert codes(of_lane(lane(), came_to(held_since=NOW - MINUTE))) == []
    assert codes(of_lane(lane(), came_to(held_since=NOW - 2 * MINUTE))) == [
        ("warning", "calls_slow")
    ]


@pytest.mark.parametrize(
    ("recent", "found"),
    [
        (came_to(sent=100), []),
        (came_to(), []),
        (came_to(sent=90, bad=10), []),
        (came_to(sent=89, bad=11), ["warning"]),
        (came_to(bad=2), ["warning"]),
        (came_to(bad=3), ["critical"]),
        (came_to(parked=3), ["critical"]),
        (came_to(sent=1, bad=500), ["warning"]),
        ({}, []),
    ],
)
def test_a_provider_that_fails_is_critical_if_it_takes_nothing(recent, found) -> None:
    told = codes(deliveries.of_providers([lane()], recent, {}))

    assert told == [(severity, "provider_failing") for severity in found]


def test_a_failing_provider_is_told_with_the_most_frequent_code_and_a_job_that_has_it() -> None:
    reasons = {1: Reason(1, "smtp_refused", "0190-x")}

    (found,) = deliveries.of_providers([lane()], came_to(sent=1, bad=7, parked=2), reasons)

    assert found.message == (
        "9 of 10 attempts of email (smtp) in the last 10 min failed, most often smtp_refused "
        "(job 0190-x); 2 are kept to be repeated as they are"
    )
    assert "SMTP_HOST" in found.action


def test_overdue_schedules_and_stale_leases_are_warnings() -> None:
    long_ago = NOW - MINUTE

    assert codes(deliveries.of_overdue(NOW, Stale(0, None), NOW)) == []
    assert codes(deliveries.of_overdue(long_ago, Stale(2, long_ago), NOW)) == [
        ("warning", "scheduled_overdue"),
        ("warning", "leases_stale"),
    ]
