import email
from datetime import UTC, datetime
from email import policy
from uuid import UUID

import pytest
import structlog
from msgspec.structs import replace

from tests.support.smtp import PATIENT
from tocsin.connectors.base import Call
from tocsin.connectors.email.smtp import Smtp, SmtpConfig
from tocsin.domain.message import EmailMessage, Mailbox, TextMessage
from tocsin.domain.outcome import Accepted, ContentRejected, RecipientPermanent, Unsupported
from tocsin.simulators.smtp_script import Manners, SmtpFault
from tocsin.simulators.smtp_sink import SmtpSink, serving
from tocsin.wire.smtp import Account

JOB = UUID("019b0000-0000-7000-8000-000000000001")
MAIL = EmailMessage(
    job_id=JOB,
    sender=Mailbox("news@acme.dev", "Acme"),
    to=Mailbox("jane@example.com", "Jané Doe"),
    subject="Grüße",
    message_id=f"{JOB}@acme.dev",
    date=datetime(2026, 11, 30, tzinfo=UTC),
    text="Hello\n",
    html="<p>Hello</p>\n",
)


async def sent(mail, manners=None, *faults):
    """The outcome of one mail and the sink that was to take it."""
    sink = SmtpSink(manners)
    sink.script.add(*faults)
    async with serving(sink) as port:
        connector = Smtp(SmtpConfig("127.0.0.1", port, security="none", timeouts=PATIENT))
        try:
            [outcome] = await connector.deliver(Call(str(JOB), (JOB,), (mail,)))
        finally:
            await connector.aclose()
    return outcome, sink


async def test_a_message_leaves_as_mail_that_names_its_job():
    outcome, sink = await sent(MAIL)
    [mail] = sink.book.mails
    assert outcome == Accepted(mail.id)
    assert (mail.sender, mail.recipients) == ("news@acme.dev", ("jane@example.com",))
    assert (mail.job_id, mail.message_id) == (str(JOB), f"{JOB}@acme.dev")
    read = email.message_from_bytes(mail.raw, policy=policy.default)
    assert read["Subject"] == "Grüße"
    assert read["To"].addresses[0].display_name == "Jané Doe"


async def test_a_server_that_names_no_queue_id_leaves_our_message_id():
    outcome, _ = await sent(MAIL, None, SmtpFault("body", "250 2.0.0 Ok", accept=True))
    assert outcome == Accepted(MAIL.message_id)


async def test_copies_are_further_recipients_of_the_same_mail_once_each():
    cc = ("joe@example.com", "Ann <ann@bücher.de>", "joe@example.com", "jane@example.com")
    outcome, sink = await sent(replace(MAIL, cc=cc))
    assert isinstance(outcome, Accepted)
    [mail] = sink.book.mails
    assert mail.recipients == ("jane@example.com", "joe@example.com", "ann@xn--bcher-kva.de")


async def test_refused_copies_are_logged_by_number_and_do_not_change_the_outcome():
    manners = Manners(recipients=(("joe*", "550 5.1.1 <joe@example.com> unknown"),))
    with structlog.testing.capture_logs() as lines:
        outcome, _ = await sent(replace(MAIL, cc=("joe@example.com", "ann@example.com")), manners)
    assert isinstance(outcome, Accepted)
    assert [(line["event"], line["job_id"], line["count"]) for line in lines] == [
        ("smtp_copies_refused", str(JOB), 1)
    ]
    assert "@" not in repr(lines)


@pytest.mark.parametrize(
    "address", ["jane@exa mple.com", "jane@example.com>\r\nRCPT TO:<x@y.co", "jane", ""]
)
async def test_an_address_that_no_server_could_take_is_never_sent(address):
    outcome, sink = await sent(replace(MAIL, to=Mailbox(address)))
    assert isinstance(outcome, RecipientPermanent)
    assert not outcome.suppress
    assert sink.connections == 0


@pytest.mark.parametrize(
    "fields",
    [
        {"subject": "x\r\nBcc: eve@example.com"},
        {"sender": Mailbox("news@acme.dev>\r\nDATA")},
        {"cc": ("a@b.co\r\n",)},
        {"headers": (("Bcc", "eve@example.com"),)},
    ],
    ids=range(4),
)
async def test_a_mail_that_cannot_be_written_is_refused_and_never_sent(fields):
    outcome, sink = await sent(replace(MAIL, **fields))
    assert isinstance(outcome, ContentRejected)
    assert "@" not in outcome.detail
    assert sink.connections == 0


async def test_an_international_local_part_needs_smtputf8():
    mail = replace(MAIL, to=Mailbox("jané@bücher.de"))
    outcome, sink = await sent(mail)
    assert isinstance(outcome, Accepted)
    assert sink.book.mails[0].recipients == ("jané@xn--bcher-kva.de",)
    outcome, sink = await sent(mail, Manners(extensions=()))
    assert isinstance(outcome, RecipientPermanent)
    outcome, sink = await sent(replace(MAIL, reply_to="jané@bücher.de"), Manners(extensions=()))
    assert isinstance(outcome, Unsupported)


async def test_another_channels_message_is_a_bug():
    with pytest.raises(TypeError, match="TextMessage"):
        await sent(TextMessage(JOB, "sms", "+15005550006", "hi"))


async def test_there_is_nothing_to_freeze():
    connector = Smtp(SmtpConfig("127.0.0.1", security="none", pool_size=3))
    assert not connector.spec.dedupes
    assert connector.spec.batch_max == 1
    assert connector.spec.in_flight_max == 3
    with pytest.raises(TypeError):
        connector.freeze([MAIL])
    await connector.aclose()


def test_the_password_is_in_no_repr():
    config = SmtpConfig("smtp.example", 587, "acme", "zwieback")
    assert "zwieback" not in repr(config)
    assert "zwieback" not in repr(Account("smtp.example", 587, "acme", "zwieback"))
