"""Batch: one content to many subscribers, in one commit; one job for each person and channel."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

import msgspec
from msgspec import Struct

from tocsin.domain.channel import Channel
from tocsin.domain.content import Content
from tocsin.domain.errors import Conflict, Invalid
from tocsin.domain.idempotency import digest, digests, fingerprint
from tocsin.domain.ids import uuid7s
from tocsin.domain.priority import BULK, class_of
from tocsin.domain.request import BatchRequest
from tocsin.engine.intake import KEY_LIFE
from tocsin.service.app import App
from tocsin.service.draft import canonical, channels_of, draft, priority_of, times_of
from tocsin.service.principal import ProjectKey
from tocsin.service.reply import Reply
from tocsin.service.send import closed, open_channels
from tocsin.store import batch as statements
from tocsin.store import intake as keys
from tocsin.store import templates
from tocsin.store.batch import BatchRows, Tally
from tocsin.store.pool import Connection

#: Rows of one statement.
CHUNK: Final = 5_000
SUBSCRIBER_ID_MAX: Final = 256


class BatchReceipt(Struct, frozen=True):
    """The answer, field for field as notifyd's."""

    success: bool
    jobs_created: int
    jobs_deduplicated: int
    jobs_skipped: int
    jobs_without_address: int
    subscribers: int
    channels: list[str]
    topic: str | None


class _Batch(Struct, frozen=True):
    """A checked batch. whole: the fingerprint of the request; said: the same without its people."""

    project: int
    subscribers: list[str]
    lanes: list[tuple[Channel, int]]
    content: str
    topic: str | None
    template: str | None
    priority: int
    max_attempts: int
    scheduled_at: datetime | None
    expires_at: datetime | None
    key: str | None
    whole: bytes
    said: bytes


async def batch(app: App, who: ProjectKey, request: BatchRequest, key: str | None) -> Reply:
    """Store the batch: all of it or none. The reply is given when it is durable."""
    checked = await _with_template(app, _check(app, who, request, key))
    if key is None:
        return await _store(app, checked)
    with app.intake.holding(who.number, "batch", key):
        return await _store(app, checked)


async def _store(app: App, checked: _Batch) -> Reply:
    now = app.clock.now()
    ids = uuid7s(now, 1 + len(checked.subscribers) * len(checked.lanes))
    async with app.db.general.transaction() as tx:
        if checked.key is not None:
            await _refuse_other_request(tx, checked, now)
        await statements.insert_content(tx, ids[0], checked.project, checked.content)
        tallies = await _enqueue(tx, checked, ids, now)
        created = sum(tally.created for tally in tallies)
        answer = _receipt(checked, tallies)
        replayed = None
        if checked.key is not None:
            if created == 0:
                replayed = await _first_answer(tx, checked, now)
            if replayed is None:
                await _remember(tx, checked, ids[0], answer, now)
    if replayed is not None:
        return Reply(replayed, replayed=True)
    if created:
        due = checked.scheduled_at is None or checked.scheduled_at <= now
        app.notifier.hint(
            *([f"lane:{lane}" for _, lane in checked.lanes] if due else ["scheduled"])
        )
    return Reply(answer)


def _check(app: App, who: ProjectKey, request: BatchRequest, key: str | None) -> _Batch:
    channels = channels_of(request)
    if request.transactional:
        raise Invalid(
            "batch_not_transactional",
            "transactional is not for batches",
            remedy="send each one with POST /v1/send, or leave transactional out",
            field="transactional",
        )
    subscribers = _people(request)
    missing = [c for c in channels if c not in open_channels(app, who, channels)]
    if missing:
        raise Invalid(
            "channel_not_configured",
            "a channel of this batch has no provider, or is not among the project's channels",
            remedy="configure a provider for each channel and allow it to the project, or leave it out",
            field="channels",
            extra={"skipped": [{"channel": c, "reason": closed(app, c)} for c in missing]},
        )
    priority = priority_of(request, BULK)
    scheduled_at, expires_at = times_of(request, app.clock.now())
    content = draft(request, channels, priority)
    return _Batch(
        project=who.number,
        subscribers=subscribers,
        lanes=[(channel, app.lanes[channel]) for channel in channels],
        content=msgspec.json.encode(content).decode(),
        topic=content.topic,
        template=content.template,
        priority=priority,
        max_attempts=app.settings.worker.max_attempts,
        scheduled_at=scheduled_at,
        expires_at=expires_at,
        key=key,
        whole=b"" if key is None else fingerprint(canonical(request)),
        said=b"" if key is None else fingerprint(canonical(request, ("subscribers",))),
    )


