"""Symptoms: what each fact about a deployment means to its operator, and what to do. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, Literal

from msgspec import Struct

from tocsin.settings import Settings
from tocsin.store.invariants import MEANINGS, Violation
from tocsin.store.migrate import Migration
from tocsin.store.vitals import Backlog, Holder, Server, Stale
from tocsin.store.workers import WorkerRow

#: Beyond this our log lines and the database's rows no longer tell one story.
SKEW_MAX_S: Final = 5.0
#: A transaction that is older keeps dead rows of the queue from being removed.
HELD_MAX: Final = timedelta(seconds=30)
#: A due job that waits longer, in a lane that is served and not paused, waits too long.
WAIT_MAX: Final = timedelta(seconds=60)
#: Scheduled work is promoted within a second; a lease is reaped within seconds of its end.
OVERDUE_MAX: Final = timedelta(seconds=30)

_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
#: Reserved by RFC 2606 and RFC 6761: no mail comes from there.
_RESERVED: Final = (
    ".example", ".test", ".invalid", ".example.com", ".example.net", ".example.org",
)  # fmt: skip

Severity = Literal["ok", "warning", "critical"]


class Finding(Struct, frozen=True):
    """code: stable; action: what to do now, empty when all is well."""

    severity: Severity
    code: str
    message: str
    action: str = ""


def of_settings(settings: Settings) -> Iterator[Finding]:
    """Email that goes nowhere, from nobody, or in the clear."""
    email = settings.connectors.email
    match email.provider:
        case None | "none":
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
                "the email provider is `log`: nothing is sent",
                "set SMTP_HOST or RESEND_API_KEY, and EMAIL_FROM",
            )
            return
        case provider:
            yield Finding("ok", "email_configured", f"email goes through {provider}")
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
        "warning",
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
        age = "" if holder.since is None else f" for {_span(now - holder.since)}"
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


def of_workers(alive: Sequence[WorkerRow], lanes: Mapping[int, str]) -> Iterator[Finding]:
    """lanes: each lane's name by its number."""
    if not alive:
        yield Finding(
            "warning",
            "no_worker",
            "no worker makes progress: what is accepted waits",
            "start `tocsin worker`",
        )
    for worker in alive:
        served = ", ".join(lanes.get(lane, f"lane {lane}") for lane in worker.lanes)
        text = f"worker {worker.id} on {worker.host}, version {worker.version}, serves {served}"
        yield Finding("ok", "worker", text)


def of_lanes(
    found: Iterable[Backlog], alive: Sequence[WorkerRow], now: datetime
) -> Iterator[Finding]:
    """Lanes that rest, that nobody serves, or that do not keep up."""
    served = {lane for worker in alive for lane in worker.lanes}
    for lane in found:
        name = name_of(lane)
        if lane.paused_until is not None and lane.paused_until > now:
            why = lane.pause_reason or lane.pause_code
            yield Finding(
                "warning",
                "lane_paused",
                f"{name} rests for {_span(lane.paused_until - now)} ({lane.pause_code}: {why}); "
                f"{lane.ready} due jobs wait",
                "nothing, if the provider asked for it: it goes on by itself; otherwise correct "
                "the account's settings",
            )
        elif lane.ready and lane.lane not in served:
            yield Finding(
                "critical",
                "lane_without_worker",
                f"{lane.ready} due jobs wait in {name} and no worker serves it",
                f"start `tocsin worker` with {lane.provider} configured for {lane.channel}",
            )
        elif lane.oldest is not None and now - lane.oldest > WAIT_MAX:
            yield Finding(
                "warning",
                "lane_behind",
                f"{lane.ready} due jobs wait in {name}, the oldest for {_span(now - lane.oldest)}",
                "start more workers, or wait until the backlog is done",
            )
        elif lane.ready:
            yield Finding("ok", "lane", f"{lane.ready} due jobs wait in {name}")


def of_overdue(next_due: datetime | None, stale: Stale, now: datetime) -> Iterator[Finding]:
    """Scheduled work that nobody promotes, leases that nobody takes back."""
    if next_due is not None and now - next_due > OVERDUE_MAX:
        yield Finding(
            "warning",
            "scheduled_overdue",
            f"scheduled work has been due for {_span(now - next_due)} and is not queued",
            "start `tocsin worker`; if one runs, look at its log",
        )
    if stale.count and stale.first is not None:
        yield Finding(
            "warning",
            "leases_stale",
            f"{stale.count} leases of dead workers wait, the first for {_span(now - stale.first)}",
            "start `tocsin worker` with the same providers: it takes them back",
        )


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


def name_of(lane: Backlog) -> str:
    """A lane as people know it: `email (smtp)`."""
    account = "" if lane.account == "default" else f" {lane.account}"
    return f"{lane.channel} ({lane.provider}{account})"


def _span(time: timedelta) -> str:
    seconds = int(time.total_seconds())
    if seconds < 120:
        return f"{seconds} s"
    if seconds < 7_200:
        return f"{seconds // 60} min"
    return f"{seconds // 3_600} h" if seconds < 172_800 else f"{seconds // 86_400} days"
