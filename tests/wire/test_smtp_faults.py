"""The client and a server that fails: nothing is lost, nothing is sent twice, and what is not known is said."""

import asyncio
import socket

import pytest

from tests.support.smtp import PATIENT, TO, smtp
from tocsin.domain.outcome import (
    Accepted,
    ContentRejected,
    Misconfigured,
    RecipientPermanent,
    Throttled,
    Transient,
    Unknown,
)
from tocsin.simulators.smtp_script import Manners, SmtpFault
from tocsin.wire.smtp import Account, Envelope, SmtpPool, Timeouts

HASTY = Timeouts(connect=5, greeting=0.05, command=0.05, block=0.05, final_dot=0.05, quit=0.05)


@pytest.mark.parametrize("reset", [True, False], ids=["reset", "closed"])
async def test_a_connection_closed_while_it_rested_costs_nothing(reset):
    async with smtp() as bench:
        await bench.send("one@example.com")
        [conversation] = bench.sink.open
        assert bench.sink.drop_idle(reset=reset) == 1
        await conversation.gone
        outcome = (await bench.send("two@example.com")).outcome
        assert isinstance(outcome, Accepted)
        assert bench.taken == [("one@example.com",), ("two@example.com",)]
        assert bench.sink.connections == 2


@pytest.mark.parametrize("step", ["mail", "rcpt", "data"])
@pytest.mark.parametrize(
    "fault",
    [
        {"close": True},
        {"reset": True},
        {"reply": "421 4.3.2 sim.example closing", "close": True},
        {"reply": "421 4.3.2 sim.example closing"},
    ],
    ids=["closed", "reset", "421", "421-open"],
)
@pytest.mark.parametrize("extensions", [("PIPELINING",), ()], ids=["pipelined", "stepwise"])
async def test_a_used_connection_that_ends_before_the_mail_is_replaced_unseen(
    step, fault, extensions
):
    async with smtp(Manners(extensions=extensions)) as bench:
        await bench.send("one@example.com")
        bench.sink.script.add(SmtpFault(step, **fault))
        outcome = (await bench.send("two@example.com")).outcome
        assert isinstance(outcome, Accepted)
        assert bench.taken == [("one@example.com",), ("two@example.com",)]
        assert bench.sink.connections == 2


async def test_a_server_that_ends_each_connection_after_some_mails_loses_and_doubles_nothing():
    async with smtp(Manners(mails_per_connection=3), size=4) as bench:
        wanted = [f"user{number}@example.com" for number in range(100)]
        found = await asyncio.gather(*(bench.send(address) for address in wanted))
        assert all(isinstance(each.outcome, Accepted) for each in found)
        assert sorted(bench.taken) == sorted((address,) for address in wanted)


@pytest.mark.parametrize("step", ["mail", "rcpt", "data"])
@pytest.mark.parametrize("fault", [{"close": True}, {"reset": True}], ids=["closed", "reset"])
async def test_a_fresh_connection_that_ends_before_the_mail_is_a_transient_failure(step, fault):
    async with smtp(None, SmtpFault(step, **fault)) as bench:
        assert isinstance((await bench.send()).outcome, Transient)
        assert bench.taken == []
        assert isinstance((await bench.send()).outcome, Accepted)


@pytest.mark.parametrize("accept", [True, False], ids=["taken", "not-taken"])
@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ({"close": True}, "smtp_closed"),
        ({"reset": True}, "smtp_reset"),
        ({"reply": "HTTP/1.1 200 OK"}, "smtp_garbled"),
        ({"reply": "354 what"}, "smtp_unexpected_reply"),
    ],
    ids=["closed", "reset", "garbled", "unexpected"],
)
async def test_no_answer_after_the_final_dot_is_unknown_and_never_tried_again(fault, code, accept):
    async with smtp() as bench:
        await bench.send("one@example.com")
        bench.sink.script.add(SmtpFault("body", accept=accept, **fault))
        outcome = (await bench.send("two@example.com")).outcome
        assert isinstance(outcome, Unknown)
        assert outcome.code == code
        assert len(bench.taken) == 1 + accept


async def test_silence_after_the_final_dot_is_unknown_when_its_time_is_over():
    async with smtp(None, SmtpFault("body", accept=True), timeouts=HASTY) as bench:
        assert (await bench.send()).outcome == Unknown(
            "smtp_timeout", "the mail was sent and no answer came"
        )
        assert bench.taken == [(TO,)]


@pytest.mark.parametrize("step", ["connect", "ehlo", "mail", "rcpt", "data"])
async def test_silence_before_the_mail_is_transient_when_its_time_is_over(step):
    async with smtp(None, SmtpFault(step), timeouts=HASTY) as bench:
        outcome = (await bench.send()).outcome
        assert isinstance(outcome, Transient)
        assert outcome.code == "smtp_timeout"
        assert bench.taken == []


async def test_a_used_connection_that_fell_silent_is_replaced():
    async with smtp(timeouts=HASTY) as bench:
        await bench.send()
        bench.sink.script.add(SmtpFault("mail"))
        assert isinstance((await bench.send()).outcome, Accepted)
        assert bench.sink.connections == 2


BIG = b"x" * 70 + b"\r\n"


