"""Jobs: look one up, cancel it, try it again."""

import asyncio
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec
from msgspec import Struct

from tocsin.domain.content import Content
from tocsin.domain.errors import Conflict, NotFound
from tocsin.domain.ids import time_of
from tocsin.domain.job import State, status_of
from tocsin.domain.priority import class_of
from tocsin.service.app import App
from tocsin.service.principal import ProjectKey
from tocsin.store import jobs as rows
from tocsin.store.jobs import JobRow

#: How long a cancel waits to learn whether the delivery that was under way could still be stopped.
CANCEL_LOOKS = 20
CANCEL_LOOK_S = 0.05
_RETRYABLE = frozenset({"failed", "cancelled", "unknown"})


class JobView(Struct, frozen=True):
    """GET /v1/jobs/:id, field for field as notifyd's."""

    id: UUID
    channel: str
    subscriber_id: str | None
    recipient: str
    template_id: str | None
    topic: str | None
    status: str
    scheduled_at: datetime
    attempts: int
    max_attempts: int
    priority: int
    provider: str | None
    provider_message_id: str | None
    created_at: datetime
    sent_at: datetime | None
    delivered_at: datetime | None
    bounced_at: datetime | None
    opened_at: datetime | None
    clicked_at: datetime | None
    provider_events: list[dict[str, Any]]
    email_envelope: dict[str, Any] | None
    error: str | None
    error_code: str | None
    next_retry_at: datetime | None


class Cancelled(Struct, frozen=True):
    success: bool
    id: UUID


class RetriedJob(Struct, frozen=True):
    id: UUID
    project_id: str
    channel: str
    status: str


class Retried(Struct, frozen=True):
    success: bool
    job: RetriedJob


async def get(app: App, who: ProjectKey, job_id: UUID) -> JobView:
    """One job of this project."""
    row = await rows.job(app.db.general, job_id, who.number)
    if row is None:
        raise _unknown()
    content = _content(row)
    skipped = row.state == State.SKIPPED
    envelope = None
    if row.channel == "email":
        envelope = {"to": [row.recipient], "cc": list(content.cc), "reply_to": content.reply_to}
    return JobView(
        id=row.id,
        channel=row.channel,
        subscriber_id=row.subscriber_id,
        recipient=row.recipient,
        template_id=content.template,
        topic=content.topic,
        status=_status(row),
        scheduled_at=row.scheduled_at,
        attempts=row.tries,
        max_attempts=row.max_attempts,
        priority=row.priority,
        provider="skipped" if skipped else (row.provider if row.state is not None else None),
        provider_message_id=row.provider_message_id,
        created_at=time_of(row.id),
        sent_at=row.at if skipped else row.sent_at,
        delivered_at=None,
        bounced_at=None,
        opened_at=None,
        clicked_at=None,
        provider_events=[],
        email_envelope=envelope,
        error=_error(row),
        error_code=row.code,
        next_retry_at=row.next_at if _status(row) == "retry" else None,
    )


async def cancel(app: App, who: ProjectKey, job_id: UUID) -> Cancelled:
    """After a success no provider call for this job starts (linearizable).

    NotFound for an unknown job; Conflict when it is being delivered now or has ended. A cancel that came
    too late still stops the attempts that would follow.
    """
    now = app.clock.now()
    async with app.db.general.transaction() as tx:
        if not await rows.lock(tx, job_id, who.number):
            raise _unknown()
        row = await rows.job(tx, job_id, who.number)
        assert row is not None
        status = _status(row)
        if status == "cancelled":
            return Cancelled(success=True, id=job_id)
        if status not in ("pending", "retry", "processing"):
            raise Conflict(
                "job_ended",
                f"the job has ended already: {status}",
                remedy="nothing to do: what has ended cannot be cancelled",
                extra={"status": status},
            )
        taken = await rows.unschedule(
            tx,
            queue_class=class_of(row.priority),
            due_at=row.next_at or row.scheduled_at,
            job_id=job_id,
        )
        if taken is not None:
            await rows.cancel_unsent(
                tx,
                job_id,
                project=who.number,
                lane=row.lane,
                attempt=taken[0] + 1,
                tries=taken[1],
                now=now,
                code="cancelled",
            )
        else:
            await rows.mark_cancelled(tx, job_id, project=who.number, now=now, code="cancelled")
        if row.idempotency is not None:
            await rows.free_key(tx, who.number, row.idempotency, job_id)
    if taken is None:
        await _await_end(app, who, job_id)
    return Cancelled(success=True, id=job_id)


async def _await_end(app: App, who: ProjectKey, job_id: UUID) -> None:
    """Return if the mark, which is committed now, stops the job; Conflict if it came too late.

    A claim that starts after the mark sees it and sends nothing. One that began before may have missed it:
    what came of that is known a moment later.
    """
    for _ in range(CANCEL_LOOKS):
        row = await rows.job(app.db.general, job_id, who.number)
        if row is None or (not row.leased and _status(row) == "cancelled"):
            return
        if not row.leased:
            break
        await asyncio.sleep(CANCEL_LOOK_S)
    raise Conflict(
        "job_in_delivery",
        "the job is being delivered; this attempt could no longer be stopped",
        remedy="look at its status; no further attempt will follow",
        extra={"status": "processing"},
    )


async def retry(app: App, who: ProjectKey, job_id: UUID) -> Retried:
    """Queue a job that failed, was cancelled, or whose outcome is unknown once more; not before its time."""
    now = app.clock.now()
    async with app.db.general.transaction() as tx:
        if not await rows.lock(tx, job_id, who.number):
            raise _unknown()
        row = await rows.job(tx, job_id, who.number)
        assert row is not None
        status = _status(row)
        if status not in _RETRYABLE or row.state is None:
            raise Conflict(
                "job_not_retryable",
                f"only a failed, cancelled or unknown job can be tried again; this one is {status}",
                remedy="wait until it has ended",
                extra={"status": status},
            )
        await rows.unmark_cancelled(tx, job_id)
        await rows.again(
            tx,
            job_id,
            project=who.number,
            lane=row.lane,
            queue_class=class_of(row.priority),
            attempt=row.attempt + 1,
            now=now,
            due_at=max(now, row.scheduled_at),
        )
    app.notifier.hint("scheduled")
    return Retried(
        success=True,
        job=RetriedJob(id=job_id, project_id=who.id, channel=row.channel, status="retry"),
    )


def _status(row: JobRow) -> str:
    return status_of(
        row.state,
        waits=row.next_at is not None,
        leased=row.leased,
        cancelled=row.cancelled is not None and row.cancelled != "already_sent",
    )


def _content(row: JobRow) -> Content:
    return Content() if row.content is None else msgspec.json.decode(row.content, type=Content)


def _error(row: JobRow) -> str | None:
    if row.state in (None, State.SENT):
        return None
    return row.detail or row.code


def _unknown() -> NotFound:
    return NotFound("job_not_found", "Job not found", remedy="check the id and the project's key")
