"""What a caller asks for: the bodies of POST /v1/send and POST /v1/batch, field for field."""

from datetime import datetime
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType, field

Text = Annotated[str, Meta(max_length=1_000_000)]
Short = Annotated[str, Meta(max_length=1_000)]
Vars = dict[str, Any]


class Tag(Struct, frozen=True):
    name: Annotated[str, Meta(max_length=256)]
    value: Annotated[str, Meta(max_length=256)]


class AttachmentIn(Struct, frozen=True):
    """`content` (or `file`) is base64; `filename` may be spelled `name`, `content_type` `mime`."""

    filename: Short | None = None
    name: Short | None = None
    content: str | None = None
    file: str | None = None
    content_type: Short | None = None
    mime: Short | None = None
    content_id: Short | None = None


class Window(Struct, frozen=True):
    """When a message may arrive, in the recipient's zone; `days` 1 (Monday) to 7."""

    start: str
    end: str
    tz: str | None = None
    days: list[int] | None = None
    applies_to: str | None = None


class Track(Struct, frozen=True):
    opens: bool | None = None
    clicks: bool | None = None


class Push(Struct, frozen=True):
    badge: int | None = None
    sound: Short | None = None
    thread_id: Short | None = None
    category: Short | None = None
    collapse_id: Short | None = None
    mutable_content: bool | None = None
    background: bool | None = None
    ttl_secs: int | None = None
    data: Vars | None = None


class Chat(Struct, frozen=True):
    text: Text | None = None
    button: Any = None
    telegram_thread_id: int | str | None = None
    telegram_route_id: Short | None = None


class Sms(Struct, frozen=True):
    from_: Annotated[str, Meta(max_length=32)] | None = field(default=None, name="from")


class SendRequest(Struct, frozen=True):
    """POST /v1/send. Either `to` or `subscriber_id` is needed; `channels` wins over `channel`."""

    channel: Short | None = None
    channels: Annotated[list[Short], Meta(max_length=16)] | None = None
    to: Short | None = None
    subscriber_id: Annotated[str, Meta(min_length=1, max_length=256)] | None = None
    template: Annotated[str, Meta(min_length=1, max_length=256)] | None = None
    subject: Annotated[str, Meta(max_length=10_000)] | None = None
    body: Text | None = None
    body_html: Text | None = None
    icon: Short | None = None
    url: Annotated[str, Meta(max_length=8_000)] | None = None
    vars: Vars | None = None
    scheduled_at: datetime | None = None
    expires_at: datetime | None = None
    idempotency_key: Annotated[str, Meta(min_length=1, max_length=512)] | None = None
    email_headers: dict[str, str] | None = None
    tags: Annotated[list[Tag], Meta(max_length=64)] | None = None
    attachments: Annotated[list[AttachmentIn], Meta(max_length=64)] | None = None
    cc: list[Short] | None = None
    reply_to: Short | None = None
    priority: int | str | None = None
    send_window: Window | bool | None = None
    topic: Short | None = None
    track: bool | Track | None = None
    push: Push | None = None
    chat: Chat | None = None
    sms: Sms | None = None
    transactional: bool | None = None


class BatchRequest(Struct, frozen=True):
    """POST /v1/batch. Exactly one of `subscribers` and `segment`."""

    channel: Short | None = None
    channels: Annotated[list[Short], Meta(max_length=16)] | None = None
    subscribers: Annotated[list[str], Meta(max_length=100_000)] | None = None
    segment: Vars | None = None
    template: Annotated[str, Meta(min_length=1, max_length=256)] | None = None
    subject: Annotated[str, Meta(max_length=10_000)] | None = None
    body: Text | None = None
    body_html: Text | None = None
    icon: Short | None = None
    url: Annotated[str, Meta(max_length=8_000)] | None = None
    vars: Vars | None = None
    scheduled_at: datetime | None = None
    expires_at: datetime | None = None
    idempotency_key: Annotated[str, Meta(min_length=1, max_length=512)] | None = None
    priority: int | str | None = None
    send_window: Window | bool | None = None
    topic: Short | None = None
    track: bool | Track | None = None
    push: Push | None = None
    chat: Chat | None = None
    sms: Sms | None = None
    transactional: bool | None = None


class PreferenceIn(Struct, frozen=True):
    channel: Short
    enabled: bool
    topic: Short | None = None
    workflow_id: Short | None = None


class SubscriberIn(Struct, frozen=True):
    """POST /v1/subscribers. A field left out keeps its value; null clears it; `data` is merged one level deep."""

    id: Annotated[str, Meta(min_length=1, max_length=256)]
    email: Short | None | UnsetType = UNSET
    phone: Short | None | UnsetType = UNSET
    first_name: Short | None | UnsetType = UNSET
    last_name: Short | None | UnsetType = UNSET
    locale: Short | None | UnsetType = UNSET
    timezone: Short | None | UnsetType = UNSET
    data: Vars | None | UnsetType = UNSET