@pytest.mark.parametrize(
    "fault", [{"close": True}, {"reset": True}, {}], ids=["closed", "reset", "silent"]
)
async def test_a_connection_lost_in_the_middle_of_a_mail_is_transient(fault):
    timeouts = PATIENT if fault else HASTY
    async with smtp(None, SmtpFault("body", early=True, **fault), timeouts=timeouts) as bench:
        # More than both socket buffers hold, so that the end cannot have been written.
        outcome = (await bench.send(data=BIG * 200_000)).outcome
        assert isinstance(outcome, Transient)
        assert bench.taken == []


async def test_an_answer_in_the_middle_of_a_mail_is_heard():
    fault = SmtpFault("body", "552 5.3.4 message too big", close=True, early=True)
    async with smtp(None, fault) as bench:
        outcome = (await bench.send(data=BIG * 200_000)).outcome
        # A reset can overtake the answer.
        assert isinstance(outcome, ContentRejected | Transient)
        assert bench.taken == []


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        ("554 5.7.1 spam", ContentRejected),
        ("451 4.3.0 disk full", Transient),
        ("421 4.3.2 closing", Transient),
        ("452 4.3.1 no space", Transient),
    ],
)
async def test_a_refusal_after_the_mail_is_certain_and_not_tried_again(reply, kind):
    async with smtp() as bench:
        await bench.send("one@example.com")
        bench.sink.script.add(SmtpFault("body", reply))
        assert isinstance((await bench.send("two@example.com")).outcome, kind)
        assert isinstance((await bench.send("three@example.com")).outcome, Accepted)
        assert bench.taken == [("one@example.com",), ("three@example.com",)]


async def test_a_full_session_is_left_for_a_new_one():
    async with smtp() as bench:
        await bench.send()
        bench.sink.script.add(SmtpFault("rcpt", "452 4.5.3 too many recipients in this session"))
        assert isinstance((await bench.send()).outcome, Accepted)
        assert bench.sink.connections == 2


async def test_a_server_that_answers_what_was_not_asked_is_not_believed():
    async with smtp(
        None, SmtpFault("data", "354 go\r\n250 2.0.0 Ok: queued as NOTHING00")
    ) as bench:
        outcome = (await bench.send()).outcome
        assert isinstance(outcome, Transient)
        assert outcome.code == "smtp_garbled"
        assert bench.taken == []


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (SmtpFault("connect", "554 5.7.1 blocked", close=True), Misconfigured),
        (SmtpFault("connect", "421 4.3.2 not now", close=True), Transient),
        (SmtpFault("connect", "421 4.7.0 too many connections", close=True), Throttled),
        (SmtpFault("connect", close=True), Transient),
        (SmtpFault("connect", reset=True), Transient),
        (SmtpFault("connect", "SSH-2.0-OpenSSH_9.6"), Transient),
        (SmtpFault("ehlo", "421 4.3.2 not now"), Transient),
        (SmtpFault("ehlo", close=True), Transient),
    ],
    ids=range(8),
)
async def test_a_server_that_does_not_want_to_talk_is_told_apart(fault, kind):
    async with smtp(None, fault) as bench:
        assert isinstance((await bench.send()).outcome, kind)
        assert isinstance((await bench.send()).outcome, Accepted)


async def test_nothing_listening_is_transient():
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        pool = SmtpPool(Account("127.0.0.1", bound.getsockname()[1], security="none"))
        outcome = (await pool.send(Envelope("a@b.co", TO, b"x\r\n"))).outcome
        assert outcome == Transient(
            "smtp_refused", "nothing listens at the server's address", down=True
        )
        await pool.aclose()


async def test_a_host_name_that_does_not_resolve_is_transient():
    pool = SmtpPool(Account("smtp.nowhere.invalid", 25, security="none"))
    outcome = (await pool.send(Envelope("a@b.co", TO, b"x\r\n"))).outcome
    assert isinstance(outcome, Transient)
    await pool.aclose()


async def test_a_host_name_that_is_none_is_our_configuration():
    pool = SmtpPool(Account("h" * 64 + ".example", 25, security="none"))
    assert isinstance((await pool.send(Envelope("a@b.co", TO, b"x\r\n"))).outcome, Misconfigured)
    await pool.aclose()


async def test_a_server_that_takes_fewer_connections_than_we_want_is_used_with_those():
    async with smtp(Manners(connections_max=2), size=8) as bench:
        wanted = [f"user{number}@example.com" for number in range(60)]
        # The two it takes are made first, so that no other wins the race for them.
        hold = SmtpFault("body", delay_s=0.02, times=2)
        bench.sink.script.add(hold)
        first = [asyncio.ensure_future(bench.send(address)) for address in wanted[:2]]
        async with asyncio.timeout(10):
            await bench.sink.heard("DATA", 2)
        found = await asyncio.gather(*first, *(bench.send(address) for address in wanted[2:]))
        assert all(isinstance(each.outcome, Accepted) for each in found)
        assert sorted(bench.taken) == sorted((address,) for address in wanted)


async def test_a_server_that_went_away_fails_all_who_wait_at_once():
    async with smtp(None, SmtpFault("connect", close=True, times=20), size=2) as bench:
        found = await asyncio.gather(*(bench.send() for _ in range(10)))
        assert all(isinstance(each.outcome, Transient) for each in found)


async def test_no_outcome_repeats_an_address_that_the_server_wrote():
    text = "550 5.1.1 <gone@example.com> gone: see gone@example.com"
    async with smtp(Manners(recipients=(("*", text),))) as bench:
        outcome = (await bench.send("gone@example.com")).outcome
        assert isinstance(outcome, RecipientPermanent)
        assert "gone@" not in repr(outcome)
        assert "example.com" not in repr(outcome)
