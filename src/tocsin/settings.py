"""Settings: tocsin.toml, then the environment over it; every mistake is told at once.

A TOML key is the path of a field below: `[connectors.email.smtp] host` is
`Settings.connectors.email.smtp.host`. An environment variable that is set and empty counts as
not set. No secret has a default: what must exist and is not given, Tocsin makes and keeps itself.
"""

import difflib
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, Struct

from tocsin.domain.errors import Conflict, TocsinError
from tocsin.domain.secret import Secret

FILE = "tocsin.toml"
SECRET_LENGTH_MIN = 16
# Defaults and examples that were printed somewhere: whoever uses one has no secret at all.
_PUBLISHED = frozenset({"change-me-in-production", "changeme", "change-me"})
_DATA = "tocsin-data"
_MAKE_ONE = "make one with: openssl rand -hex 32"


_ADDRESS = re.compile(r"[^\s@<>]+@[^\s@<>]+")

_S = TypeVar("_S", bound=Struct)


class Key(Struct, frozen=True):
    """The environment variable of a field, and what its value must be, as `must be …` goes on."""

    env: str
    meaning: str


_Port = Annotated[int, Meta(ge=1, le=65535)]
_Count = Annotated[int, Meta(ge=1, le=100_000)]


class Server(Struct, frozen=True):
    """The HTTP side. Keys are for operators; projects have theirs in the database."""

    host: Annotated[str, Key("HOST", "an address to listen on")] = "127.0.0.1"
    port: Annotated[_Port, Key("PORT", "a TCP port, 1 to 65535")] = 3400
    public_url: Annotated[
        str | None, Key("PUBLIC_URL", "an http or https address that recipients can open")
    ] = None
    cors_origins: Annotated[
        tuple[str, ...], Key("CORS_ORIGINS", "origins such as https://app.example.com, or *")
    ] = ("http://localhost:3000", "http://localhost:5173")
    admin_api_key: Annotated[Secret | None, Key("ADMIN_API_KEY", "a secret")] = None
    readonly_api_key: Annotated[Secret | None, Key("READONLY_API_KEY", "a secret")] = None
    jwt_secret: Annotated[Secret | None, Key("JWT_SECRET", "a secret")] = None


class DatabaseSettings(Struct, frozen=True):
    """Without a url, `tocsin dev` starts a PostgreSQL of its own; the rest refuses to start."""

    url: Annotated[
        Secret | None, Key("DATABASE_URL", "postgresql://user:password@host:5432/name")
    ] = None
    max_connections: Annotated[_Count, Key("DATABASE_MAX_CONNECTIONS", "a number from 1")] = 10
    queue_connections: Annotated[_Count, Key("DATABASE_QUEUE_CONNECTIONS", "a number from 1")] = 6


class Pacing(Struct, frozen=True):
    """Calls per second that one provider account takes; None: what the provider is known for."""

    email_per_sec: Annotated[
        Annotated[float, Meta(ge=0, le=100_000)] | None,
        Key("EMAIL_RATE_PER_SEC", "a number, 0 for no limit"),
    ] = None


class Worker(Struct, frozen=True):
    """The delivery loops. poll_interval_ms is the wait when no hint comes; lease_s how long the work
    of a worker that died waits for another.
    """

    poll_interval_ms: Annotated[
        Annotated[int, Meta(ge=10, le=60_000)],
        Key("WORKER_POLL_INTERVAL_MS", "milliseconds, 10 to 60000"),
    ] = 500
    batch_size: Annotated[
        Annotated[int, Meta(ge=1, le=5_000)], Key("WORKER_BATCH_SIZE", "a number, 1 to 5000")
    ] = 500
    max_attempts: Annotated[
        Annotated[int, Meta(ge=1, le=50)], Key("WORKER_MAX_ATTEMPTS", "a number, 1 to 50")
    ] = 5
    lease_s: Annotated[
        Annotated[float, Meta(ge=1, le=600)],
        Key("WORKER_LEASE_SECS", "seconds, 1 to 600"),
    ] = 30.0
    pacing: Pacing = Pacing()


class Resend(Struct, frozen=True):
    """A Resend account."""

    api_key: Annotated[Secret | None, Key("RESEND_API_KEY", "a secret")] = None
    base_url: Annotated[str, Key("RESEND_BASE_URL", "an http or https address")] = (
        "https://api.resend.com"
    )


class Smtp(Struct, frozen=True):
    """A mail server. port None: 465 with security tls, else 587."""

    host: Annotated[str | None, Key("SMTP_HOST", "a host name")] = None
    port: Annotated[_Port | None, Key("SMTP_PORT", "a TCP port, 1 to 65535")] = None
    username: Annotated[str | None, Key("SMTP_USERNAME", "text")] = None
    password: Annotated[Secret | None, Key("SMTP_PASSWORD", "a secret")] = None
    security: Annotated[
        Literal["starttls", "tls", "none"], Key("SMTP_SECURITY", "starttls, tls or none")
    ] = "starttls"


