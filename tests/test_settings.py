"""Settings from a file and the environment."""

import re
from pathlib import Path
from typing import get_type_hints

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from tocsin.domain.secret import Secret
from tocsin.settings import BadSettings, Settings, _leaves, load, parse, shown

LONG = "k" * 24


def problems(env: dict[str, str] | None = None, toml: str = "") -> list[str]:
    with pytest.raises(BadSettings) as caught:
        parse(env or {}, toml)
    return caught.value.problems


def test_nothing_given_is_a_complete_set_without_a_secret() -> None:
    settings = parse({}, "")

    assert settings.server.port == 3400
    assert settings.connectors.email.provider == "none"
    assert [path for path, value in leaves(settings) if isinstance(value, Secret)] == []


def test_the_file_is_read_and_the_environment_goes_over_it() -> None:
    toml = f"""
        data_dir = "/srv/data"
        [server]
        port = 4000
        admin_api_key = "{LONG}"
        [connectors.email]
        provider = "smtp"
        from_email = "a@example.com"
        [connectors.email.smtp]
        host = "mail.example.com"
        port = 2525
    """
    settings = parse({"PORT": "5000", "EMAIL_FROM_NAME": "Acme", "SMTP_PORT": ""}, toml)

    assert settings.server.port == 5000
    assert settings.server.admin_api_key == Secret(LONG)
    assert settings.connectors.email.from_name == "Acme"
    assert settings.connectors.email.smtp.port == 2525
    assert settings.data_dir == Path("/srv/data")


def test_every_environment_name_of_notifyd_that_applies_is_read() -> None:
    env = {
        "DATABASE_URL": "postgresql://u:p@db/x",
        "DATABASE_MAX_CONNECTIONS": "20",
        "PORT": "8080",
        "JWT_SECRET": LONG,
        "ADMIN_API_KEY": f"{LONG}a",
        "READONLY_API_KEY": f"{LONG}r",
        "CORS_ORIGINS": "https://a.example, http://b.example:8000",
        "PUBLIC_URL": "https://n.example/",
        "WORKER_POLL_INTERVAL_MS": "250",
        "WORKER_BATCH_SIZE": "100",
        "WORKER_MAX_ATTEMPTS": "3",
        "EMAIL_RATE_PER_SEC": "0.5",
        "EMAIL_PROVIDER": "resend",
        "EMAIL_FROM": "n@n.example",
        "EMAIL_FROM_NAME": "N",
        "RESEND_API_KEY": "re_123",
        "RESEND_BASE_URL": "http://127.0.0.1:9000",
        "SMTP_HOST": "mail.example",
        "SMTP_PORT": "25",
        "SMTP_USERNAME": "u",
        "SMTP_PASSWORD": "p",
        "SMTP_SECURITY": "none",
        "TOCSIN_DATA": "/srv/tocsin",
    }
    settings = parse(env, "")
    email = settings.connectors.email

    assert settings.database.url == Secret("postgresql://u:p@db/x")
    assert settings.database.max_connections == 20
    assert settings.server.cors_origins == ("https://a.example", "http://b.example:8000")
    assert settings.server.public_url == "https://n.example"
    assert (settings.worker.poll_interval_ms, settings.worker.batch_size) == (250, 100)
    assert settings.worker.pacing.email_per_sec == 0.5
    assert (email.provider, email.resend.base_url) == ("resend", "http://127.0.0.1:9000")
    assert (email.smtp.host, email.smtp.port, email.smtp.security) == ("mail.example", 25, "none")
    assert settings.data_dir == Path("/srv/tocsin")


@pytest.mark.parametrize(
    ("env", "provider"),
    [
        ({}, "none"),
        ({"RESEND_API_KEY": "re_1", "SMTP_HOST": "m.example"}, "resend"),
        ({"SMTP_HOST": "m.example"}, "smtp"),
        ({"SMTP_HOST": "m.example", "EMAIL_PROVIDER": "log"}, "log"),
    ],
)
def test_the_email_provider_follows_from_what_is_given(env, provider) -> None:
    settings = parse({"EMAIL_FROM": "a@example.com", **env}, "")

    assert settings.connectors.email.provider == provider


@pytest.mark.parametrize(("security", "port"), [("tls", 465), ("starttls", 587), ("none", 587)])
def test_the_smtp_port_follows_from_the_security(security, port) -> None:
    assert parse({"SMTP_SECURITY": security}, "").connectors.email.smtp.port == port


@pytest.mark.parametrize(
    ("toml", "unknown", "nearest"),
    [
        ("[server]\nprot = 1", "server.prot", "server.port"),
        ("port = 1", "port", "server.port"),
        ("[servr]\nhost = 'x'", "servr.host", "server.host"),
        ("[connectors.email.smtp]\nhots = 'x'", "connectors.email.smtp.hots", "smtp.host"),
        ("[databse]", "databse", "database."),
    ],
)
def test_an_unknown_key_is_refused_with_the_nearest_valid_one(toml, unknown, nearest) -> None:
    (said,) = problems(toml=toml)

    assert said.startswith(f"tocsin.toml: {unknown} is no setting")
    assert nearest in said.partition("did you mean ")[2]


