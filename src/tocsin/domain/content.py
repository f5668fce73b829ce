"""What a message says, as stored once in `contents` and shared by all jobs that say it."""

from typing import Any

from msgspec import Struct

from tocsin.domain.request import Chat, Push, Track, Window

#: Tag values of `category` that make a message marketing, as notifyd's.
MARKETING = frozenset({"campaign", "marketing", "newsletter", "bulk"})


class StoredAttachment(Struct, frozen=True, omit_defaults=True):
    """`content` stays base64, as it came."""

    filename: str
    content: str
    content_type: str
    content_id: str | None = None


class Content(Struct, frozen=True, omit_defaults=True):
    """The controls and the words of a send. Only named fields steer delivery; `vars` never does."""

    template: str | None = None
    subject: str | None = None
    body: str | None = None
    body_html: str | None = None
    icon: str = "bell"
    url: str | None = None
    vars: dict[str, Any] | None = None
    email_headers: tuple[tuple[str, str], ...] = ()
    tags: tuple[tuple[str, str], ...] = ()
    attachments: tuple[StoredAttachment, ...] = ()
    cc: tuple[str, ...] = ()
    reply_to: str | None = None
    topic: str | None = None
    transactional: bool = False
    marketing: bool = False
    resend_unknown: bool = True
    send_window: Window | bool | None = None
    track: bool | Track | None = None
    push: Push | None = None
    chat: Chat | None = None
    sms_from: str | None = None