class Email(Struct, frozen=True):
    """provider None: resend if it has a key, else smtp if it has a host, else none.

    log_batch: messages in one call of the provider `log`.
    """

    provider: Annotated[
        Literal["resend", "smtp", "log", "none"] | None,
        Key("EMAIL_PROVIDER", "resend, smtp, log or none"),
    ] = None
    from_email: Annotated[str | None, Key("EMAIL_FROM", "an email address")] = None
    from_name: Annotated[str | None, Key("EMAIL_FROM_NAME", "text")] = None
    log_batch: Annotated[
        Annotated[int, Meta(ge=1, le=1_000)], Key("EMAIL_LOG_BATCH", "a number, 1 to 1000")
    ] = 100
    resend: Resend = Resend()
    smtp: Smtp = Smtp()


class Connectors(Struct, frozen=True):
    """One table per channel that goes through a provider."""

    email: Email = Email()


class Log(Struct, frozen=True):
    """format auto: lines for people on a terminal, JSON elsewhere."""

    level: Annotated[
        Literal["debug", "info", "warning", "error"],
        Key("LOG_LEVEL", "debug, info, warning or error"),
    ] = "info"
    format: Annotated[
        Literal["auto", "console", "json"], Key("LOG_FORMAT", "auto, console or json")
    ] = "auto"


class Settings(Struct, frozen=True):
    """All of it. data_dir is where `tocsin dev` keeps its PostgreSQL."""

    server: Server = Server()
    database: DatabaseSettings = DatabaseSettings()
    worker: Worker = Worker()
    connectors: Connectors = Connectors()
    log: Log = Log()
    data_dir: Annotated[Path, Key("TOCSIN_DATA", "a directory")] = Path(_DATA)


class BadSettings(TocsinError):
    """`problems`: one sentence each, naming the key and what its value must be."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__(
            "bad_settings",
            "\n".join(problems),
            remedy="correct the settings named above and start again",
        )
        self.problems = problems


def load(env: Mapping[str, str], path: Path | None = None) -> Settings:
    """From `path`, else the file TOCSIN_CONFIG names, else ./tocsin.toml if there is one."""
    named = path or (Path(env["TOCSIN_CONFIG"]) if env.get("TOCSIN_CONFIG") else None)
    try:
        text = (named or Path(FILE)).read_text()
    except FileNotFoundError:
        if named is not None:
            raise BadSettings([f"{named} is not there"]) from None
        text = ""
    except (OSError, UnicodeDecodeError) as error:
        raise BadSettings([f"{named or FILE} cannot be read: {type(error).__name__}"]) from None
    return parse(env, text, named=str(named or FILE))


def parse(env: Mapping[str, str], toml: str, *, named: str = FILE) -> Settings:
    """From the environment and the text of a TOML file. Raises BadSettings."""
    try:
        given = tomllib.loads(toml)
    except tomllib.TOMLDecodeError as error:
        raise BadSettings([f"{named} is not TOML: {error}"]) from None
    given.setdefault("data_dir", _default_data_dir(env))
    known = {path for path, _ in _leaves(Settings)}
    tables = {path[:length] for path in known for length in range(1, len(path))}
    problems = [
        f"{named}: {_unknown(path, known)}" for path in _paths(given) if path not in known | tables
    ]
    settings = _build(Settings, given, env, problems, (named,))
    if not problems:
        settings = _completed(settings)
        problems = list(_contradictions(settings))
    if problems:
        raise BadSettings(problems)
    return settings


def shown(settings: Settings) -> dict[str, object]:
    """For `doctor` and logs: plain values, secrets masked."""
    plain: dict[str, object] = msgspec.to_builtins(settings, enc_hook=str)
    return plain


def variables() -> dict[str, str]:
    """The environment variable of each setting, by its dotted path."""
    return {".".join(path): key.env for path, key in _leaves(Settings)}


def database_url(settings: Settings) -> str:
    """The configured database. Raises Conflict when there is none."""
    if not settings.database.url:
        raise Conflict(
            "no_database",
            "no database is configured",
            remedy="set DATABASE_URL to postgresql://user:password@host:5432/name, or start "
            "`tocsin dev`, which brings its own",
        )
    return settings.database.url.reveal()


def _default_data_dir(env: Mapping[str, str]) -> str:
    if env.get("XDG_DATA_HOME"):
        return f"{env['XDG_DATA_HOME']}/tocsin"
    return f"{env['HOME']}/.local/share/tocsin" if env.get("HOME") else _DATA


def _leaves(
    kind: type[Struct], prefix: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Key]]:
    for name, annotation in get_type_hints(kind, include_extras=True).items():
        if get_origin(annotation) is None:
            yield from _leaves(annotation, (*prefix, name))
        else:
            yield (*prefix, name), _key(annotation)


def _key(annotation: Any) -> Key:
    return next(part for part in get_args(annotation) if isinstance(part, Key))


def _paths(given: Mapping[str, Any], prefix: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, value in given.items():
        if isinstance(value, dict) and value:
            yield from _paths(value, (*prefix, name))
        else:
            yield (*prefix, name)


def _unknown(path: tuple[str, ...], known: set[tuple[str, ...]]) -> str:
    if path[0] == "projects":
        return "projects live in the database: create them with POST /v1/admin/projects"
    dotted = {".".join(names): names[-1] for names in sorted(known)}
    same = [name for name, last in dotted.items() if last == path[-1]]
    near = difflib.get_close_matches(".".join(path), same or list(dotted), n=1, cutoff=0.0)
    return f"{'.'.join(path)} is no setting; did you mean {near[0]}?"


def _build(
    kind: type[_S],
    given: Mapping[str, Any],
    env: Mapping[str, str],
    problems: list[str],
    path: tuple[str, ...],
) -> _S:
    """A struct of what is given; `path` begins with the file's name. Adds to `problems`."""
    values: dict[str, object] = {}
    for name, annotation in get_type_hints(kind, include_extras=True).items():
        where = f"{path[0]}: {'.'.join((*path[1:], name))}"
        if get_origin(annotation) is None:
            table = given.get(name, {})
            if not isinstance(table, dict):
                problems.append(f"{where} must be a table")
                table = {}
            values[name] = _build(annotation, table, env, problems, (*path, name))
            continue
        key = _key(annotation)
        text = env.get(key.env, "").strip()
        if not text and name not in given:
            continue
        try:
            values[name] = _value(annotation, text or given[name], lax=bool(text))
        except msgspec.ValidationError:
            problems.append(f"{key.env if text else where} must be {key.meaning}")
    return kind(**values)


