"""Where transports differ, the client does the same on asyncio's loop and on the one in production."""

import asyncio

import pytest
import uvloop

from tests.support.certificates import make_authority
from tests.support.smtp import smtp
from tocsin.domain.outcome import Accepted, Transient, Unknown
from tocsin.simulators.smtp_script import Manners, SmtpFault

BIG = (b"." + b"x" * 70 + b"\r\n") * 100_000

both = pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])


@both
@pytest.mark.parametrize("security", ["none", "tls", "starttls"])
def test_mails_of_every_size_arrive_whole(run, security, tmp_path):
    authority = make_authority(tmp_path)

    async def scenario():
        manners = Manners(**({} if security == "none" else {security: authority.server()}))
        async with smtp(manners, security=security, ca_pem=authority.ca_pem) as bench:
            wanted = [BIG, b"small\r\n", BIG[: 73 * 2000], b".\r\n"]
            for data in wanted:
                assert isinstance((await bench.send(data=data)).outcome, Accepted)
            assert [mail.raw for mail in bench.sink.book.mails] == wanted
            assert bench.sink.connections == 1

    run(scenario())


@both
@pytest.mark.parametrize("reset", [True, False], ids=["reset", "closed"])
def test_how_a_connection_ends_is_told_apart(run, reset):
    fault = {"reset": reset, "close": not reset}

    async def scenario():
        async with smtp() as bench:
            await bench.send("one@example.com")
            bench.sink.script.add(SmtpFault("mail", **fault))
            assert isinstance((await bench.send("two@example.com")).outcome, Accepted)
            bench.sink.script.add(SmtpFault("body", accept=True, **fault))
            lost = (await bench.send("three@example.com")).outcome
            assert isinstance(lost, Unknown)
            assert lost.code == ("smtp_reset" if reset else "smtp_closed")
            bench.sink.script.add(SmtpFault("body", early=True, **fault))
            assert isinstance((await bench.send(data=BIG * 2)).outcome, Transient)
            assert len(bench.taken) == 3

    run(scenario())


@both
@pytest.mark.parametrize("security", ["tls", "starttls"])
def test_a_connection_that_tls_could_not_protect_is_closed(run, security, tmp_path):
    authority = make_authority(tmp_path)

    async def scenario():
        manners = Manners(**{security: authority.server()})
        async with smtp(manners, security=security) as bench:
            assert (await bench.send()).outcome.code == "smtp_certificate"
            async with asyncio.timeout(10):
                await asyncio.gather(*(each.gone for each in bench.sink.open))

    run(scenario())
