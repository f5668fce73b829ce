"""A draft: what a request says, checked at the boundary field by field, before anything is stored."""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from tocsin.content.compose import is_base64, unwrapped
from tocsin.content.placeholders import FILLED_MAX, filled_length
from tocsin.domain.channel import Channel, channel_named
from tocsin.domain.content import MARKETING, Content, StoredAttachment
from tocsin.domain.errors import Invalid
from tocsin.domain.priority import BULK, parse_priority
from tocsin.domain.request import AttachmentIn, BatchRequest, SendRequest, Tag
from tocsin.service.window import check_window
from tocsin.wire.addresses import check_line, parse_mailbox
from tocsin.wire.mime import check_content_id, check_content_type, check_headers

CC_MAX: Final = 10
FILENAME_MAX: Final = 255
#: The longest a job may wait: its partition must outlive it.
AHEAD_MAX: Final = timedelta(days=366)
_TOPIC = re.compile(r"[a-z0-9\-_.:]{1,64}")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):")
_SCRIPTS: Final = frozenset({"javascript", "data", "vbscript", "blob", "file", "about"})
_SMS_NUMBER = re.compile(r"\+?[1-9][0-9]{6,14}")
_SMS_NAME = re.compile(r"(?=.*[A-Za-z])[A-Za-z0-9 ]{1,11}")


def channels_of(request: SendRequest | BatchRequest) -> list[Channel]:
    """The channels asked for, aliases resolved, each once; in_app when none is named."""
    asked = request.channels
    if asked is None:
        asked = ["in_app"] if request.channel is None else request.channel.split(",")
    found: dict[Channel, None] = {}
    for name in asked:
        if not name.strip():
            continue
        channel = channel_named(name)
        if channel is None:
            raise Invalid(
                "unknown_channel",
                "channels names a channel that does not exist",
                remedy="use email, sms, whatsapp, in_app, push, telegram, slack or discord",
                field="channels",
            )
        found[channel] = None
    if not found:
        raise Invalid(
            "no_channel",
            "channels is empty",
            remedy="name at least one channel, or leave the field out for in_app",
            field="channels",
        )
    return list(found)


def priority_of(request: SendRequest | BatchRequest, default: int) -> int:
    """0 to 100; the default when none is given."""
    if request.priority is None:
        return default
    priority = parse_priority(request.priority)
    if priority is None:
        raise Invalid(
            "invalid_priority",
            "priority is neither a name nor a number from 0 to 100",
            remedy="use critical, high, normal, low, bulk, or a number from 0 to 100",
            field="priority",
        )
    return priority


def times_of(
    request: SendRequest | BatchRequest, now: datetime
) -> tuple[datetime | None, datetime | None]:
    """(scheduled_at, expires_at), aware and in UTC; None where not given."""
    scheduled = _aware(request.scheduled_at, "scheduled_at")
    expires = _aware(request.expires_at, "expires_at")
    if scheduled is not None and scheduled <= now:
        # What was due before it was asked for is due now.
        scheduled = None
    if scheduled is not None and scheduled > now + AHEAD_MAX:
        raise Invalid(
            "scheduled_too_far",
            f"scheduled_at is more than {AHEAD_MAX.days} days ahead",
            remedy="schedule it nearer to the time",
            field="scheduled_at",
        )
    if expires is not None and expires <= max(now, scheduled or now):
        raise Invalid(
            "expires_before_send",
            "expires_at is not after the time the message would be sent",
            remedy="give a later expires_at, or leave it out",
            field="expires_at",
        )
    return scheduled, expires


def draft(
    request: SendRequest | BatchRequest, channels: Sequence[Channel], priority: int
) -> Content:
    """The content to store. Raises Invalid naming the first field that cannot be sent."""
    if request.template is None and not (request.body or request.body_html or request.chat):
        raise Invalid(
            "nothing_to_say",
            "neither template nor body nor body_html is given",
            remedy="give the id of a template, or a body",
            field="body",
        )
    if request.subject is not None:
        check_line(request.subject, "subject")
    _refuse_long(request)
    if request.url is not None:
        _check_url(request.url)
    check_window(request.send_window)
    email: dict[str, object] = {}
    tags: tuple[tuple[str, str], ...] = ()
    if isinstance(request, SendRequest):
        tags = _tags(request.tags or ())
        email = _email_fields(request, channels)
    category = next((value for name, value in tags if name == "category"), "").lower()
    batch = isinstance(request, BatchRequest)
    return Content(
        template=request.template,
        subject=request.subject,
        body=request.body,
        body_html=request.body_html,
        icon=request.icon or "bell",
        url=request.url,
        vars=request.vars or None,
        tags=tags,
        topic=topic_of(request.topic),
        transactional=bool(request.transactional),
        # notifyd let a batch of normal priority, and so whole campaigns, past the opt-outs.
        marketing=not request.transactional
        and (batch or category in MARKETING or priority >= BULK),
        resend_unknown=category not in MARKETING,
        send_window=request.send_window,
        track=request.track,
        push=request.push,
        chat=request.chat,
        sms_from=_sms_from(request),
        **email,  # type: ignore[arg-type]
    )


