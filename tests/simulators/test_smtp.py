"""The SMTP simulators are judged by other people's client and reader."""

import asyncio
import email
import hashlib
import json
import ssl
import sys
from email import policy
from email.message import EmailMessage
from pathlib import Path

import aiosmtplib
import pytest

from tests.support.certificates import make_authority
from tests.support.smtp import PATIENT
from tocsin.domain.outcome import Accepted, Misconfigured
from tocsin.simulators.smtp import serving as serving_aiosmtpd
from tocsin.simulators.smtp_mail import Mailbook
from tocsin.simulators.smtp_script import Manners, SmtpFault
from tocsin.simulators.smtp_sink import SmtpSink, serving
from tocsin.wire.smtp import Account, Envelope, SmtpPool

BOUND_S = 30.0


def mail():
    found = EmailMessage(policy=policy.SMTP)
    found["From"], found["To"], found["Subject"] = "a@example.com", "b@example.com", "Hello"
    found["X-Tocsin-Job-Id"], found["Message-ID"] = "job-1", "<m-1@example.com>"
    found.set_content("one\n.\n..two\n")
    return found


async def test_another_client_finds_an_ordinary_server_in_the_sink():
    sink = SmtpSink()
    async with serving(sink) as port:
        async with aiosmtplib.SMTP(hostname="127.0.0.1", port=port, start_tls=False) as client:
            errors, answer = await client.send_message(mail())
            await client.send_message(mail())
            assert client.supports_extension("pipelining")
        assert errors == {}
        assert answer.startswith("2.0.0 Ok: queued as SIM")
    first, second = sink.book.mails
    assert (first.sender, first.recipients) == ("a@example.com", ("b@example.com",))
    assert (first.job_id, first.message_id) == ("job-1", "m-1@example.com")
    assert email.message_from_bytes(
        first.raw, policy=policy.default
    ).get_content() == "one\n.\n..two\n".replace("\n", "\r\n")
    assert first.sha256 == second.sha256 == hashlib.sha256(first.raw).hexdigest()
    assert first.id != second.id


async def test_another_client_gets_through_starttls_and_auth(tmp_path):
    authority = make_authority(tmp_path)
    sink = SmtpSink(Manners(starttls=authority.server(), users={"acme": "secret"}))
    context = ssl.create_default_context(cadata=authority.ca_pem.decode())
    async with serving(sink) as port:
        async with aiosmtplib.SMTP(
            hostname="localhost",
            port=port,
            start_tls=True,
            tls_context=context,
            username="acme",
            password="secret",
        ) as client:
            await client.send_message(mail())
        with pytest.raises(aiosmtplib.SMTPAuthenticationError):
            await aiosmtplib.send(
                mail(), hostname="localhost", port=port, start_tls=True, tls_context=context,
                username="acme", password="wrong",
            )  # fmt: skip
    assert len(sink.book.mails) == 1


async def test_another_client_hears_what_was_scripted():
    sink = SmtpSink(Manners(recipients=(("*full*", "452 4.2.2 full"),)))
    async with (
        serving(sink) as port,
        aiosmtplib.SMTP(hostname="127.0.0.1", port=port, start_tls=False) as client,
    ):
        errors, _ = await client.sendmail("a@b.co", ["ok@b.co", "full@b.co"], "x")
        assert errors == {"full@b.co": (452, "4.2.2 full")}
        sink.script.add(SmtpFault("body", "554 5.6.0 no"))
        with pytest.raises(aiosmtplib.SMTPDataError, match="no"):
            await client.sendmail("a@b.co", ["ok@b.co"], "x")
        sink.script.add(SmtpFault("body", accept=True, close=True))
        with pytest.raises(aiosmtplib.SMTPServerDisconnected):
            await client.sendmail("a@b.co", ["ok@b.co"], "x")
    assert [each.recipients for each in sink.book.mails] == [("ok@b.co",), ("ok@b.co",)]


async def test_aiosmtpd_takes_what_our_client_sends_and_keeps_the_connection():
    book = Mailbook(keep=True)
    async with serving_aiosmtpd(book) as port:
        pool = SmtpPool(Account("127.0.0.1", port, security="none", timeouts=PATIENT), size=1)
        data = b"Subject: x\r\n\r\n.dots\r\n..\r\n.\r\n"
        for number in range(5):
            delivery = await pool.send(Envelope("a@b.co", f"u{number}@b.co", data, ("c@b.co",)))
            assert delivery.outcome == Accepted(book.mails[-1].id)
        await pool.send(Envelope("a@b.co", "jané@b.co", data))
        await pool.aclose()
    assert [each.raw for each in book.mails] == [data] * 6
    assert book.mails[0].recipients == ("u0@b.co", "c@b.co")
    assert book.mails[-1].recipients == ("jané@b.co",)


async def test_aiosmtpd_with_a_user_takes_no_mail_without_the_password():
    book = Mailbook()
    async with serving_aiosmtpd(book, users={"acme": "secret"}) as port:
        for password, kind in (
            ("secret", Accepted),
            ("wrong", Misconfigured),
            (None, Misconfigured),
        ):
            pool = SmtpPool(
                Account(
                    "127.0.0.1",
                    port,
                    username="acme" if password else None,
                    password=password,
                    security="none",
                    timeouts=PATIENT,
                )
            )
            delivery = await pool.send(Envelope("a@b.co", "u@b.co", b"x\r\n"))
            assert isinstance(delivery.outcome, kind)
            await pool.aclose()
    assert len(book.mails) == 1


@pytest.mark.parametrize("options", [[], ["--fast"]], ids=["aiosmtpd", "sink"])
async def test_the_program_says_where_it_listens_and_journals_before_it_answers(tmp_path, options):
    journal = tmp_path / "mails.jsonl"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tocsin.simulators.smtp", "--port", "0", "--journal", journal, "--keep",
        *options, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        async with asyncio.timeout(BOUND_S):
            where = json.loads(await process.stdout.readline())
            await aiosmtplib.send(
                mail(), hostname=where["host"], port=where["port"], start_tls=False
            )
        lines = journal_lines(journal)
        assert [(line["job_id"], line["recipients"]) for line in lines] == [
            ("job-1", ["b@example.com"])
        ]
        assert lines[0]["raw"]
        process.terminate()
        async with asyncio.timeout(BOUND_S):
            assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def journal_lines(path: Path):
    return [json.loads(line) for line in path.read_text().splitlines()]
