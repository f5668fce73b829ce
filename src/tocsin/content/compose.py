"""Compose: a stored content, a person and a template become the message of one job."""

import base64
import binascii
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec
from msgspec import Struct

from tocsin.content.placeholders import fill, fill_html, fill_line
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


class Words(Struct, frozen=True):
    """The texts to fill: the template's, or the content's own."""

    subject: str | None
    body: str | None
    body_html: str | None


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


def variables(content: Content, own: str | None, person: Person) -> dict[str, Any]:
    """Names to values: the person's fields, then the send's vars, then the job's own; later ones win."""
    values: dict[str, Any] = {
        "subscriber_id": person.subscriber_id,
        "email": person.email,
        "phone": person.phone,
        "first_name": person.first_name,
        "last_name": person.last_name,
        "locale": person.locale,
        "timezone": person.timezone,
    }
    if person.subscriber_id is None:
        # Nobody is known: these names have no value, so they stay as they are written.
        values = {}
    elif person.data:
        values["data"] = msgspec.json.decode(person.data)
    if values:
        values["subscriber"] = dict(values, id=person.subscriber_id)
    if content.vars:
        values.update(content.vars)
    if own:
        values.update(msgspec.json.decode(own))
    return values


def compose(content: Content, words: Words, envelope: Envelope, values: dict[str, Any]) -> Message:
    """The message. A text part is left out when there is none; nothing is looked up."""
    match envelope.channel:
        case "email":
            return _email(content, words, envelope, values)
        case "in_app":
            return InAppMessage(
                job_id=envelope.job_id,
                subscriber_id=envelope.recipient,
                subject=_line(words.subject, values),
                body=fill(words.body or "", values),
                icon=content.icon,
                url=_line(content.url, values),
                data=_shown(content),
            )
        case _:
            return TextMessage(
                job_id=envelope.job_id,
                channel=envelope.channel,
                to=envelope.recipient,
                subject=_line(words.subject, values),
                body=fill(words.body or "", values),
            )


def _line(text: str | None, values: dict[str, Any]) -> str | None:
    return None if text is None else fill_line(text, values)


def _email(
    content: Content, words: Words, envelope: Envelope, values: dict[str, Any]
) -> EmailMessage:
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
        subject=_line(words.subject, values) or "",
        message_id=message_id(envelope.job_id, domain),
        date=envelope.at,
        text=None if words.body is None else fill(words.body, values),
        html=None if words.body_html is None else fill_html(words.body_html, values),
        cc=content.cc,
        reply_to=content.reply_to,
        headers=headers,
        attachments=tuple(
            Attachment(a.filename, base64.b64decode(a.content), a.content_type, a.content_id)
            for a in content.attachments
        ),
        tags=content.tags,
    )


def _shown(content: Content) -> str:
    """The only part of a send that a browser may see beside the message itself."""
    shown = {"template": content.template, "topic": content.topic}
    return msgspec.json.encode({k: v for k, v in shown.items() if v is not None}).decode()


def is_base64(text: str) -> bool:
    """Whether an attachment's content can be decoded."""
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True
