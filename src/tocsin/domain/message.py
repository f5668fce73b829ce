"""A rendered message, ready for a connector: everything it says, nothing it must look up."""

from datetime import datetime
from uuid import UUID

from msgspec import Struct


class Mailbox(Struct, frozen=True):
    """An address and, if any, the name shown beside it."""

    address: str
    name: str | None = None


class Attachment(Struct, frozen=True):
    """`content` is raw bytes; with `content_id` it is shown inline as `cid:<content_id>`."""

    filename: str
    content: bytes
    content_type: str
    content_id: str | None = None


class EmailMessage(Struct, frozen=True):
    """One email to one recipient. `message_id` has no angle brackets; `date` is aware."""

    job_id: UUID
    sender: Mailbox
    to: Mailbox
    subject: str
    message_id: str
    date: datetime
    text: str | None = None
    html: str | None = None
    cc: tuple[str, ...] = ()
    reply_to: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    attachments: tuple[Attachment, ...] = ()
    tags: tuple[tuple[str, str], ...] = ()


class InAppMessage(Struct, frozen=True):
    """One inbox message. `data` is the JSON object the browser may see, as text."""

    job_id: UUID
    subscriber_id: str
    body: str
    subject: str | None = None
    icon: str = "bell"
    url: str | None = None
    data: str = "{}"


class TextMessage(Struct, frozen=True):
    """Plain text to one address of a channel: sms, whatsapp, push, chat."""

    job_id: UUID
    channel: str
    to: str
    body: str
    subject: str | None = None


Message = EmailMessage | InAppMessage | TextMessage
