"""Send: one call, one person, one job for each channel."""

import re

from tocsin.domain.channel import Channel
from tocsin.domain.content import MARKETING
from tocsin.domain.errors import Invalid
from tocsin.domain.idempotency import fingerprint
from tocsin.domain.priority import BULK, DEFAULT
from tocsin.domain.request import SendRequest
from tocsin.engine.order import Order, Skip
from tocsin.service.app import App
from tocsin.service.draft import canonical, channels_of, draft, priority_of, times_of
from tocsin.service.principal import ProjectKey
from tocsin.service.reply import Reply
from tocsin.wire.addresses import check_line, parse_mailbox

_PHONE = re.compile(r"\+?[0-9][0-9 ().\-]{4,24}")


async def send(app: App, who: ProjectKey, request: SendRequest, key: str | None) -> Reply:
    """Store the send; the reply is given when it is durable.

    key: the idempotency key, from the header or the body; None without one.
    """
    channels = channels_of(request)
    if request.to is None and request.subscriber_id is None:
        raise Invalid(
            "no_recipient",
            "Missing 'to' or 'subscriber_id'",
            remedy="say who gets it: to is an address, subscriber_id a person you have stored",
            field="to",
        )
    priority = priority_of(request, _default_priority(request))
    scheduled_at, expires_at = times_of(request, app.clock.now())
    content = draft(request, channels, priority)
    to = _recipient(request.to, channels)
    if request.subscriber_id is not None:
        check_line(request.subscriber_id, "subscriber_id")
    usable = open_channels(app, who, channels)
    order = Order(
        project=who.number,
        lanes=tuple((channel, app.lanes[channel]) for channel in usable),
        skipped=tuple(
            Skip(channel, closed(app, channel)) for channel in channels if channel not in usable
        ),
        to=to,
        subscriber_id=request.subscriber_id,
        content=content,
        priority=priority,
        max_attempts=app.settings.worker.max_attempts,
        scheduled_at=scheduled_at,
        expires_at=expires_at,
        key=key,
        fingerprint=None if key is None else fingerprint(canonical(request)),
    )
    taken = await app.intake.submit(order)
    return Reply(taken.answer, replayed=taken.replayed)


def open_channels(app: App, who: ProjectKey, channels: list[Channel]) -> list[Channel]:
    """Of these channels, those with a provider that the project may use."""
    return [c for c in channels if c in app.lanes and c in who.channels]


def closed(app: App, channel: Channel) -> str:
    """Why a channel is not open, in notifyd's words where it has them."""
    if channel in app.lanes:
        return f"{channel} is not among the project's channels"
    return f"{channel} connector not configured"


def _default_priority(request: SendRequest) -> int:
    tags = request.tags or ()
    marketing = any(tag.name == "category" and tag.value.lower() in MARKETING for tag in tags)
    return BULK if marketing else DEFAULT


def _recipient(to: str | None, channels: list[Channel]) -> str | None:
    """The address, fit for every channel it is used on; refused where it could reach nobody."""
    if to is None:
        return None
    check_line(to, "to")
    if not to.strip():
        raise Invalid(
            "no_recipient", "to is empty", remedy="give an address, or subscriber_id", field="to"
        )
    if "email" in channels:
        to = parse_mailbox(to, "to").address
    if ("sms" in channels or "whatsapp" in channels) and not _PHONE.fullmatch(to):
        raise Invalid(
            "invalid_phone",
            "to is not a phone number",
            remedy="write it as E.164: + and 7 to 15 digits; use one call per kind of address",
            field="to",
        )
    return to