def _check_url(url: str) -> None:
    """A link that a browser or an app opens: an address of its own or of the web, never a script."""
    check_line(url, "url")
    scheme = _SCHEME.match(url.strip())
    if scheme is not None and scheme[1].lower() in _SCRIPTS:
        raise Invalid(
            "unsafe_url",
            "url would run a script or show foreign data where it is opened",
            remedy="use https://…, a path such as /orders/1, or your app's own scheme",
            field="url",
        )


def _refuse_long(request: SendRequest | BatchRequest) -> None:
    """A short text can ask for a long value many times: refused before it is stored."""
    values = request.vars or {}
    for field in ("subject", "body", "body_html", "url"):
        text = getattr(request, field)
        if text and values and filled_length(text, values) > FILLED_MAX:
            raise Invalid(
                "filled_too_long",
                f"{field} is longer than {FILLED_MAX} characters once its placeholders are filled",
                remedy="use the value less often, or shorten it",
                field=field,
            )


def topic_of(topic: str | None) -> str | None:
    """Lower-cased; 1 to 64 of a-z 0-9 - _ . :"""
    if topic is None:
        return None
    lowered = topic.lower()
    if not _TOPIC.fullmatch(lowered):
        raise Invalid(
            "invalid_topic",
            "topic has characters it may not have, or is empty or too long",
            remedy="use 1 to 64 characters of a-z, 0-9, -, _, . and :",
            field="topic",
        )
    return lowered


def _aware(at: datetime | None, field: str) -> datetime | None:
    if at is None:
        return None
    if at.tzinfo is None:
        raise Invalid(
            "time_without_zone",
            f"{field} has no offset from UTC",
            remedy="write it as RFC 3339, for example 2030-01-31T09:00:00Z",
            field=field,
        )
    try:
        return at.astimezone(UTC)
    except OverflowError:
        raise Invalid(
            "time_out_of_range", f"{field} is out of range", remedy="use a nearer time", field=field
        ) from None


def _email_fields(request: SendRequest, channels: Sequence[Channel]) -> dict[str, object]:
    for field in ("cc", "reply_to", "email_headers", "attachments"):
        if getattr(request, field) and "email" not in channels:
            raise Invalid(
                "email_only",
                f"{field} needs the email channel",
                remedy=f"add email to channels, or leave {field} out",
                field=field,
            )
    headers = tuple((request.email_headers or {}).items())
    check_headers(headers, "email_headers")
    cc = list(
        dict.fromkeys(
            parse_mailbox(address, f"cc[{at}]").address
            for at, address in enumerate(request.cc or ())
        )
    )
    if len(cc) > CC_MAX:
        raise Invalid(
            "too_many_cc",
            f"cc has more than {CC_MAX} addresses",
            remedy="send one message to each recipient instead",
            field="cc",
        )
    reply_to = None
    if request.reply_to:
        reply_to = parse_mailbox(request.reply_to, "reply_to").address
    return {
        "email_headers": headers,
        "cc": tuple(cc),
        "reply_to": reply_to,
        "attachments": tuple(
            _attachment(given, f"attachments[{at}]")
            for at, given in enumerate(request.attachments or ())
        ),
    }


def _attachment(given: AttachmentIn, field: str) -> StoredAttachment:
    filename = given.filename or given.name
    content = given.content if given.content is not None else given.file
    if not filename or len(filename) > FILENAME_MAX:
        raise Invalid(
            "attachment_without_name",
            f"{field}.filename is missing or longer than {FILENAME_MAX} characters",
            remedy="name the file",
            field=f"{field}.filename",
        )
    check_line(filename, f"{field}.filename")
    packed = None if content is None else unwrapped(content)
    if packed is None or not is_base64(packed):
        raise Invalid(
            "attachment_not_base64",
            f"{field}.content is missing or is not base64",
            remedy="encode the file's bytes as base64 (RFC 4648 §4)",
            field=f"{field}.content",
        )
    content_type = given.content_type or given.mime or "application/octet-stream"
    check_content_type(content_type, f"{field}.content_type")
    if given.content_id is not None:
        check_content_id(given.content_id, f"{field}.content_id")
    return StoredAttachment(filename, packed, content_type, given.content_id)


def _tags(tags: Iterable[Tag]) -> tuple[tuple[str, str], ...]:
    found = tuple((tag.name, tag.value) for tag in tags)
    for name, value in found:
        check_line(name, "tags")
        check_line(value, "tags")
    return found


def _sms_from(request: SendRequest | BatchRequest) -> str | None:
    sender = request.sms.from_ if request.sms is not None else None
    if sender is None:
        return None
    if not (_SMS_NUMBER.fullmatch(sender) or _SMS_NAME.fullmatch(sender)):
        raise Invalid(
            "invalid_sms_from",
            "sms.from is neither a number nor a sender name",
            remedy="use E.164 (+ and 7 to 15 digits), or 1 to 11 letters, digits and spaces",
            field="sms.from",
        )
    return sender


def canonical(request: SendRequest | BatchRequest, without: Sequence[str] = ()) -> bytes:
    """The request as bytes that depend neither on the order of its keys nor on how channels are spelled."""
    fields = msgspec.to_builtins(request)
    for name in ("idempotency_key", "channel", *without):
        fields.pop(name, None)
    fields["channels"] = channels_of(request)
    return msgspec.json.encode(fields, order="sorted")
