"""Each fact about a deployment has one meaning, a severity, and something to do."""

from datetime import UTC, datetime, timedelta

import pytest

from tocsin.domain.ids import uuid7
from tocsin.service import symptoms
from tocsin.service.symptoms import Finding
from tocsin.settings import Settings, parse
from tocsin.store.invariants import Violation
from tocsin.store.migrate import known_migrations
from tocsin.store.vitals import Backlog, Holder, Server, Stale
from tocsin.store.workers import WorkerRow

NOW = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
WELL = Server("18.1", True, True, "on", True, 100, False)
SMTP = {"SMTP_HOST": "mx.acme.net", "EMAIL_FROM": "a@acme.net", "PUBLIC_URL": "https://n.acme.net"}


def settings(**env: str) -> Settings:
    return parse(env, "")


def codes(findings) -> list[tuple[str, str]]:
    return [(f.severity, f.code) for f in findings if f.severity != "ok"]


def lane(**fields) -> Backlog:
    known = {
        "lane": 1, "channel": "email", "provider": "smtp", "account": "default",
        "paused_until": None, "pause_code": None, "pause_reason": None, "ready": 0, "oldest": None,
    }  # fmt: skip
    return Backlog(**known | fields)


def worker(*lanes: int) -> WorkerRow:
    return WorkerRow(uuid7(NOW), "host", "0.1.0", list(lanes), NOW, NOW)


@pytest.mark.parametrize(
    ("env", "found"),
    [
        (SMTP, []),
        ({}, ["email_not_configured"]),
        ({"EMAIL_PROVIDER": "log"}, ["email_only_logged"]),
        (SMTP | {"EMAIL_FROM": "a@mail.example.com"}, ["sender_reserved"]),
        (SMTP | {"EMAIL_FROM": "a@acme.test"}, ["sender_reserved"]),
        (SMTP | {"EMAIL_FROM": "a@myexample.com"}, []),
        (SMTP | {"SMTP_SECURITY": "none"}, ["smtp_in_the_clear"]),
        (SMTP | {"SMTP_SECURITY": "none", "SMTP_HOST": "127.0.0.1"}, []),
        (SMTP | {"PUBLIC_URL": ""}, ["no_public_url"]),
    ],
)
def test_email_that_would_go_nowhere_or_in_the_clear_is_a_warning(env, found) -> None:
    assert codes(symptoms.of_settings(settings(**env))) == [("warning", code) for code in found]


@pytest.mark.parametrize(
    ("server", "found"),
    [
        (WELL, []),
        (Server("18.1", False, True, "on", True, 100, False), [("critical", "fsync_off")]),
        (
            Server("18.1", True, False, "on", True, 100, False),
            [("critical", "full_page_writes_off")],
        ),
        (
            Server("18.1", True, True, "off", True, 100, False),
            [("critical", "commits_not_durable")],
        ),
        (Server("18.1", True, True, "on", False, 100, False), [("warning", "autovacuum_off")]),
        (Server("18.1", True, True, "on", True, 100, True), [("critical", "database_read_only")]),
    ],
)
def test_a_server_that_can_lose_what_was_acknowledged_is_critical(server, found) -> None:
    assert codes(symptoms.of_server(server)) == found


def test_due_jobs_in_a_lane_that_no_worker_serves_are_critical() -> None:
    waiting = lane(ready=7, oldest=NOW)

    assert codes(symptoms.of_lanes([waiting], [worker(2)], NOW)) == [
        ("critical", "lane_without_worker")
    ]
    assert codes(symptoms.of_lanes([waiting], [worker(1)], NOW)) == []
    assert codes(symptoms.of_lanes([lane()], [], NOW)) == []


def test_a_paused_lane_says_until_when_and_why() -> None:
    paused = lane(
        ready=7,
        paused_until=NOW + timedelta(minutes=5),
        pause_code="throttled",
        pause_reason="the provider asked for a pause",
    )

    (found,) = symptoms.of_lanes([paused], [], NOW)

    assert (found.severity, found.code) == ("warning", "lane_paused")
    assert "email (smtp) rests for 5 min" in found.message
    assert "the provider asked for a pause" in found.message
    assert codes(symptoms.of_lanes([paused], [worker(1)], NOW + timedelta(minutes=6))) == []


def test_a_served_lane_whose_oldest_job_waits_over_a_minute_is_behind() -> None:
    def found(seconds: int) -> list[tuple[str, str]]:
        oldest = NOW - timedelta(seconds=seconds)
        return codes(symptoms.of_lanes([lane(ready=1, oldest=oldest)], [worker(1)], NOW))

    assert found(60) == []
    assert found(61) == [("warning", "lane_behind")]


def test_workers_are_told_with_the_lanes_they_serve() -> None:
    (found,) = symptoms.of_workers([worker(1, 9)], {1: "email (smtp)"})

    assert found.severity == "ok"
    assert "serves email (smtp), lane 9" in found.message
    assert codes(symptoms.of_workers([], {})) == [("warning", "no_worker")]


def test_each_holder_of_old_rows_has_the_statement_that_ends_it() -> None:
    since = NOW - timedelta(minutes=10)
    found = list(
        symptoms.of_holders(
            [
                Holder("transaction", "psql", 42, since),
                Holder("prepared transaction", "gid", None, since),
                Holder("replication slot", "slot", None, None),
            ],
            NOW,
        )
    )

    assert codes(found) == [("warning", "old_rows_held")] * 3
    assert "psql, pid 42) has kept dead rows for 10 min" in found[0].message
    assert "pg_terminate_backend(42)" in found[0].action
    assert "ROLLBACK PREPARED" in found[1].action
    assert "drop the slot" in found[2].action


def test_missing_partitions_are_critical_today_and_a_warning_for_tomorrow() -> None:
    assert symptoms.of_partitions(["jobs_1"], []).severity == "critical"
    assert symptoms.of_partitions([], ["jobs_2"]).severity == "warning"
    assert symptoms.of_partitions([], []).severity == "ok"


def test_clocks_that_differ_by_more_than_five_seconds_are_a_warning_either_way() -> None:
    assert symptoms.of_clock(4.9).severity == "ok"
    assert "ahead of" in symptoms.of_clock(6.0).message
    assert "behind" in symptoms.of_clock(-6.0).message
    assert symptoms.of_clock(-6.0).severity == "warning"


def test_overdue_schedules_and_stale_leases_are_warnings() -> None:
    long_ago = NOW - timedelta(minutes=1)

    assert codes(symptoms.of_overdue(NOW, Stale(0, None), NOW)) == []
    assert codes(symptoms.of_overdue(long_ago, Stale(2, long_ago), NOW)) == [
        ("warning", "scheduled_overdue"),
        ("warning", "leases_stale"),
    ]


def test_pending_migrations_are_named() -> None:
    todo = known_migrations()

    assert symptoms.of_migrations([]).severity == "ok"
    assert todo[0].title in symptoms.of_migrations(todo).message


def test_a_broken_invariant_is_critical_and_names_ids() -> None:
    (found,) = symptoms.of_violations([Violation("lost_job", 7, ["a", "b"])])

    assert (found.severity, found.code) == ("critical", "invariant_lost_job")
    assert found.message.startswith("7 jobs that are nowhere")
    assert found.message.endswith(": a, b")
    assert list(symptoms.of_violations([])) == [
        Finding("ok", "invariants", "every invariant holds")
    ]
