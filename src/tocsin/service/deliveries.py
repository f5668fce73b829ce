"""Deliveries: what workers, lanes and providers come to, and what their operator does about it. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from tocsin.service.finding import Finding, span
from tocsin.store.progress import Reason, Recent
from tocsin.store.vitals import Backlog, Stale
from tocsin.store.workers import WorkerRow

#: A due job that waits longer, in a lane that is served and not paused, waits too long.
WAIT_MAX: Final = timedelta(seconds=60)
#: Scheduled work is promoted within a second; a lease is reaped within seconds of its end.
OVERDUE_MAX: Final = timedelta(seconds=30)
#: What counts as recent.
RECENT: Final = timedelta(minutes=10)
#: As many failures and nothing sent mean that nothing can be sent.
FAILING_MIN: Final = 3
#: More failures than this share of all attempts are more than dead addresses.
FAILING_SHARE: Final = 0.1
#: A rest that ended this recently begins again with the next call.
RESTED_MAX: Final = timedelta(seconds=10)

_CHECKS: Final = {
    "smtp": "check SMTP_HOST, SMTP_PORT, SMTP_SECURITY, SMTP_USERNAME and SMTP_PASSWORD, and that "
    "the server can be reached from the worker",
    "resend": "check RESEND_API_KEY, EMAIL_FROM and the domain at Resend, and that "
    "api.resend.com can be reached from the worker",
}


def of_workers(
    alive: Sequence[WorkerRow], lanes: Mapping[int, str], now: datetime
) -> Iterator[Finding]:
    """lanes: each lane's name by its number."""
    if not alive:
        yield Finding(
            "critical",
            "no_worker",
            "no worker makes progress: what is accepted waits",
            "start `tocsin worker`",
        )
    for worker in alive:
        served = ", ".join(lanes.get(lane, f"lane {lane}") for lane in worker.lanes)
        age = span(max(now - worker.progressed_at, timedelta()))
        text = (
            f"worker {worker.id} on {worker.host}, version {worker.version}, serves {served}; "
            f"seen {age} ago"
        )
        yield Finding("ok", "worker", text)


def of_lanes(
    found: Iterable[Backlog],
    recent: Mapping[int, Recent],
    alive: Sequence[WorkerRow],
    now: datetime,
) -> Iterator[Finding]:
    """Lanes that rest, that nobody serves, or that do not keep up. recent: by lane."""
    served = {lane for worker in alive for lane in worker.lanes}
    for lane in found:
        name = name_of(lane)
        seen = recent.get(lane.lane)
        if lane.ready and lane.lane not in served:
            yield Finding(
                "critical",
                "lane_without_worker",
                f"{lane.ready} due jobs wait in {name} and no worker serves it",
                f"start `tocsin worker` with {lane.provider} configured for {lane.channel}, until "
                "they are sent",
            )
        elif (rest := _rest(lane, now)) is not None:
            yield rest
        elif lane.oldest is not None and now - lane.oldest > WAIT_MAX:
            yield _behind(lane, name, sent=0 if seen is None else seen.sent, now=now)
        elif lane.ready:
            yield Finding("ok", "lane", f"{lane.ready} due jobs wait in {name}")
        if seen is not None and seen.held_since and now - seen.held_since > WAIT_MAX:
            yield Finding(
                "warning",
                "calls_slow",
                f"calls of {name} have been under way for {span(now - seen.held_since)}: the "
                "provider answers slowly or not at all",
                _check(lane),
            )


def of_providers(
    found: Iterable[Backlog], recent: Mapping[int, Recent], reasons: Mapping[int, Reason]
) -> Iterator[Finding]:
    """Lanes whose attempts fail more than some dead addresses explain."""
    for lane in found:
        seen = recent.get(lane.lane)
        if seen is None:
            continue
        failed = seen.bad + seen.parked
        total = seen.sent + failed
        if failed <= FAILING_SHARE * total:
            continue
        reason = reasons.get(lane.lane)
        why = "" if reason is None else f", most often {reason.code} (job {reason.job})"
        repeated = f"; {seen.parked} are kept to be repeated as they are" if seen.parked else ""
        yield Finding(
            "critical" if not seen.sent and failed >= FAILING_MIN else "warning",
            "provider_failing",
            f"{failed} of {total} attempts of {name_of(lane)} in the last {span(RECENT)} failed"
            f"{why}{repeated}",
            f"{_check(lane)}; the worker's log has a line for it, and GET /v1/jobs/{{id}} what was "
            "answered",
        )


def of_overdue(next_due: datetime | None, stale: Stale, now: datetime) -> Iterator[Finding]:
    """Scheduled work that nobody promotes, leases that nobody takes back."""
    if next_due is not None and now - next_due > OVERDUE_MAX:
        yield Finding(
            "warning",
            "scheduled_overdue",
            f"scheduled work has been due for {span(now - next_due)} and is not queued",
            "start `tocsin worker`; if one runs, look at its log",
        )
    if stale.count and stale.first is not None:
        yield Finding(
            "warning",
            "leases_stale",
            f"{stale.count} leases of dead workers wait, the first for {span(now - stale.first)}",
            "start `tocsin worker` with the same providers: it takes them back",
        )


def name_of(lane: Backlog) -> str:
    """A lane as people know it: `email (smtp)`."""
    account = "" if lane.account == "default" else f" {lane.account}"
    return f"{lane.channel} ({lane.provider}{account})"


def _rest(lane: Backlog, now: datetime) -> Finding | None:
    """A pause the provider asked for ends by itself; any other goes on until somebody acts."""
    if lane.paused_until is None:
        return None
    left = lane.paused_until - now
    why = lane.pause_reason or lane.pause_code
    told = f"({lane.pause_code}: {why}); {lane.ready} due jobs wait"
    if _was_asked_for(lane.pause_code or ""):
        if left <= timedelta():
            return None
        return Finding(
            "warning",
            "lane_paused",
            f"{name_of(lane)} rests for {span(left)} {told}",
            "nothing: the provider asked for it, and it goes on by itself",
        )
    if left <= -RESTED_MAX or (left <= timedelta() and not lane.ready):
        return None
    return Finding(
        "critical",
        "lane_refused",
        f"nothing leaves through {name_of(lane)} {told}",
        f"{_check(lane)}; it is tried again by itself, and no job fails for it meanwhile",
    )


def _was_asked_for(code: str) -> bool:
    return code == "throttled" or "quota" in code


def _behind(lane: Backlog, name: str, *, sent: int, now: datetime) -> Finding:
    assert lane.oldest is not None
    waits = f"{lane.ready} due jobs wait in {name}, the oldest for {span(now - lane.oldest)}"
    if sent:
        return Finding(
            "warning", "lane_behind", waits, "start more workers, or wait until the backlog is done"
        )
    return Finding(
        "critical",
        "lane_stuck",
        f"{waits}, and nothing was sent in the last {span(RECENT)}",
        f"{_check(lane)}; the worker's log says how its calls end",
    )


def _check(lane: Backlog) -> str:
    return _CHECKS.get(lane.provider, f"look at the worker's log for {lane.provider}")
