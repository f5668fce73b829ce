"""What we say to Resend: a mail as its JSON, byte for byte the same every time."""

import re
from collections.abc import Sequence

import msgspec
from msgspec import Struct

from tocsin.domain.message import Attachment, EmailMessage, Mailbox, Message

#: Comes back in every webhook of the mail, so that a receipt finds its job.
JOB_TAG = "tocsin_job_id"


class _File(Struct, omit_defaults=True):
    content: bytes
    filename: str
    content_type: str
    content_id: str | None = None


class _Tag(Struct):
    name: str
    value: str


class _Mail(Struct, omit_defaults=True, rename={"sender": "from"}):
    sender: str
    to: tuple[str, ...]
    subject: str
    html: str | None = None
    text: str | None = None
    cc: tuple[str, ...] = ()
    reply_to: str | None = None
    headers: dict[str, str] | None = None
    attachments: tuple[_File, ...] = ()
    tags: tuple[_Tag, ...] = ()


_SPECIAL = re.compile(r'[()<>\[\]:;@\\,."]')
_NOT_IN_TAGS = re.compile(r"[^A-Za-z0-9_-]")
_TAG_MAX = 256
_encode = msgspec.json.Encoder().encode


def body_of(messages: Sequence[Message]) -> bytes:
    """The JSON of one mail (an object) or of several (an array), byte for byte the same every time."""
    mails = [_mail(message) for message in messages]
    return _encode(mails[0] if len(mails) == 1 else mails)


def holds_attachments(body: bytes) -> bool:
    """Whether any mail of a body has attachments."""
    # Within a JSON string every quote has a backslash before it, so that these bytes are the key itself.
    return b',"attachments":[' in body


def _mail(message: Message) -> _Mail:
    if not isinstance(message, EmailMessage):
        raise TypeError(f"Resend sends email, not {type(message).__name__}")
    return _Mail(
        sender=_mailbox(message.sender),
        to=(_mailbox(message.to),),
        subject=message.subject,
        html=message.html,
        text=message.text,
        cc=message.cc,
        reply_to=message.reply_to,
        headers=dict(message.headers) or None,
        attachments=tuple(map(_file, message.attachments)),
        tags=(
            _Tag(JOB_TAG, str(message.job_id)),
            *(_Tag(_label(name), _label(value)) for name, value in message.tags if name != JOB_TAG),
        ),
    )


def _file(file: Attachment) -> _File:
    return _File(file.content, file.filename, file.content_type, file.content_id)


def _mailbox(box: Mailbox) -> str:
    if not box.name:
        return box.address
    name = box.name
    if _SPECIAL.search(name):
        name = '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return f"{name} <{box.address}>"


def _label(text: str) -> str:
    return _NOT_IN_TAGS.sub("_", text)[:_TAG_MAX] or "_"
