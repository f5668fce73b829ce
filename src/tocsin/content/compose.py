"""Compose: a script and a person become the message of one job."""

import base64
import binascii
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec
from msgspec import Struct

from tocsin.content.placeholders import Compiled, fill, fill_html, fill_line
from tocsin.content.script import Script
from tocsin.domain.channel import Channel
from tocsin.domain.content import Content
from tocsin.domain.message import (
    Attachment,
    EmailMessage,
    InAppMessage,
    Mailbox,
    Message,
    TextMessage,
)
from tocsin.wire.mime import message_id


class Person(Struct, frozen=True):
    """What is known of the recipient; `data` is a JSON object as text."""

    subscriber_id: str | None = None
    email: str | None = None
    phone: str | None = None
    first_name: str | None = None
    last_name: str | None = None
    locale: str | None = None
    timezone: str | None = None
    data: str | None = None


class Envelope(Struct, frozen=True):
    """What one job adds: where it goes, from whom, when, and its unsubscribe link if it has one."""

    job_id: UUID
    channel: Channel
    recipient: str
    sender: Mailbox
    at: datetime
    unsubscribe_url: str | None = None


def variables(person: Person) -> dict[str, Any]:
    """Names to values. Of somebody unknown nothing has a value, so names stay as they are written."""
    if person.subscriber_id is None:
        return {}
    values: dict[str, Any] = {
        "subscriber_id": person.subscriber_id,
        "email": person.email,
        "phone": person.phone,
        "first_name": person.first_name,
        "last_name": person.last_name,
        "locale": person.locale,
        "timezone": person.timezone,
        "data": msgspec.json.decode(person.data) if person.data else {},
    }
    values["subscriber"] = dict(values, id=person.subscriber_id)
    return values


def compose(script: Script, envelope: Envelope, values: dict[str, Any]) -> Message:
    """The message. A part is left out when there is no text for it; nothing is looked up."""
    match envelope.channel:
        case "email":
            return _email(script, envelope, values)
        case "in_app":
            return InAppMessage(
                job_id=envelope.job_id,
                subscriber_id=envelope.recipient,
                subject=_line(script.subject, values),
                body="" if script.body is None else fill(script.body, values),
                icon=script.content.icon,
                url=_line(script.url, values),
                data=_shown(script.content),
            )
        case _:
            return TextMessage(
                job_id=envelope.job_id,
                channel=envelope.channel,
                to=envelope.recipient,
                subject=_line(script.subject, values),
                body="" if script.body is None else fill(script.body, values),
            )


def _line(text: Compiled | None, values: dict[str, Any]) -> str | None:
    return None if text is None else fill_line(text, values)


def _email(script: Script, envelope: Envelope, values: dict[str, Any]) -> EmailMessage:
    content = script.content
    headers = content.email_headers
    if envelope.unsubscribe_url and not any(
        name.lower() == "list-unsubscribe" for name, _ in headers
    ):
        # RFC 8058: one POST, no page in between.
        headers = (
            *headers,
            ("List-Unsubscribe", f"<{envelope.unsubscribe_url}>"),
            ("List-Unsubscribe-Post", "List-Unsubscribe=One-Click"),
        )
    domain = envelope.sender.address.rpartition("@")[2]
    return EmailMessage(
        job_id=envelope.job_id,
        sender=envelope.sender,
        to=Mailbox(envelope.recipient),
        subject=_line(script.subject, values) or "",
        message_id=message_id(envelope.job_id, domain),
        date=envelope.at,
        text=None if script.body is None else fill(script.body, values),
        html=None if script.body_html is None else fill_html(script.body_html, values),
        cc=content.cc,
        reply_to=content.reply_to,
        headers=headers,
        attachments=_attachments(content) if content.attachments else (),
        tags=content.tags,
    )


def _attachments(content: Content) -> tuple[Attachment, ...]:
    return tuple(
        Attachment(a.filename, base64.b64decode(a.content), a.content_type, a.content_id)
        for a in content.attachments
    )


def _shown(content: Content) -> str:
    """The only part of a send that a browser may see beside the message itself."""
    shown = {"template": content.template, "topic": content.topic}
    return msgspec.json.encode({k: v for k, v in shown.items() if v is not None}).decode()


def unwrapped(text: str) -> str:
    """Base64 without the line breaks of MIME encoders, and with the padding that others leave out."""
    packed = "".join(text.split())
    return packed + "=" * (-len(packed) % 4)


def is_base64(text: str) -> bool:
    """Whether an attachment's content can be decoded."""
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True