async def _with_template(app: App, checked: _Batch) -> _Batch:
    """The batch with its template's topic; refused when a channel would have nothing to say."""
    if checked.template is None:
        return checked
    wanted = [(checked.project, checked.template, channel) for channel, _ in checked.lanes]
    found = await templates.wordings(app.db.general, wanted)
    if len(found) < len(wanted):
        raise Invalid(
            "template_not_found",
            "the template does not exist, or has no variant for a channel of this batch",
            remedy="store it with POST /v1/templates, or send a body",
            field="template",
        )
    topic = checked.topic or next((w.topic for w in found.values() if w.topic), None)
    if topic == checked.topic:
        return checked
    content = msgspec.json.decode(checked.content, type=Content)
    stored = msgspec.json.encode(msgspec.structs.replace(content, topic=topic)).decode()
    return msgspec.structs.replace(checked, topic=topic, content=stored)


def _people(request: BatchRequest) -> list[str]:
    """Each subscriber once, in the order given."""
    if (request.subscribers is None) == (request.segment is None):
        raise Invalid(
            "subscribers_or_segment",
            "exactly one of subscribers and segment is needed",
            remedy="list the subscribers' ids",
            field="subscribers",
        )
    if request.subscribers is None:
        raise Invalid(
            "segments_unsupported",
            "segment cannot be resolved by this version",
            remedy="list the subscribers' ids in subscribers",
            field="segment",
        )
    found = list(dict.fromkeys(request.subscribers))
    for at, subscriber in enumerate(found):
        if not 0 < len(subscriber) <= SUBSCRIBER_ID_MAX or "\0" in subscriber:
            raise Invalid(
                "invalid_subscriber_id",
                f"subscribers[{at}] is empty or longer than {SUBSCRIBER_ID_MAX} characters",
                remedy="use the ids that the subscribers were stored under",
                field=f"subscribers[{at}]",
            )
    return found


async def _enqueue(
    tx: Connection, checked: _Batch, ids: Sequence[UUID], now: datetime
) -> list[Tally]:
    tallies = []
    offset = 1
    for channel, lane in checked.lanes:
        for start in range(0, len(checked.subscribers), CHUNK):
            people = checked.subscribers[start : start + CHUNK]
            rows = BatchRows(
                job_ids=ids[offset : offset + len(people)],
                subscribers=people,
                digests=[]
                if checked.key is None
                else digests("batch", checked.key, people, channel),
                content_id=ids[0],
                project=checked.project,
                lane=lane,
                channel=channel,
                priority=checked.priority,
                queue_class=class_of(checked.priority),
                max_attempts=checked.max_attempts,
                scheduled_at=checked.scheduled_at or now,
                expires_at=checked.expires_at,
                topic=checked.topic or "",
                workflow=checked.template or "",
                fingerprint=checked.said,
            )
            offset += len(people)
            tallies.append(
                await statements.enqueue_batch(tx, rows, now=now, keys_until=now + KEY_LIFE)
            )
    return tallies


def _receipt(checked: _Batch, tallies: Sequence[Tally]) -> bytes:
    return msgspec.json.encode(
        BatchReceipt(
            success=True,
            jobs_created=sum(t.created for t in tallies),
            jobs_deduplicated=sum(t.deduplicated for t in tallies),
            jobs_skipped=sum(t.opted_out for t in tallies),
            jobs_without_address=sum(t.without_address for t in tallies),
            subscribers=len(checked.subscribers),
            channels=[channel for channel, _ in checked.lanes],
            topic=checked.topic,
        )
    )


def _request_digest(checked: _Batch) -> bytes:
    assert checked.key is not None
    return digest("batch request", checked.key)


async def _refuse_other_request(tx: Connection, checked: _Batch, now: datetime) -> None:
    """Conflict when the key stands for another message; other people for the same one are welcome."""
    mark = _request_digest(checked)
    held = (await keys.kept(tx, [(checked.project, mark)], now=now)).get((checked.project, mark))
    if held is not None and held.fingerprint[len(checked.whole) :] != checked.said:
        raise Conflict(
            "idempotency_key_reused",
            "this idempotency key was used for another batch",
            remedy="use a new key for a new batch; repeat the first one unchanged to get its answer",
            field="idempotency_key",
        )


async def _first_answer(tx: Connection, checked: _Batch, now: datetime) -> bytes | None:
    """The first answer to this very request, if there was one."""
    mark = _request_digest(checked)
    held = (await keys.kept(tx, [(checked.project, mark)], now=now)).get((checked.project, mark))
    if held is None or held.fingerprint != checked.whole + checked.said:
        return None
    return held.answer


async def _remember(
    tx: Connection, checked: _Batch, content_id: UUID, answer: bytes, now: datetime
) -> None:
    await statements.remember_answer(
        tx,
        checked.project,
        _request_digest(checked),
        fingerprint=checked.whole + checked.said,
        content_id=content_id,
        answer=answer,
        now=now,
        keys_until=now + KEY_LIFE,
    )
