"""The command line: what it knows, how fast it says so, and how it fails."""

import subprocess
import sys
from collections.abc import Sequence

import msgspec
import pytest

from tests.support.program import environment
from tocsin import __version__
from tocsin.faces.cli import tree
from tocsin.faces.cli.commands import COMMANDS
from tocsin.settings import BadSettings, variables

#: What only some commands need; each costs a tenth of a second or more.
HEAVY = ("cyclopts", "rich", "asyncpg", "litestar", "uvicorn", "structlog", "cryptography")


def test_help_names_every_command_and_loads_no_heavy_library() -> None:
    program = (
        "import sys; from tocsin.__main__ import main\n"
        "try: main()\n"
        "except SystemExit as ended: assert not ended.code\n"
        f"print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "--help"],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )

    assert all(f"  {command.name} " in done.stdout for command in COMMANDS)
    assert done.stderr == "[]\n"


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_every_command_is_there_and_shows_its_options(run, command, capsys) -> None:
    assert run(command.name, "--help") == 0
    shown = capsys.readouterr().out
    assert shown.startswith((f"Usage: tocsin {command.name}", __version__))


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"], ["help"]])
def test_without_a_command_it_shows_what_there_is(run, arguments: Sequence[str], capsys) -> None:
    assert run(*arguments) == 0
    assert "tocsin dev" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["version"], ["--version"]])
def test_the_version_is_one_line(run, arguments: Sequence[str], capsys) -> None:
    assert run(*arguments) == 0
    assert capsys.readouterr().out == f"{__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["devv"], "devv is no command; did you mean dev?"),
        (["zzz"], "zzz is no command;"),
        (["simulate", "zzz"], "simulate zzz is no command"),
        (["dev", "--prot", "1"], "--prot"),
        (["dev", "--port", "many"], "--port"),
        (["demo", "--people", "0"], "--people"),
        (["migrate", "now"], "now"),
    ],
)
def test_a_command_line_that_cannot_be_is_one_line_and_exit_code_2(
    run, arguments: Sequence[str], said: str, capsys
) -> None:
    assert run(*arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert printed.err.startswith("error: ")
    assert said in printed.err
    assert "tocsin --help" in printed.err


def test_bad_settings_are_a_line_each_with_what_to_do_and_exit_code_2(
    run, monkeypatch, capsys
) -> None:
    monkeypatch.setenv("PORT", "many")
    monkeypatch.setenv("SMTP_PORT", "0")

    assert run("serve") == 2

    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(" must")[0] for line in lines] == ["error: PORT", "error: SMTP_PORT"]
    assert lines[-1].endswith("; correct the settings named above and start again")


def test_an_error_with_brackets_in_it_is_printed_as_it_is(capsys) -> None:
    tree.print_error(BadSettings(["[bold]worker[/] is no setting"]))

    assert "[bold]worker[/] is no setting" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["migrate", "doctor"])
def test_without_a_database_each_command_says_how_to_name_one(run, command: str, capsys) -> None:
    assert run(command) == 1

    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert "set DATABASE_URL" in printed.err


def test_config_shows_where_each_setting_comes_from_and_no_secret(run, monkeypatch, capsys) -> None:
    secrets = {
        "DATABASE_URL": "postgresql://u:hidden-password@db/n",
        "ADMIN_API_KEY": "hidden-operator-key-0001",
        "JWT_SECRET": "hidden-signing-secret-01",
        "RESEND_API_KEY": "re_hidden",
        "SMTP_PASSWORD": "hidden-smtp",
    }
    for name, value in (secrets | {"SMTP_USERNAME": "u", "EMAIL_FROM": "a@acme.net"}).items():
        monkeypatch.setenv(name, value)

    assert run("config") == 0
    table = capsys.readouterr().out
    assert run("config", "--json") == 0
    as_json = capsys.readouterr().out

    assert "hidden" not in table + as_json
    assert all(name in table for name in variables().values())
    assert "a@acme.net" in table
    effective = msgspec.json.decode(as_json)
    assert effective["connectors"]["email"]["from_email"] == "a@acme.net"
    assert effective["database"]["url"] == "***"


def test_a_settings_file_can_be_named(run, tmp_path, capsys) -> None:
    named = tmp_path / "other.toml"
    named.write_text("[server]\nport = 4000\n")

    assert run("config", "--json", "--config", str(named)) == 0
    assert msgspec.json.decode(capsys.readouterr().out)["server"]["port"] == 4000
    assert run("config", "--config", str(tmp_path / "none.toml")) == 2