def test_all_problems_are_told_at_once_each_with_its_key_and_a_remedy() -> None:
    said = problems(
        {"PORT": "70000", "EMAIL_PROVIDER": "pigeon", "WORKER_BATCH_SIZE": "many"},
        "worker = 3\n[database]\nmax_connections = 'ten'",
    )

    assert said == [
        "PORT must be a TCP port, 1 to 65535",
        "tocsin.toml: database.max_connections must be a number from 1",
        "tocsin.toml: worker must be a table",
        "WORKER_BATCH_SIZE must be a number, 1 to 5000",
        "EMAIL_PROVIDER must be resend, smtp, log or none",
    ]


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({"ADMIN_API_KEY": "short"}, "ADMIN_API_KEY must have 16 characters"),
        ({"JWT_SECRET": "change-me-in-production"}, "JWT_SECRET is a published example"),
        ({"ADMIN_API_KEY": LONG, "READONLY_API_KEY": LONG}, "READONLY_API_KEY must differ"),
        ({"DATABASE_URL": "mysql://u:hidden@h/x"}, "DATABASE_URL must be postgresql://"),
        ({"PUBLIC_URL": "n.example"}, "PUBLIC_URL must be"),
        ({"CORS_ORIGINS": "https://a.example/path"}, "CORS_ORIGINS: https://a.example/path must"),
        ({"EMAIL_FROM": "A <a@example.com>"}, "EMAIL_FROM must be an email address alone"),
        ({"EMAIL_PROVIDER": "smtp", "EMAIL_FROM": "a@b.example"}, "SMTP_HOST is missing"),
        ({"EMAIL_PROVIDER": "resend", "EMAIL_FROM": "a@b.example"}, "RESEND_API_KEY is missing"),
        ({"SMTP_HOST": "m.example"}, "EMAIL_FROM is missing"),
        ({"RESEND_BASE_URL": "ftp://x"}, "RESEND_BASE_URL must be"),
        ({"SMTP_USERNAME": "u"}, "SMTP_USERNAME and SMTP_PASSWORD go together"),
    ],
)
def test_values_that_contradict_each_other_are_refused(env, words) -> None:
    (said,) = problems(env)

    assert said.startswith(words)
    assert "hidden" not in said


def test_no_secret_is_shown_in_any_form() -> None:
    env = {
        "DATABASE_URL": "postgresql://u:hidden-in-url@h/x",
        "ADMIN_API_KEY": "hidden-admin-key-of-length",
        "READONLY_API_KEY": "hidden-reader-key-of-length",
        "JWT_SECRET": "hidden-signing-key-of-length",
        "RESEND_API_KEY": "hidden-resend",
        "SMTP_USERNAME": "u",
        "SMTP_PASSWORD": "hidden-smtp",
        "EMAIL_FROM": "a@b.example",
    }
    settings = parse(env, "")
    secrets = [value for _, value in leaves(settings) if isinstance(value, Secret)]

    assert len(secrets) == 6
    assert all("hidden" in secret.reveal() for secret in secrets)
    shapes = [repr(settings), str(settings), repr(shown(settings)), f"{secrets}"]
    shapes.append(msgspec.json.encode(settings, enc_hook=str).decode())
    assert [shape for shape in shapes if "hidden" in shape] == []


@given(st.dictionaries(st.sampled_from(sorted(["PORT", "SMTP_PORT"])), st.text(max_size=8)))
def test_whatever_a_port_says_it_is_a_port_or_a_problem(env) -> None:
    try:
        settings = parse(env, "")
    except BadSettings as bad:
        blamed = {said.partition(" ")[0] for said in bad.problems}
    else:
        blamed = set()
        assert 1 <= settings.server.port <= 65535
        assert 1 <= (settings.connectors.email.smtp.port or 0) <= 65535
    assert blamed <= set(env)


def test_a_file_that_is_named_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(BadSettings, match="is not there"):
        load({"TOCSIN_CONFIG": str(tmp_path / "none.toml")})
    with pytest.raises(BadSettings, match="is not there"):
        load({}, tmp_path / "none.toml")


def test_the_file_in_the_working_directory_is_optional(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert load({}).server.port == 3400
    (tmp_path / "tocsin.toml").write_text("[server]\nport = 4001\n")
    assert load({}).server.port == 4001


def test_a_file_that_is_no_toml_is_refused_with_the_place(tmp_path: Path) -> None:
    (tmp_path / "t.toml").write_text("[server\nport = 1")
    with pytest.raises(BadSettings, match=re.escape("t.toml is not TOML")) as caught:
        load({}, tmp_path / "t.toml")
    assert "line 1" in str(caught.value)


@pytest.mark.parametrize(
    ("env", "folder"),
    [
        ({"HOME": "/u"}, "/u/.local/share/tocsin"),
        ({"HOME": "/u", "XDG_DATA_HOME": "/x"}, "/x/tocsin"),
        ({}, "tocsin-data"),
    ],
)
def test_data_is_kept_where_the_system_keeps_an_accounts_data(env, folder) -> None:
    assert parse(env, "").data_dir == Path(folder)


def leaves(settings: Struct, path: str = "") -> list[tuple[str, object]]:
    found: list[tuple[str, object]] = []
    for name in get_type_hints(type(settings)):
        value = getattr(settings, name)
        here = f"{path}.{name}" if path else name
        found += leaves(value, here) if isinstance(value, Struct) else [(here, value)]
    return found


def test_settings_cannot_be_changed_once_they_are_read() -> None:
    with pytest.raises(AttributeError):
        parse({}, "").server = None  # type: ignore[misc]


def test_each_environment_variable_sets_one_setting_only() -> None:
    names = [key.env for _, key in _leaves(Settings)]

    assert len(names) == len(set(names)) > 20
