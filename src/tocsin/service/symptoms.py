"""Symptoms: what each fact about a deployment means to its operator, and what to do. Pure."""

import difflib
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

from tocsin.service.finding import Finding, span
from tocsin.settings import Email, Settings, variables
from tocsin.store.invariants import MEANINGS, Violation
from tocsin.store.migrate import Migration, known_migrations
from tocsin.store.vitals import Holder, Server

#: Beyond this our log lines and the database's rows no longer tell one story.
SKEW_MAX_S: Final = 5.0
#: A transaction that is older keeps dead rows of the queue from being removed.
HELD_MAX: Final = timedelta(seconds=30)

#: From 0 to 1, how like one of our variables another must be to be taken for a slip of the pen.
LIKENESS: Final = 0.9

_OTHER_VARIABLES: Final = ("TOCSIN_CONFIG", "TOCSIN_PG_BIN")
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
#: Reserved by RFC 2606 and RFC 6761: no mail comes from there.
_RESERVED: Final = (
    ".example", ".test", ".invalid", ".example.com", ".example.net", ".example.org",
)  # fmt: skip


def of_settings(settings: Settings, serving: Collection[str] = ()) -> Iterator[Finding]:
    """Email that goes nowhere, from nobody, or in the clear.

    serving: the providers through which running workers deliver email, whatever is configured here.
    """
    email = settings.connectors.email
    provider = email.provider or "none"
    if serving and provider not in serving:
        yield _elsewhere(provider, serving)
        return
    match provider:
        case "none":
            yield Finding(
                "warning",
                "email_not_configured",
                "no email provider is configured: sends on email are refused",
                "set SMTP_HOST or RESEND_API_KEY, and EMAIL_FROM",
            )
            return
        case "log":
            yield Finding(
                "warning",
                "email_only_logged",
                "the email provider is `log`: sends on email are accepted, and nothing is sent",
                "set SMTP_HOST or RESEND_API_KEY, and EMAIL_FROM",
            )
            return
        case _:
            unused = _unused(email)
            also = f"; {unused} is set as well, and not used" if unused else ""
            yield Finding("ok", "email_configured", f"email goes through {provider}{also}")
    domain = (email.from_email or "").rpartition("@")[2].lower()
    if f".{domain}".endswith(_RESERVED):
        yield Finding(
            "warning",
            "sender_reserved",
            f"EMAIL_FROM is in {domain}, a domain that is reserved for examples",
            "set EMAIL_FROM to an address of a domain of yours",
        )
    smtp = email.smtp
    if provider == "smtp" and smtp.security == "none" and smtp.host not in _LOOPBACK:
        yield Finding(
            "warning",
            "smtp_in_the_clear",
            "mail leaves this machine unencrypted: SMTP_SECURITY is none",
            "set SMTP_SECURITY to starttls or tls",
        )
    if settings.server.public_url is None:
        yield Finding(
            "warning",
            "no_public_url",
            "PUBLIC_URL is not set: marketing mail carries no unsubscribe link",
            "set PUBLIC_URL to the address at which recipients reach `tocsin serve`",
        )


def of_environment(names: Iterable[str]) -> Iterator[Finding]:
    """Variables that are nearly one of ours: a misspelt one has no effect and no error."""
    known = {*variables().values(), *_OTHER_VARIABLES}
    for name in sorted(set(names) - known):
        for meant in difflib.get_close_matches(name, known, n=1, cutoff=LIKENESS):
            yield Finding(
                "warning",
                "setting_misspelt",
                f"{name} is in the environment and is no setting",
                f"if {meant} is meant, rename it",
            )


def _elsewhere(provider: str, serving: Collection[str]) -> Finding:
    """The settings of this command are not those of what runs."""
    running = " and ".join(sorted(serving))
    return Finding(
        "warning",
        "email_settings_differ",
        f"running workers deliver email through {running}; the settings here say {provider}",
        "run `tocsin doctor` with the environment of `tocsin serve` and `tocsin worker`, or "
        "restart those with this one",
    )


def _unused(email: Email) -> str:
    """What is set of the provider that was not chosen."""
    if email.provider == "resend":
        return "SMTP_HOST" if email.smtp.host else ""
    return "RESEND_API_KEY" if email.resend.api_key else ""


