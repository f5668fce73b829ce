import email
from datetime import UTC, datetime
from email import policy
from uuid import UUID

import pytest
from msgspec.structs import replace

from tocsin.domain.errors import Invalid
from tocsin.domain.message import Attachment, EmailMessage, Mailbox
from tocsin.wire.mime import check_headers, message_id, needs_smtputf8, write

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


def parsed(mail):
    return email.message_from_bytes(write(mail), policy=policy.default)


def content(part):
    return part.get_content().replace("\r\n", "\n")


def read_text(text):
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text if text.endswith("\n") else text + "\n"


def test_simple_mail_is_written_as_plain_as_it_can_be():
    assert write(MAIL) == (
        b"Date: Mon, 30 Nov 2026 08:05:09 +0000\r\n"
        b"From: Acme <news@acme.dev>\r\n"
        b"To: Jane Doe <jane@example.com>\r\n"
        b"Subject: Your order\r\n"
        b"Message-ID: <019b0000-0000-7000-8000-000000000001@acme.dev>\r\n"
        b"X-Tocsin-Job-Id: 019b0000-0000-7000-8000-000000000001\r\n"
        b"MIME-Version: 1.0\r\n"
        b"Content-Type: text/plain; charset=utf-8\r\n"
        b"Content-Transfer-Encoding: 7bit\r\n"
        b"\r\n"
        b"Hello\r\n"
    )


def test_everything_at_once_nests_as_mail_readers_expect():
    logo = Attachment("logo.png", b"\x89PNG", "image/png", content_id="logo")
    mail = replace(
        MAIL,
        html='<img src="cid:logo">',
        attachments=(Attachment("a.pdf", b"%PDF", "application/pdf"), logo),
    )
    found = parsed(mail)
    assert [part.get_content_type() for part in found.walk()] == [
        "multipart/mixed",
        "multipart/alternative",
        "text/plain",
        "multipart/related",
        "text/html",
        "image/png",
        "application/pdf",
    ]
    assert found.get_body(("related",)).get_param("type") == "text/html"


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("plain", "7bit"),
        ("a" * 998, "7bit"),
        ("a" * 999, "quoted-printable"),
        ("a" * 990 + "\n" + "b" * 998 + "\n" + "c" * 999, "quoted-printable"),
        ("Grüße aus Köln, wo es heute wieder einmal regnet", "quoted-printable"),
        ("漢字かな交じり文", "base64"),
        ("a\0b", "quoted-printable"),
        ("--=_tocsin_019b00000000700080000000000000001_a--", "quoted-printable"),
        ("lone \r and \n ends", "7bit"),
    ],
)
def test_text_takes_the_shortest_transfer_encoding_that_is_safe(text, encoding):
    found = parsed(replace(MAIL, text=text))
    assert found["Content-Transfer-Encoding"] == encoding
    assert content(found) == read_text(text)


def test_text_that_quotes_the_boundary_cannot_end_its_part():
    spoof = f"--=_tocsin_{JOB.hex}_a--\r\nBcc: x\r\n"
    found = parsed(replace(MAIL, text=spoof, html=f"<p>{spoof}</p>"))
    assert [part.get_content_type() for part in found.iter_parts()] == ["text/plain", "text/html"]
    assert content(found.get_body(("plain",))) == read_text(spoof)


def test_mail_without_any_body_is_an_empty_text():
    assert content(parsed(replace(MAIL, text=None))) == "\n"


def test_smtputf8_is_needed_for_the_local_part_only():
    assert not needs_smtputf8(MAIL)
    assert not needs_smtputf8(replace(MAIL, to=Mailbox("jane@bücher.de", "Jané")))
    assert needs_smtputf8(replace(MAIL, to=Mailbox("jané@example.com")))
    assert needs_smtputf8(replace(MAIL, cc=("jané@example.com",)))
    assert needs_smtputf8(replace(MAIL, reply_to="Jané <jané@example.com>"))
    assert not needs_smtputf8(replace(MAIL, reply_to="Jané <jane@example.com>"))


def test_a_message_id_is_the_jobs_in_the_senders_domain():
    assert message_id(JOB, "Acme.DEV") == f"{JOB}@acme.dev"
    assert message_id(JOB, "bücher.de") == f"{JOB}@xn--bcher-kva.de"
    with pytest.raises(Invalid) as refusal:
        message_id(JOB, "acme dev")
    assert refusal.value.field == "from"


def test_useful_headers_pass_and_are_written_as_they_are():
    headers = (
        ("List-Unsubscribe", f"<https://acme.dev/u/{'t' * 60}>, <mailto:u@acme.dev?subject=stop>"),
        ("List-Unsubscribe-Post", "List-Unsubscribe=One-Click"),
        ("X-Campaign", "summer"),
        ("X-Long", "y" * 2000),
        ("X-" + "N" * 70, " é"),
        ("References", " ".join(f"<{n}.abcdefghijklmnop@example.com>" for n in range(30))),
    )
    check_headers(headers, "email_headers")
    found = parsed(replace(MAIL, headers=headers))
    for name, value in headers:
        assert found[name] == value
    assert b"\r\nList-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n" in write(
        replace(MAIL, headers=headers)
    )
