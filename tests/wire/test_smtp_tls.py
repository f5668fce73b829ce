"""TLS and passwords: never less safe than asked, never a secret in the clear by surprise."""

import asyncio
import ssl

import pytest

from tests.support.certificates import make_authority
from tests.support.smtp import smtp
from tocsin.domain.outcome import Accepted, Misconfigured, Transient
from tocsin.simulators.smtp_script import Manners, SmtpFault
from tocsin.wire.smtp import Account
from tocsin.wire.smtp.session import tls_context

USERS = {"acme": "pässword with spaces"}
LOGIN = {"username": "acme", "password": USERS["acme"]}


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return make_authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def expired(tmp_path_factory):
    return make_authority(tmp_path_factory.mktemp("expired"), expired=True)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
@pytest.mark.parametrize("mechanisms", ["PLAIN LOGIN", "LOGIN"])
async def test_starttls_then_auth_then_mail(authority, mechanisms, host):
    manners = Manners(starttls=authority.server(), users=USERS, mechanisms=mechanisms)
    account = {"security": "starttls", "host": host, "ca_pem": authority.ca_pem, **LOGIN}
    async with smtp(manners, **account) as bench:
        assert isinstance((await bench.send()).outcome, Accepted)
        assert isinstance((await bench.send()).outcome, Accepted)
        verbs = [line.split()[0] for line in bench.sink.dialogue]
        assert verbs[:4] == ["EHLO", "STARTTLS", "EHLO", "AUTH"]
        assert bench.sink.connections == 1


async def test_implicit_tls_then_auth_then_mail(authority):
    manners = Manners(tls=authority.server(), users=USERS)
    account = {"security": "tls", "host": "localhost", "ca_pem": authority.ca_pem, **LOGIN}
    async with smtp(manners, **account) as bench:
        assert isinstance((await bench.send()).outcome, Accepted)
        assert bench.sink.dialogue[1].startswith("AUTH PLAIN ")


async def test_a_big_mail_arrives_whole_over_tls(authority):
    data = (b"x" * 70 + b"\r\n") * 40_000
    manners = Manners(tls=authority.server())
    async with smtp(manners, security="tls", ca_pem=authority.ca_pem) as bench:
        assert isinstance((await bench.send(data=data)).outcome, Accepted)
        assert bench.sink.book.mails[0].raw == data


@pytest.mark.parametrize("security", ["starttls", "tls"])
async def test_a_certificate_of_an_unknown_authority_stops_the_lane(authority, security):
    which = {security: authority.server()}
    async with smtp(Manners(**which, users=USERS), security=security, **LOGIN) as bench:
        outcome = (await bench.send()).outcome
        assert isinstance(outcome, Misconfigured)
        assert outcome.code == "smtp_certificate"
        assert "AUTH" not in " ".join(bench.sink.breaths)
        assert bench.taken == []


@pytest.mark.parametrize("security", ["starttls", "tls"])
async def test_an_expired_certificate_stops_the_lane(expired, security):
    which = {security: expired.server()}
    async with smtp(Manners(**which), security=security, ca_pem=expired.ca_pem) as bench:
        outcome = (await bench.send()).outcome
        assert isinstance(outcome, Misconfigured)
        assert "expired" in outcome.detail


async def test_a_certificate_for_another_host_stops_the_lane(authority):
    manners = Manners(tls=authority.server())
    async with smtp(manners, security="tls", host="127.0.0.2", ca_pem=authority.ca_pem) as bench:
        # The sink listens on 127.0.0.1 only where the system routes all of 127/8 there.
        outcome = (await bench.send()).outcome
        assert isinstance(outcome, Misconfigured | Transient)
        assert bench.taken == []


async def test_starttls_that_is_not_offered_is_an_error_and_no_reason_to_go_on(authority):
    async with smtp(Manners(users=USERS), security="starttls", **LOGIN) as bench:
        outcome = (await bench.send()).outcome
        assert isinstance(outcome, Misconfigured)
        assert outcome.code == "smtp_starttls_missing"
        assert bench.sink.breaths == ["EHLO"]


