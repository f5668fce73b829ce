"""`tocsin migrate` and `tocsin doctor` on a real database."""

import msgspec

from tests.support.postgres import in_thread, run_on
from tocsin.faces.cli.doctor import Report
from tocsin.store.migrate import known_migrations


def test_migrate_tells_each_step_and_a_second_one_finds_nothing_to_do(
    run, empty_database_url: str, monkeypatch, capsys
) -> None:
    monkeypatch.setenv("DATABASE_URL", empty_database_url)
    titles = [migration.title for migration in known_migrations()]

    assert run("migrate") == 0
    assert capsys.readouterr().out.splitlines() == [f"applying {title}" for title in titles]
    assert run("migrate") == 0
    assert "nothing to do" in capsys.readouterr().out
    assert run("migrate", "--json") == 0
    assert capsys.readouterr().out == '{"applied":[]}\n'


def test_migrate_refuses_a_database_of_a_newer_version(
    run, database_url: str, monkeypatch, capsys
) -> None:
    monkeypatch.setenv("DATABASE_URL", database_url)
    add_later(database_url)

    assert run("migrate") == 1
    error = capsys.readouterr().err
    assert "made by Tocsin 9.9" in error
    assert "run Tocsin 9.9 or newer" in error


def test_doctor_prints_what_is_wrong_and_what_to_do_and_fails_when_it_is_critical(
    run, database_url: str, monkeypatch, capsys
) -> None:
    monkeypatch.setenv("DATABASE_URL", database_url)

    # The tests' server has fsync off, which is critical.
    assert run("doctor") == 1
    shown = capsys.readouterr().out
    assert "fsync is off" in shown
    assert "set fsync = on" in shown
    assert run("doctor", "--json", "--invariants") == 1
    report = msgspec.json.decode(capsys.readouterr().out, type=Report)
    assert not report.healthy
    assert {"fsync_off", "invariants", "listen"} <= {f.code for f in report.findings}


def test_doctor_reports_settings_it_cannot_read_as_findings(run, monkeypatch, capsys) -> None:
    monkeypatch.setenv("PORT", "many")

    assert run("doctor", "--json") == 1
    (finding,) = msgspec.json.decode(capsys.readouterr().out, type=Report).findings
    assert (finding.severity, finding.code) == ("critical", "bad_settings")
    assert finding.message.startswith("PORT must be")


def test_doctor_never_shows_the_password_of_a_database_it_cannot_reach(
    run, monkeypatch, capsys
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://u:hidden-password@127.0.0.1:1/none")

    assert run("doctor") == 1
    printed = capsys.readouterr()
    assert "cannot be reached" in printed.out
    assert "hidden" not in printed.out + printed.err


def add_later(url: str) -> None:
    in_thread(
        run_on(
            url,
            "INSERT INTO tocsin.schema_migrations (id, name, sha256, version) "
            "VALUES (9999, 'later', '', '9.9')",
        )
    )
