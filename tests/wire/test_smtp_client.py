"""The client and a server that behaves."""

import asyncio

import pytest

from tests.support.smtp import FROM, MAIL, TO, smtp
from tocsin.domain.outcome import (
    Accepted,
    ContentRejected,
    RecipientPermanent,
    RecipientTemporary,
    Transient,
    Unsupported,
)
from tocsin.simulators.smtp_script import Manners, SmtpFault
from tocsin.wire.smtp.transaction import ONE_WRITE_MAX

SLOW = ("8BITMIME", "SIZE")


async def test_a_mail_arrives_as_it_was_written_and_the_queue_id_comes_back():
    data = b"Subject: dots\r\n\r\n.\r\n..two\r\n.a\r\nplain\r\n"
    async with smtp() as bench:
        delivery = await bench.send(data=data)
        [mail] = bench.sink.book.mails
        assert delivery.outcome == Accepted(mail.id)
        assert (mail.sender, mail.recipients, mail.raw) == (FROM, (TO,), data)


async def test_a_server_with_pipelining_hears_the_envelope_in_one_breath():
    async with smtp() as bench:
        await bench.send()
        await bench.send()
        assert bench.sink.connections == 1
        assert [line.split()[0] for line in bench.sink.dialogue] == [
            "EHLO", "MAIL", "RCPT", "DATA", "MAIL", "RCPT", "DATA",
        ]  # fmt: skip
        assert bench.sink.dialogue[0] == "EHLO [127.0.0.1]"
        assert bench.sink.dialogue[1] == f"MAIL FROM:<{FROM}> SIZE={len(MAIL)}"
        assert bench.sink.breaths == ["EHLO", "MAIL RCPT DATA", "MAIL RCPT DATA"]


async def test_a_server_without_pipelining_hears_one_command_at_a_time():
    async with smtp(Manners(extensions=SLOW), helo="tocsin.example") as bench:
        assert isinstance((await bench.send()).outcome, Accepted)
        assert bench.sink.breaths == ["EHLO", "MAIL", "RCPT", "DATA"]
        assert bench.sink.dialogue[0] == "EHLO tocsin.example"


async def test_a_server_that_knows_only_helo_still_takes_mail():
    async with smtp(Manners(knows_ehlo=False)) as bench:
        assert isinstance((await bench.send()).outcome, Accepted)
        assert bench.sink.breaths == ["EHLO", "HELO", "MAIL", "RCPT", "DATA"]
        assert bench.sink.dialogue[2] == f"MAIL FROM:<{FROM}>"


@pytest.mark.parametrize("pipelining", [True, False])
@pytest.mark.parametrize("open_data", [True, False], ids=["data-354", "data-503"])
async def test_a_refused_recipient_leaves_the_connection_ready_for_the_next(pipelining, open_data):
    manners = Manners(
        extensions=("PIPELINING",) if pipelining else (),
        recipients=(
            ("gone@*", "550 5.1.1 <gone@example.com> unknown"),
            ("full@*", "452 4.2.2 full"),
        ),
        data_without_recipients=open_data,
    )
    async with smtp(manners) as bench:
        gone = (await bench.send("gone@example.com")).outcome
        full = (await bench.send("full@example.com")).outcome
        fine = (await bench.send()).outcome
        assert gone == RecipientPermanent(
            "smtp_550_5.1.1", "5.1.1 <[address]> unknown", suppress=True
        )
        assert isinstance(full, RecipientTemporary)
        assert isinstance(fine, Accepted)
        assert bench.sink.connections == 1
        assert bench.taken == [(TO,)]


async def test_a_refused_sender_leaves_the_connection_ready_for_the_next():
    async with smtp(None, SmtpFault("mail", "451 4.3.0 not now")) as bench:
        assert isinstance((await bench.send()).outcome, Transient)
        assert isinstance((await bench.send()).outcome, Accepted)
        assert bench.sink.connections == 1


@pytest.mark.parametrize("extensions", [("PIPELINING",), ()], ids=["pipelined", "stepwise"])
async def test_copies_that_are_refused_are_counted_and_the_others_get_the_mail(extensions):
    manners = Manners(extensions=extensions, recipients=(("gone*", "550 5.1.1 unknown"),))
    async with smtp(manners) as bench:
        delivery = await bench.send(copies=("a@b.co", "gone@b.co", "c@b.co"))
        assert isinstance(delivery.outcome, Accepted)
        assert delivery.copies_refused == 1
        assert bench.taken == [(TO, "a@b.co", "c@b.co")]