@pytest.mark.parametrize(
    ("reply", "kind"), [("454 4.7.0 TLS not available", Transient), ("502 no", Misconfigured)]
)
async def test_starttls_that_is_refused_is_no_reason_to_go_on(authority, reply, kind):
    manners = Manners(starttls=authority.server())
    async with smtp(manners, SmtpFault("starttls", reply), security="starttls") as bench:
        assert isinstance((await bench.send()).outcome, kind)
        assert "MAIL" not in " ".join(bench.sink.breaths)


async def test_what_is_said_in_the_clear_behind_starttls_ends_the_connection(authority):
    injected = b"250-sim.example\r\n250 AUTH PLAIN\r\n"
    manners = Manners(starttls=authority.server(), users=USERS, after_starttls=injected)
    account = {"security": "starttls", "ca_pem": authority.ca_pem, **LOGIN}
    async with smtp(manners, **account) as bench:
        outcome = (await bench.send()).outcome
        assert isinstance(outcome, Transient)
        assert outcome.code == "smtp_starttls_injection"
        assert bench.sink.breaths == ["EHLO", "STAR"]


async def test_capabilities_from_before_tls_are_forgotten(authority):
    # Inside TLS this server knows only HELO, so what its first EHLO offered must not be used.
    manners = Manners(starttls=authority.server())
    async with smtp(manners, security="starttls", ca_pem=authority.ca_pem) as bench:
        bench.sink.script.add(
            SmtpFault("ehlo", "250-sim.example\r\n250-PIPELINING\r\n250 STARTTLS")
        )
        bench.sink.script.add(SmtpFault("ehlo", "250 sim.example"))
        assert isinstance((await bench.send()).outcome, Accepted)
        assert bench.sink.breaths[-3:] == ["MAIL", "RCPT", "DATA"]


async def test_a_server_without_tls_on_a_tls_port_stops_the_lane(authority):
    async with smtp(security="tls", ca_pem=authority.ca_pem) as bench:
        outcome = (await bench.send()).outcome
        assert isinstance(outcome, Misconfigured)
        assert outcome.code == "smtp_tls"


async def test_a_wrong_password_stops_the_lane_and_is_not_repeated_anywhere():
    account = {"username": "acme", "password": "zwieback"}
    async with smtp(Manners(users=USERS), **account) as bench:
        outcome = (await bench.send()).outcome
        assert isinstance(outcome, Misconfigured)
        assert outcome.code == "smtp_535_5.7.8"
        assert "zwieback" not in repr(outcome)
        async with asyncio.timeout(10):
            await asyncio.gather(*(each.gone for each in bench.sink.open))


async def test_a_password_goes_in_the_clear_only_where_security_is_none():
    async with smtp(Manners(users=USERS), **LOGIN) as bench:
        assert isinstance((await bench.send()).outcome, Accepted)


async def test_a_server_that_wants_a_password_we_do_not_have_stops_the_lane():
    async with smtp(Manners(users=USERS)) as bench:
        outcome = (await bench.send()).outcome
        assert isinstance(outcome, Misconfigured)
        assert outcome.code == "smtp_530_5.7.0"


@pytest.mark.parametrize("mechanisms", ["CRAM-MD5", "XOAUTH2"])
async def test_a_server_that_offers_no_mechanism_of_ours_stops_the_lane(mechanisms):
    async with smtp(Manners(users=USERS, mechanisms=mechanisms), **LOGIN) as bench:
        outcome = (await bench.send()).outcome
        assert isinstance(outcome, Misconfigured)
        assert outcome.code == "smtp_auth_missing"


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (SmtpFault("auth", "454 4.7.0 temporary authentication failure"), Transient),
        (SmtpFault("auth", close=True), Transient),
        (SmtpFault("auth", "334 more", times=1), Misconfigured),
    ],
    ids=range(3),
)
async def test_auth_that_does_not_finish_sends_no_mail(fault, kind):
    async with smtp(Manners(users=USERS), fault, **LOGIN) as bench:
        assert isinstance((await bench.send()).outcome, kind)
        assert bench.taken == []


def test_old_tls_versions_are_not_spoken():
    context = tls_context(Account("h", 1))
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2
    assert context.check_hostname
    assert context.verify_mode == ssl.CERT_REQUIRED