def _value(annotation: Any, raw: Any, *, lax: bool) -> object:
    """The typed value; `lax` reads numbers and lists out of an environment variable's text."""
    if lax and get_origin(get_args(annotation)[0]) is tuple:
        raw = [part.strip() for part in raw.split(",") if part.strip()]
    value: object = msgspec.convert(raw, annotation, strict=not lax, dec_hook=_decoded)
    return value


def _decoded(kind: type, raw: Any) -> object:
    if not isinstance(raw, str):
        raise TypeError
    return kind(raw)


def _completed(settings: Settings) -> Settings:
    """What follows from what was given: the provider, the SMTP port, addresses in one form."""
    replace = msgspec.structs.replace
    server, email = settings.server, settings.connectors.email
    smtp = email.smtp
    if smtp.port is None:
        smtp = replace(smtp, port=465 if smtp.security == "tls" else 587)
    provider = email.provider
    if provider is None:
        provider = "resend" if email.resend.api_key else "smtp" if smtp.host else "none"
    email = replace(email, provider=provider, smtp=smtp)
    if server.public_url is not None:
        server = replace(server, public_url=server.public_url.rstrip("/"))
    connectors = replace(settings.connectors, email=email)
    return replace(settings, server=server, connectors=connectors)


def _contradictions(settings: Settings) -> Iterator[str]:
    yield from _bad_server(settings.server)
    yield from _bad_email(settings.connectors.email)
    url = settings.database.url
    if url and urlsplit(url.reveal()).scheme not in {"postgresql", "postgres"}:
        yield "DATABASE_URL must be postgresql://user:password@host:5432/name"


def _bad_server(server: Server) -> Iterator[str]:
    if server.public_url is not None and not _is_web(server.public_url):
        yield "PUBLIC_URL must be an http or https address that recipients can open"
    for origin in server.cors_origins:
        if origin != "*" and not (_is_web(origin) and urlsplit(origin).path == ""):
            yield f"CORS_ORIGINS: {origin} must be scheme://host[:port] without a path, or *"
    for name, secret in (
        ("ADMIN_API_KEY", server.admin_api_key),
        ("READONLY_API_KEY", server.readonly_api_key),
        ("JWT_SECRET", server.jwt_secret),
    ):
        if secret and secret.reveal() in _PUBLISHED:
            yield f"{name} is a published example, known to everybody; {_MAKE_ONE}"
        elif secret and len(secret.reveal()) < SECRET_LENGTH_MIN:
            yield f"{name} must have {SECRET_LENGTH_MIN} characters or more; {_MAKE_ONE}"
    if server.admin_api_key and server.admin_api_key == server.readonly_api_key:
        yield f"READONLY_API_KEY must differ from ADMIN_API_KEY; {_MAKE_ONE}"


def _bad_email(email: Email) -> Iterator[str]:
    if email.from_email is not None and not _ADDRESS.fullmatch(email.from_email):
        yield "EMAIL_FROM must be an email address alone; the name goes into EMAIL_FROM_NAME"
    if email.provider in {"resend", "smtp"} and email.from_email is None:
        yield f"EMAIL_FROM is missing: {email.provider} needs an address to send from"
    if email.provider == "resend" and not email.resend.api_key:
        yield "RESEND_API_KEY is missing: EMAIL_PROVIDER is resend"
    if not _is_web(email.resend.base_url):
        yield "RESEND_BASE_URL must be an http or https address"
    if email.provider == "smtp" and not email.smtp.host:
        yield "SMTP_HOST is missing: EMAIL_PROVIDER is smtp"
    if bool(email.smtp.username) != bool(email.smtp.password):
        yield "SMTP_USERNAME and SMTP_PASSWORD go together: set both or neither"


def _is_web(address: str) -> bool:
    try:
        parts = urlsplit(address)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