@pytest.mark.parametrize("extensions", [("PIPELINING",), ()], ids=["pipelined", "stepwise"])
async def test_when_the_recipient_is_refused_no_copy_is_sent(extensions):
    manners = Manners(extensions=extensions, recipients=(("gone*", "550 5.1.1 unknown"),))
    async with smtp(manners) as bench:
        delivery = await bench.send("gone@example.com", copies=("a@b.co",))
        assert isinstance(delivery.outcome, RecipientPermanent)
        assert isinstance((await bench.send()).outcome, Accepted)
        assert bench.taken == [(TO,)]
        assert bench.sink.connections == 1


async def test_a_mail_over_the_stated_size_is_never_begun():
    async with smtp(Manners(extensions=("SIZE 100",))) as bench:
        outcome = (await bench.send(data=b"x" * 99 + b"\r\n")).outcome
        assert isinstance(outcome, ContentRejected)
        assert outcome.code == "smtp_too_large"
        assert bench.sink.breaths == ["EHLO"]


async def test_an_address_outside_ascii_is_sent_with_smtputf8_or_not_at_all():
    data = "Subject: x\r\nTo: jané@example.com\r\n\r\nx\r\n".encode()
    async with smtp() as bench:
        assert isinstance((await bench.send("jané@example.com", data)).outcome, Accepted)
        assert bench.sink.dialogue[1].endswith(f"SIZE={len(data)} BODY=8BITMIME SMTPUTF8")
        assert bench.taken == [("jané@example.com",)]
        assert bench.sink.book.mails[0].raw == data
    async with smtp(Manners(extensions=("8BITMIME",))) as bench:
        for_it = (await bench.send("jané@example.com", data)).outcome
        assert isinstance(for_it, RecipientPermanent)
        assert not for_it.suppress
        for_another = (await bench.send(copies=("jané@example.com",), data=data)).outcome
        assert isinstance(for_another, Unsupported)
        assert bench.taken == []


async def test_a_big_mail_arrives_whole():
    data = (b"." + b"x" * 70 + b"\r\n") * 60_000
    async with smtp() as bench:
        assert isinstance((await bench.send(data=data)).outcome, Accepted)
        assert bench.sink.book.mails[0].raw == data
        assert len(data) > ONE_WRITE_MAX


async def test_many_mails_share_few_connections_and_each_arrives_once():
    async with smtp(size=3) as bench:
        wanted = [f"user{number}@example.com" for number in range(200)]
        found = await asyncio.gather(*(bench.send(address) for address in wanted))
        assert all(isinstance(each.outcome, Accepted) for each in found)
        assert sorted(bench.taken) == sorted((address,) for address in wanted)
        assert bench.sink.connections == 3


async def test_a_connection_is_replaced_after_its_share_of_mails():
    async with smtp(mails_per_connection=4) as bench:
        for _ in range(9):
            await bench.send()
        assert bench.sink.connections == 3
        assert bench.sink.breaths.count("QUIT") == 2


async def test_a_resting_connection_is_closed_with_quit():
    async with smtp(idle_s=0.01) as bench:
        await bench.send()
        [conversation] = bench.sink.open
        async with asyncio.timeout(10):
            await conversation.gone
        assert bench.sink.breaths[-1] == "QUIT"
        assert isinstance((await bench.send()).outcome, Accepted)
        assert bench.sink.connections == 2


async def test_closing_says_quit_and_nothing_can_be_sent_after():
    async with smtp() as bench:
        await bench.send()
        await bench.pool.aclose()
        assert bench.sink.breaths[-1] == "QUIT"
        assert not bench.sink.open
        with pytest.raises(RuntimeError, match="closed"):
            await bench.send()


async def test_a_cancelled_mail_takes_its_connection_with_it():
    async with smtp(None, SmtpFault("data")) as bench:
        sending = asyncio.ensure_future(bench.send())
        async with asyncio.timeout(10):
            await bench.sink.heard("DATA")
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        assert isinstance((await bench.send("next@example.com")).outcome, Accepted)
        assert bench.taken == [("next@example.com",)]
        assert bench.sink.connections == 2


async def test_a_mail_that_waits_for_a_connection_and_is_cancelled_leaves_it_to_the_next():
    async with smtp(None, SmtpFault("body", delay_s=0.05)) as bench:
        first = asyncio.ensure_future(bench.send("first@example.com"))
        async with asyncio.timeout(10):
            await bench.sink.heard("DATA")
        second = asyncio.ensure_future(bench.send("second@example.com"))
        third = asyncio.ensure_future(bench.send("third@example.com"))
        await asyncio.sleep(0)
        second.cancel()
        for each in (first, third):
            assert isinstance((await each).outcome, Accepted)
        assert bench.taken == [("first@example.com",), ("third@example.com",)]
        assert bench.sink.connections == 1