def of_server(found: Server) -> Iterator[Finding]:
    """Settings of PostgreSQL that would make an acknowledgement a lie, or the queue slow."""
    yield Finding("ok", "database", f"PostgreSQL {found.version}")
    if found.standby:
        yield Finding(
            "critical",
            "database_read_only",
            "the database is a standby and takes no writes",
            "point DATABASE_URL at the primary",
        )
    elif found.read_only:
        yield Finding(
            "critical",
            "database_read_only",
            "the database takes no writes: default_transaction_read_only is on",
            "set it off for this database and role, or point DATABASE_URL at the primary",
        )
    for name, is_on in (("fsync", found.fsync), ("full_page_writes", found.full_page_writes)):
        if not is_on:
            yield Finding(
                "critical",
                f"{name}_off",
                f"{name} is off: what was acknowledged is lost when the machine fails",
                f"set {name} = on in postgresql.conf and reload",
            )
    if found.synchronous_commit == "off":
        yield Finding(
            "critical",
            "commits_not_durable",
            "synchronous_commit is off: acknowledged sends are lost, and some go out twice, when "
            "PostgreSQL stops",
            "set synchronous_commit = on for this database",
        )
    if not found.autovacuum:
        yield Finding(
            "warning",
            "autovacuum_off",
            "autovacuum is off: the queue grows slower with every job",
            "set autovacuum = on in postgresql.conf and reload",
        )


def of_migrations(todo: Sequence[Migration]) -> Finding:
    if not todo:
        return Finding("ok", "migrations", "the database is of this version")
    named = ", ".join(migration.title for migration in todo)
    return Finding(
        # Older workers go on beside this one; where nothing was ever applied, none can run.
        "critical" if len(todo) == len(known_migrations()) else "warning",
        "migrations_pending",
        f"not applied: {named}; the remaining checks were left out",
        "run `tocsin migrate`; `tocsin serve` and `tocsin worker` also do it when they start",
    )


def of_clock(ahead_s: float) -> Finding:
    """ahead_s: the database's clock less this machine's."""
    if abs(ahead_s) <= SKEW_MAX_S:
        return Finding("ok", "clock", f"the clocks differ by {abs(ahead_s):.1f} s")
    which = "ahead of" if ahead_s > 0 else "behind"
    return Finding(
        "warning",
        "clock_skew",
        f"the database's clock is {abs(ahead_s):.0f} s {which} this machine's; Tocsin goes by the "
        "database's",
        "synchronise both with NTP",
    )


def of_listening(*, heard: bool) -> Finding:
    if heard:
        return Finding("ok", "listen", "notifications come through")
    return Finding(
        "warning",
        "not_listening",
        "LISTEN does not work through this DATABASE_URL: Tocsin polls, and is some 100 ms slower",
        "connect without a pooler, or with one in session mode",
    )


def of_holders(found: Iterable[Holder], now: datetime) -> Iterator[Finding]:
    for holder in found:
        age = "" if holder.since is None else f" for {span(now - holder.since)}"
        pid = "" if holder.pid is None else f", pid {holder.pid}"
        match holder.kind:
            case "transaction":
                action = f"end it, or SELECT pg_terminate_backend({holder.pid})"
            case "prepared transaction":
                action = "COMMIT PREPARED or ROLLBACK PREPARED it"
            case _:
                action = "drop the slot if nobody reads it any more"
        yield Finding(
            "warning",
            "old_rows_held",
            f"a {holder.kind} ({holder.name}{pid}) has kept dead rows{age}",
            action,
        )


def of_partitions(missing_today: Sequence[str], missing_tomorrow: Sequence[str]) -> Finding:
    if missing_today:
        return Finding(
            "critical",
            "partitions_missing",
            f"today's partitions are missing: {', '.join(missing_today)}; nothing can be stored",
            "start `tocsin serve` or `tocsin worker`: either makes them",
        )
    if missing_tomorrow:
        return Finding(
            "warning",
            "partitions_not_ahead",
            f"tomorrow's partitions are missing: {', '.join(missing_tomorrow)}",
            "start a `tocsin worker`: it makes them days ahead",
        )
    return Finding("ok", "partitions", "partitions are made ahead")


def of_violations(found: Sequence[Violation]) -> Iterator[Finding]:
    if not found:
        yield Finding("ok", "invariants", "every invariant holds")
    for broken in found:
        yield Finding(
            "critical",
            f"invariant_{broken.kind}",
            f"{broken.count} {MEANINGS[broken.kind]}: {', '.join(broken.samples)}",
            "this is a defect of Tocsin: keep the database as it is and report these ids",
        )
