"""An order: one accepted send before it is jobs; planned with what is known of the person. Pure."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

import msgspec
from msgspec import Struct

from tocsin.domain.address import FIELD, address_on
from tocsin.domain.channel import Channel
from tocsin.domain.content import Content
from tocsin.domain.idempotency import digest
from tocsin.domain.preferences import Preference, allows
from tocsin.domain.priority import class_of
from tocsin.store.intake import NewContent, NewJob
from tocsin.store.people import PersonRow
from tocsin.store.templates import Wording


class Skip(Struct, frozen=True):
    channel: str
    reason: str


class Order(Struct, frozen=True):
    """lanes: by channel, in the order asked. skipped: channels already refused.

    key and fingerprint are None without idempotency.
    """

    project: int
    lanes: tuple[tuple[Channel, int], ...]
    skipped: tuple[Skip, ...]
    to: str | None
    subscriber_id: str | None
    content: Content
    priority: int
    max_attempts: int
    scheduled_at: datetime | None
    expires_at: datetime | None
    key: str | None
    fingerprint: bytes | None


class Receipt(Struct, frozen=True):
    """The answer to a send, field for field."""

    success: bool
    job_ids: list[UUID]
    scheduled_at: datetime
    channels: list[str]
    topic: str | None
    skipped: list[Skip]


class Plan(Struct, frozen=True):
    """What an order becomes; `answer` is a Receipt as JSON."""

    order: Order
    content: NewContent
    jobs: list[NewJob]
    receipt: Receipt
    answer: bytes


_encode = msgspec.json.Encoder().encode
_decode_preferences = msgspec.json.Decoder(list[Preference]).decode


def digests_of(order: Order) -> list[bytes]:
    """One digest per channel: a failed channel frees its own key only."""
    if order.key is None:
        return []
    return [digest("send", order.key, channel) for channel, _ in order.lanes]


def plan(
    order: Order,
    person: PersonRow | None,
    wordings: Mapping[tuple[int, str, str], Wording],
    ids: Sequence[UUID],
    now: datetime,
) -> Plan:
    """ids: one for the content, then one per lane. A send without a topic has its template's."""
    order = _with_topic(order, wordings)
    at = order.scheduled_at or now
    jobs: list[NewJob] = []
    channels: list[str] = []
    skipped = list(order.skipped)
    for (channel, lane), job_id in zip(order.lanes, ids[1:], strict=False):
        recipient, reason = _recipient(order, channel, person)
        if not _has_words(order, channel, wordings):
            recipient, reason = (
                None,
                f"template '{order.content.template}' has no {channel} variant",
            )
        if recipient is None:
            skipped.append(Skip(channel, reason))
            continue
        jobs.append(
            NewJob(
                id=job_id,
                content_id=ids[0],
                project=order.project,
                lane=lane,
                priority=order.priority,
                queue_class=class_of(order.priority),
                max_attempts=order.max_attempts,
                scheduled_at=at,
                expires_at=order.expires_at,
                subscriber_id=order.subscriber_id,
                recipient=recipient,
                digest=None if order.key is None else digest("send", order.key, channel),
                fingerprint=order.fingerprint,
                answer=None,
            )
        )
        channels.append(channel)
    receipt = Receipt(
        success=True,
        job_ids=[job.id for job in jobs],
        scheduled_at=at,
        channels=channels,
        topic=order.content.topic,
        skipped=skipped,
    )
    answer = _encode(receipt)
    if order.key is not None:
        jobs = [msgspec.structs.replace(job, answer=answer) for job in jobs]
    content = NewContent(ids[0], order.project, _encode(order.content).decode())
    return Plan(order, content, jobs, receipt, answer)


def _has_words(
    order: Order, channel: Channel, wordings: Mapping[tuple[int, str, str], Wording]
) -> bool:
    template = order.content.template
    return template is None or (order.project, template, channel) in wordings


def _with_topic(order: Order, wordings: Mapping[tuple[int, str, str], Wording]) -> Order:
    template = order.content.template
    if template is None or order.content.topic is not None:
        return order
    found = (wordings.get((order.project, template, channel)) for channel, _ in order.lanes)
    topic = next((wording.topic for wording in found if wording and wording.topic), None)
    if topic is None:
        return order
    content = msgspec.structs.replace(order.content, topic=topic)
    return msgspec.structs.replace(order, content=content)


def _recipient(order: Order, channel: Channel, person: PersonRow | None) -> tuple[str | None, str]:
    """(address, "") or (None, why not), in notifyd's words."""
    if order.subscriber_id is None:
        return order.to, ""
    if person is None and order.to is None:
        return None, f"unknown subscriber '{order.subscriber_id}'"
    if person is not None and not _consents(order, channel, person):
        topic = f"topic '{order.content.topic}' on " if order.content.topic else ""
        return None, f"subscriber opted out of {topic}{channel}"
    if order.to is not None:
        return order.to, ""
    assert person is not None
    address = address_on(
        channel,
        subscriber_id=order.subscriber_id,
        email=person.email,
        phone=person.phone,
        data=msgspec.json.decode(person.data) if person.data != "{}" else {},
    )
    if address is None:
        return None, f"subscriber has no {FIELD[channel]} for {channel}"
    return address, ""


def _consents(order: Order, channel: Channel, person: PersonRow) -> bool:
    if order.content.transactional or person.preferences is None:
        return True
    choices = _decode_preferences(person.preferences)
    return allows(choices, channel, order.content.topic or "", order.content.template or "")
