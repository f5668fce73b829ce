"""Each fact about a deployment has one meaning, a severity, and something to do."""

from datetime import UTC, datetime, timedelta

import pytest

from tocsin.service import symptoms
from tocsin.service.finding import Finding
from tocsin.settings import Settings, parse, variables
from tocsin.store.invariants import Violation
from tocsin.store.migrate import known_migrations
from tocsin.store.vitals import Holder, Server

NOW = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
WELL = Server("18.1", True, True, "on", True, 100, False)
SMTP = {"SMTP_HOST": "mx.acme.net", "EMAIL_FROM": "a@acme.net", "PUBLIC_URL": "https://n.acme.net"}


def settings(**env: str) -> Settings:
    return parse(env, "")


def codes(findings) -> list[tuple[str, str]]:
    return [(f.severity, f.code) for f in findings if f.severity != "ok"]


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


def test_running_workers_say_better_than_these_settings_how_email_goes() -> None:
    (same,) = symptoms.of_settings(settings(EMAIL_PROVIDER="log"), {"log"})
    (other,) = symptoms.of_settings(settings(), {"smtp"})
    (mixed,) = symptoms.of_settings(settings(**SMTP), {"log"})

    assert same.code == "email_only_logged"
    assert (other.severity, other.code) == ("warning", "email_settings_differ")
    assert "through smtp; the settings here say none" in other.message
    assert "through log; the settings here say smtp" in mixed.message
    assert codes(symptoms.of_settings(settings(**SMTP), {"smtp", "resend"})) == []


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("SMTP_PASWORD", "SMTP_PASSWORD"),
        ("SMTP_PASSWORDS", "SMTP_PASSWORD"),
        ("RESEND_APIKEY", "RESEND_API_KEY"),
        ("DATABSE_URL", "DATABASE_URL"),
    ],
)
def test_a_variable_with_a_slip_of_the_pen_is_named_with_what_is_meant(
    name: str, meant: str
) -> None:
    (found,) = symptoms.of_environment([name, meant, "PATH"])

    assert (found.severity, found.code) == ("warning", "setting_misspelt")
    assert found.message.startswith(name)
    assert meant in found.action


def test_other_peoples_variables_are_none_of_ours() -> None:
    others = [
        "PATH", "HOME", "HOSTNAME", "SMTP_PORT_25_TCP", "SMTP_SERVICE_HOST", "EMAIL_HOST", "PORTS",
        "LOGNAME", "DATABASE_NAME", "TOCSIN_PG_BIN", "TOCSIN_CONFIG", "NO_PROXY",
    ]  # fmt: skip

    assert list(symptoms.of_environment([*others, *variables().values()])) == []


def test_of_two_providers_the_one_that_is_not_used_is_named() -> None:
    (found, *_) = symptoms.of_settings(settings(**SMTP, RESEND_API_KEY="re_1"))

    assert found.message == "email goes through resend; SMTP_HOST is set as well, and not used"


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
        (
            Server("18.1", True, True, "on", True, 100, False, True),
            [("critical", "database_read_only")],
        ),
    ],
)
def test_a_server_that_can_lose_what_was_acknowledged_is_critical(server, found) -> None:
    assert codes(symptoms.of_server(server)) == found


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


def test_pending_migrations_are_named() -> None:
    todo = known_migrations()

    assert symptoms.of_migrations([]).severity == "ok"
    assert todo[0].title in symptoms.of_migrations(todo).message
    # Where none was applied no worker can run; where some were, older ones may.
    assert symptoms.of_migrations(todo).severity == "critical"
    assert symptoms.of_migrations(todo[1:]).severity == "warning"


def test_a_broken_invariant_is_critical_and_names_ids() -> None:
    (found,) = symptoms.of_violations([Violation("lost_job", 7, ["a", "b"])])

    assert (found.severity, found.code) == ("critical", "invariant_lost_job")
    assert found.message.startswith("7 jobs that are nowhere")
    assert found.message.endswith(": a, b")
    assert list(symptoms.of_violations([])) == [
        Finding("ok", "invariants", "every invariant holds")
    ]
