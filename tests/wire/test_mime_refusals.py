import itertools
from datetime import UTC, datetime
from uuid import UUID

import pytest
from msgspec.structs import replace

from tocsin.domain.errors import Invalid
from tocsin.domain.message import Attachment, EmailMessage, Mailbox
from tocsin.wire.mime import check_headers, write

JOB = UUID("019b0000-0000-7000-8000-000000000001")
AT = datetime(2026, 11, 30, 8, 5, 9, tzinfo=UTC)
MAIL = EmailMessage(
    job_id=JOB,
    sender=Mailbox("news@acme.dev", "Acme"),
    to=Mailbox("jane@example.com", "Jane Doe"),
    subject="Your order",
    message_id=f"{JOB}@acme.dev",
    date=AT,
    text="Hello\n",
)


INJECTIONS = [
    "x\r\nBcc: eve@example.com",
    "x\nBcc: e",
    "x\rBcc: e",
    "x\0",
    "x\x0bB: y",
    "\r\n\r\nbody",
]


@pytest.mark.parametrize("bad", INJECTIONS, ids=ascii)
@pytest.mark.parametrize(
    ("field", "build"),
    [
        ("subject", lambda bad: {"subject": bad}),
        ("from", lambda bad: {"sender": Mailbox("a@b.co", bad)}),
        ("from", lambda bad: {"sender": Mailbox(f"a@b.co{bad}")}),
        ("to", lambda bad: {"to": Mailbox("a@b.co", bad)}),
        ("to", lambda bad: {"to": Mailbox(f"{bad}@b.co")}),
        ("cc", lambda bad: {"cc": ("a@b.co", f"a@b.co{bad}")}),
        ("cc", lambda bad: {"cc": (f"{bad} <a@b.co>",)}),
        ("reply_to", lambda bad: {"reply_to": f"a@b.co{bad}"}),
        ("message_id", lambda bad: {"message_id": bad}),
        ("headers.X-One", lambda bad: {"headers": (("X-One", bad),)}),
        ("headers.References", lambda bad: {"headers": (("References", bad),)}),
        ("headers", lambda bad: {"headers": ((f"X-One{bad}", "y"),)}),
        ("attachments[0].filename", lambda bad: {"attachments": (Attachment(bad, b"", "a/b"),)}),
        (
            "attachments[0].content_type",
            lambda bad: {"attachments": (Attachment("x", b"", f"a/b{bad}"),)},
        ),
        (
            "attachments[0].content_id",
            lambda bad: {"attachments": (Attachment("x", b"", "a/b", bad),)},
        ),
    ],
    ids=itertools.count(),
)
def test_header_injection_is_refused_by_the_name_of_the_field(field, build, bad):
    with pytest.raises(Invalid) as refusal:
        write(replace(MAIL, **build(bad)))
    assert refusal.value.field == field
    assert "eve@" not in refusal.value.detail


@pytest.mark.parametrize(
    "name",
    [
        "From", "to", "CC", "Bcc", "Reply-To", "SUBJECT", "Date", "Message-ID", "MIME-Version", "Content-Type",
        "content-transfer-encoding", "Content-Anything", "Received", "Return-Path", "Resent-To", "X-Tocsin-Job-Id",
    ],
)  # fmt: skip
def test_a_header_that_the_writer_owns_is_refused_and_says_what_to_use(name):
    with pytest.raises(Invalid) as refusal:
        check_headers([(name, "x")], "email_headers")
    assert refusal.value.code == "reserved_header"
    assert refusal.value.field == f"email_headers.{name}"
    assert refusal.value.remedy


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ([("", "x")], "invalid_header_name"),
        ([("X One", "x")], "invalid_header_name"),
        ([("X:One", "x")], "invalid_header_name"),
        ([("X-É", "x")], "invalid_header_name"),
        ([("X" * 77, "x")], "invalid_header_name"),
        ([("X-One", "x"), ("x-one", "y")], "duplicate_header"),
        ([("X-One", "x" * 8193)], "header_too_long"),
        ([("List-Unsubscribe", "<https://acme.dev/ü>")], "invalid_header_value"),
        ([("List-Unsubscribe", f"<https://acme.dev/{'u' * 900}>")], "invalid_header_value"),
        ([(f"X-{number}", "x") for number in range(51)], "too_many_headers"),
    ],
)
def test_other_headers_that_cannot_be_written_are_refused(headers, code):
    with pytest.raises(Invalid) as refusal:
        check_headers(headers, "email_headers")
    assert refusal.value.code == code


@pytest.mark.parametrize(
    "kind", ["multipart/mixed", "message/rfc822", "pdf", "a/b/c", "a/b; c", "a/b;\r\n c=d", ""]
)
def test_a_content_type_that_would_not_stay_one_part_is_refused(kind):
    with pytest.raises(Invalid) as refusal:
        write(replace(MAIL, attachments=(Attachment("x", b"", kind),)))
    assert refusal.value.field == "attachments[0].content_type"
